"""The report of a run: report.json, and report.html, which needs nothing but itself."""
import html
import os

import keep

COLOURS = dict(valid='#1a7f37', invalid='#b3261e', inconclusive='#8a6d00')
# What can be done to a scheduler, and where the lab does it. `None`: it does not, and says why.
MATRIX = (
    ('node and job killed at one instant', 'faults.boundary, faults.many_killed, idempotency.*, soak', None),
    ('job killed', 'faults.normal, soak', None), ('guard killed or stopped', 'soak', None),
    ('node stopped past its lease, then going on', 'ownership.*, locks.failing, faults.many_stopped, soak', None),
    ('lonely node stopped: nobody takes over', 'mutants.no_lease_check, soak (lonely)', None),
    ('the same fire delivered several times', 'instances.*', None),
    ('a commit whose answer is lost, or that is on its way for long', 'faults.lost_answer, faults.many_unknown, mutants.naive_resolve, soak', None),
    ('a link that carries nothing, nothing to the server, or nothing back', 'faults.cut_link, faults.muted_link, faults.deaf_link, faults.many_cut, soak', None),
    ('connections reset, and links that are slow', 'faults.broken_link, faults.slow_link, soak', None),
    ('connections killed at the server', 'soak', None), ('rows deleted by hand', 'mutants.no_old_lease, soak', None),
    ('database killed and restarted, with runs at work and at a commit', 'faults.server_killed, faults.killed_at_commit, soak', None),
    ('database that stands still for longer than the lease', 'faults.server_stopped', None),
    ('primary killed and its synchronous replica promoted (PostgreSQL)', 'faults.failover', None),
    ('full disk (root: it mounts a small one)', 'faults.disk_full (SQLite), faults.server_disk_full (PostgreSQL)', None),
    ("clock of a node wrong by years, clock of the store stepped (needs cc)", 'faults.node_clock, faults.clock_back, faults.clock_forward', None),
    ('one node out of it for good: deaf, or stopped', 'soak (busy), the simulator', None),
    ('Redis forgets its keys', 'locks.redis', None), ('a job that always fails', 'faults.failing, misfires.failing', None),
    ('lost packets, cuts between machines', None, 'need root and network namespaces; the links here are cut, muted, deaf and slow by a proxy'),
    ('asynchronous replicas, replicas of MariaDB', None, 'what an asynchronous replica had not got is lost, whoever schedules; docs/store.md says what to do'),
    ('read and write errors of a disk', None, 'need libfiu'), ('memory, descriptors, processes used up', None, 'need root (cgroups)'),
    ('rolling upgrade', None, 'there is one version'))
NOT_COVERED = (
    'machines: every node runs on this one, so that lost packets and clocks of several machines are not in it',
    'root: no netem, no cgroup freezer; without it no full disk either',
    'power: a server that is killed loses what a machine without power would not keep, and the other way round',
    'size and duration: samples of seconds with a few periods; `matins lab soak` is the long form',
    "the business's own code: the lab's job stands for it")


def write(folder, told, records):
    value = dict(run=told, scope=scope(told, records), records=records, table=table(records))
    keep.write_json(os.path.join(folder, 'report.json'), value)
    keep.write(os.path.join(folder, 'report.html'), page(value, folder))


def scope(told, records):
    versions = [r['baseline_version']['versions'] for r in records if r['baseline_version']]
    return dict(
        experiments=len(records), samples=sum(len(r['observed_result'].get('samples', {})) for r in records),
        stores=sorted({v['store'] for v in versions}), program=versions[0]['program'] if versions else '', matins=versions[0]['matins'] if versions else '',
        kernel=versions[0]['kernel'] if versions else '', processors=versions[0]['processors'] if versions else '',
        nodes=sorted({r['baseline_version']['conditions']['topology.nodes'] for r in records if r['baseline_version']}),
        left_out=[f'{r["execution"]["experiment"]}: {r["observed_result"]["why"]}' for r in records if not r['observed_result'].get('samples')],
        not_covered=[f'{fault}: {why}' for fault, where, why in MATRIX if not where] + list(NOT_COVERED),
        faults={fault: where for fault, where, _ in MATRIX if where}, lab_build=told['lab_build'])


def table(records):
    """promise -> what was tried on it."""
    found = {}
    for r in records:
        for promise in r['execution']['promises']:
            found.setdefault(promise, []).append(dict(experiment=r['execution']['experiment'], verdict=r['observed_result']['verdict'],
                                                      mutant=r['execution'].get('mutant', '')))
    return found


def text(value):
    return html.escape(str(value))


