"""The plots of a report, and what the store's own log comes to: each from the folder of a sample alone."""
import html
import os
import re

import keep

WIDTH = 760         # of what a sample's time is drawn on
# What stands in the log of a server, of all that ran on it meanwhile.
LOGGED = (('slow queries', re.compile(r'duration: [0-9.]+ ms|^# Query_time', re.M)), ('lock waits', re.compile(r'still waiting for')),
          ('deadlocks', re.compile(r'deadlock detected|transactions deadlock detected', re.I)))


def text(value):
    return html.escape(str(value))


def timelines(folder, samples):
    """Each start of the body as a bar, each effect as a stroke, in seconds from the sample's beginning."""
    rows, most = [], 1.0
    for name in samples:
        told = keep.read_json(os.path.join(folder, name, 'business.json'))
        acts = keep.read_lines(os.path.join(folder, name, 'actions.jsonl'))
        begun, ended = acts[0]['at'], acts[-1]['at']
        most = max(most, ended - begun)
        rows.append((name, begun, ended, told, acts))
    lanes = sum(max(1, min(12, len(told['alive']))) + 1 for _, _, _, told, _ in rows)
    scale, y, out = WIDTH / most, 14, []
    for name, begun, ended, told, acts in rows:
        out.append(f'<text x="0" y="{y}" font-size="11">{text(name)}</text>')
        for act in acts[1:-1]:
            if act['what'].endswith(': done'):
                x = 110 + (act['at'] - begun) * scale
                out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 10}" y2="{y + 14 * max(1, min(12, len(told["alive"])))}" stroke="#b3261e" '
                           f'stroke-dasharray="3 2"><title>{text(act["what"])}</title></line>')
        for row in told['alive'][:12]:
            x, end = 110 + (row['began'] - begun) * scale, 110 + ((row['ended'] or ended) - begun) * scale
            out.append(f'<rect x="{x:.1f}" y="{y - 8}" width="{max(1.5, end - x):.1f}" height="9" fill="{"#9ec5fe" if row["ended"] else "#ddd"}">'
                       f'<title>start {row["n"]} of {text(row["job"])} {text(row["period"])}, fence {row["fence"]}</title></rect>')
            for entry in told['entry']:
                if (entry['job'], entry['period'], entry['fence']) == (row['job'], row['period'], row['fence']):
                    at = 110 + (entry['at'] - begun) * scale
                    out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y - 9}" y2="{y + 2}" stroke="#1a7f37" stroke-width="2"/>')
            y += 14
        y += 14 if told['alive'] else 28
    return (f'<svg width="890" height="{14 * lanes + 28}" role="img" aria-label="starts and effects over time"><g>{"".join(out)}</g>'
            f'<text x="110" y="{14 * lanes + 24}" font-size="11">0 s</text><text x="840" y="{14 * lanes + 24}" font-size="11">{most:.1f} s</text></svg>'
            '<p><small>Bars are starts of the body (grey: killed), green strokes effects, red lines faults.</small></p>')


def lines(folder, samples):
    """What was measured once a second, a line a figure, each on its own scale; its greatest value stands beside it."""
    found = []
    for name in samples:
        metrics = [m for m in keep.read_lines(os.path.join(folder, name, 'metrics.jsonl')) if 'journal' in m]
        begun = keep.read_lines(os.path.join(folder, name, 'actions.jsonl'))[0]['at']
        found += [(name, label, points) for label, points in figures(metrics, begun) if len(points) > 1 and max(v for _, v in points) > 0]
    if not found:
        return ''
    most, out = max(points[-1][0] for _, _, points in found) or 1.0, []
    for row, (name, label, points) in enumerate(found):
        y, top = 24 + 26 * row, max(v for _, v in points)
        drawn = ' '.join(f'{230 + at * (WIDTH - 120) / most:.1f},{y - 18 * value / top:.1f}' for at, value in points)
        out.append(f'<text x="0" y="{y}" font-size="11">{text(name)}: {text(label)}, up to {top:g}</text>'
                   f'<polyline points="{drawn}" fill="none" stroke="#0b57d0" stroke-width="1.5"/>')
    return (f'<svg width="890" height="{26 * len(found) + 16}" role="img" aria-label="measured over time">{"".join(out)}</svg>'
            f'<p><small>Measured once a second over {most:.1f} s; each line has its own scale.</small></p>')


def figures(metrics, begun):
    """(what, [(seconds, value)])"""
    def points(value):
        return [(m['at'] - begun, value(m)) for m in metrics if value(m) is not None]
    yield 'journal entries', points(lambda m: m['journal'])
    yield 'rows RUNNING', points(lambda m: int(m['rows'].get('RUNNING', 0)))
    yield 'lock waits', points(lambda m: m.get('waiting'))
    yield 'MiB of all nodes', points(lambda m: sum(u.get('rss', 0) for u in m['nodes'].values()) / 1024)
    unit = next((m['replication']['of'] for m in metrics if m.get('replication')), '')
    yield f'replica behind, {unit}', points(lambda m: (m.get('replication') or {}).get('behind'))


def logged(folder, samples):
    """A line: what the servers' logs have of slow queries, lock waits and deadlocks."""
    told = []
    for name in samples:
        for log in ('server.log', 'replica.log'):
            path = os.path.join(folder, name, log)
            if os.path.exists(path):
                with open(path, encoding='utf-8', errors='replace') as f:
                    found = f.read()
                told.append(f'{name}/{log}: ' + ', '.join(f'{len(sign.findall(found))} {what}' for what, sign in LOGGED))
    if not told:
        return '<p>SQLite keeps no log of slow queries; who waited for its lock for long says so in the nodes\' logs.</p>'
    return f'<p>In the log of the server, of all that ran on it meanwhile: {text("; ".join(told))}.</p>'


def looked_over(folder, samples):
    """What `matins db check` found at the end of each sample, where it found anything."""
    told = []
    for name in samples:
        path = os.path.join(folder, name, 'check.json')
        problems = keep.read_json(path).get('problems') if os.path.exists(path) else None
        told += [f'{name}: {problem}' for problem in problems or ()]
    return f'<p>matins db check at the end: {text("; ".join(told))}.</p>' if told else ''