def page(value, folder):
    told, found = value['scope'], value['records']
    count = {v: sum(r['observed_result']['verdict'] == v for r in found) for v in COLOURS}
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Matins lab</title><style>body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;'
        'max-width:72em;padding:0 1em;color:#222}table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.3em .6em;'
        'text-align:left;vertical-align:top}code,pre{font:13px ui-monospace,monospace}pre{background:#f6f6f6;padding:.6em;overflow:auto}'
        'b.v{color:#fff;padding:.1em .5em;border-radius:.3em}summary{cursor:pointer}</style>',
        f'<h1>Matins lab: {text(value["run"]["what"])}</h1><p>' + ', '.join(f'{mark(v)} {n}' for v, n in count.items()) +
        f'. {told["samples"]} samples of {told["experiments"]} experiments in {value["run"]["ended"] - value["run"]["begun"]:.0f} s.</p>',
        broke_first(found), '<h2>What this covers, and what it does not</h2>', scope_of(told),
        '<h2>Promises</h2><table><tr><th>promise</th><th>experiments</th></tr>', *(
            f'<tr><td>{text(promise)}</td><td>' + ', '.join(f'{mark(e["verdict"])} {text(e["experiment"])}' +
                                                             (f' without {text(e["mutant"])}' if e['mutant'] else '') for e in tried) + '</td></tr>'
            for promise, tried in sorted(value['table'].items(), key=lambda kv: (len(kv[0]), kv[0]))), '</table><h2>Experiments</h2>']
    parts += [experiment(r, folder) for r in found]
    return ''.join(parts) + '</html>\n'


def mark(verdict):
    return f'<b class="v" style="background:{COLOURS[verdict]}">{verdict}</b>'


def broke_first(records):
    """What a reader wants first."""
    bad = [r for r in records if r['observed_result']['verdict'] == 'invalid' and r['first_deviation']]
    if not bad:
        return ''
    return '<h2>What broke first</h2>' + ''.join(deviation(r) for r in bad)


def deviation(r):
    d = r['first_deviation']
    return (f'<p><b>{text(r["execution"]["experiment"])}</b>, sample {text(d["sample"])}: at <b>{text(d["phase"])}</b>'
            f'{", promise " + text(d["promise"]) if d["promise"] else ""}: {text(d["what"])}</p><pre>{text(d["event"])}</pre>')


def scope_of(told):
    rows = [(name, told[name]) for name in ('matins', 'program', 'stores', 'kernel', 'processors', 'nodes', 'lab_build')]
    rows += [(f'fault: {fault}', where) for fault, where in told['faults'].items()]
    return ('<table>' + ''.join(f'<tr><td>{text(k)}</td><td>{text(v)}</td></tr>' for k, v in rows) + '</table><p>Not covered:</p><ul>' +
            ''.join(f'<li>{text(what)}</li>' for what in (*told['left_out'], *told['not_covered'])) + '</ul>')


def experiment(r, folder):
    e, result = r['execution'], r['observed_result']
    c = r['changed_condition']
    head = (f'<details{"" if result["verdict"] == "valid" else " open"}><summary>{mark(result["verdict"])} <b>{text(e["experiment"])}</b> '
            f'({text(r["topic"])}): {text(result["why"])}</summary><p>{text(r["claim_from_article"])} <i>{text(r["selected_chapter"])}</i></p>'
            f'<p>Changed, and nothing else: <code>{text(c["exactly_one"])}</code> from <code>{text(c["baseline"])}</code> to '
            f'<code>{text(c["candidate"])}</code>.</p>')
    if r['first_deviation']:
        head += deviation(r)
    samples = result.get('samples', {})
    if samples:
        names = sorted({name for s in samples.values() for name in s['measures']})
        head += '<table><tr><th>measure</th>' + ''.join(f'<th>{text(s)}</th>' for s in samples) + '</tr>' + ''.join(
            f'<tr><td>{text(name)}</td>' + ''.join(f'<td>{text(s["measures"].get(name, ""))}</td>' for s in samples.values()) + '</tr>'
            for name in names if any(s['measures'].get(name) not in (0, None, False) for s in samples.values())) + '</table>'
        head += timelines(os.path.join(folder, e['experiment']), samples)
    head += f'<p>Passes when: <code>{text(r["pass_when"])}</code>; is stopped when: <code>{text(r["stop_when"])}</code>.</p>'
    for name in samples:
        stop = keep.read_json(os.path.join(folder, e['experiment'], name, 'stop.json'))
        if stop:
            head += (f'<p>{text(name)} was stopped: {text(stop["condition"])} ({text(stop["seen"])}); everything was dead {stop["seconds_to_stop"]} s later, '
                     f'and in the {stop["watched_for"]} s after that were written: {text(stop["written_afterwards"])}.</p>')
    return head + '</details>'


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
    scale, y, out = 760 / most, 14, []
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
