"""The report of a run: report.json, and report.html, which needs nothing but itself."""
import fnmatch
import os

import judge
import keep
import plots
from plots import text

COLOURS = dict(valid='#1a7f37', invalid='#b3261e', inconclusive='#8a6d00')
# What can be done to a scheduler, and where the lab does it. `None`: it does not, and says why.
MATRIX = (
    ('node and job killed at one instant', 'faults.boundary, faults.many_killed, idempotency.*, soak', None),
    ('job killed', 'faults.normal, soak', None), ('guard killed or stopped', 'soak', None),
    ('node stopped past its lease, then going on', 'ownership.*, locks.failing, faults.many_stopped, soak', None),
    ('lonely node stopped: nobody takes over', 'mutants.no_lease_check, soak (lonely)', None),
    ('the same fire delivered several times, and a thousand', 'instances.*', None),
    ('a commit whose answer is lost, or that is on its way for long', 'faults.lost_answer, faults.many_unknown, faults.many_too_late, mutants.naive_resolve, soak', None),
    ('a link that carries nothing, nothing to the server, or nothing back', 'faults.cut_link, faults.muted_link, faults.deaf_link, faults.many_cut, soak', None),
    ('connections reset, and links that are slow', 'faults.broken_link, faults.slow_link, soak', None),
    ('connections killed at the server', 'soak', None), ('rows deleted by hand', 'mutants.no_old_lease, soak', None),
    ('database killed and restarted, with runs at work and at a commit', 'faults.server_killed, faults.killed_at_commit, soak', None),
    ('database that stands still for longer than the lease', 'faults.server_stopped', None),
    ('primary killed and its synchronous replica promoted', 'faults.failover', None),
    ('primary killed and an asynchronous replica promoted, that had it all or lagged', 'faults.failover_lagging', None),
    ('nodes of the version before and of this one on a store (needs --older)', 'faults.rolling_upgrade', None),
    ('a store that a newer program has migrated', 'faults.newer_program', None),
    ('full disk (root: it mounts a small one)', 'faults.disk_full (SQLite), faults.server_disk_full (PostgreSQL)', None),
    ("clock of a node wrong by years, clock of the store stepped (needs cc)", 'faults.node_clock, faults.clock_back, faults.clock_forward', None),
    ('a node whose time since boot runs away, and one whose machine has slept (needs cc)', 'mutants.no_due_check, mutants.monotonic_clock', None),
    ('power that fails: what was not flushed is lost (needs cc)', 'mutants.no_flush', None),
    ('guard stopped alone', 'mutants.beat_moves_time_out, soak', None),
    ("a job's own COMMIT that comes late", 'mutants.resolve_burns_nothing, mutants.naive_resolve*', None),
    ('an audit that is not made, or sees nothing', 'mutants.no_watch, mutants.no_canary', None),
    ('one node out of it for good: deaf, or stopped', 'soak (busy), the simulator', None),
    ('Redis forgets its keys', 'locks.redis', None), ('a job that always fails', 'faults.failing, misfires.failing', None),
    ('lost packets, cuts between machines', None, 'need root and network namespaces; the links here are cut, muted, deaf and slow by a proxy'),
    ('read and write errors of a disk', None, 'need libfiu'), ('memory, descriptors, processes used up', None, 'need root (cgroups)'))
NOT_COVERED = (
    'machines: every node runs on this one, so that lost packets and clocks of several machines are not in it',
    'root: no netem, no cgroup freezer; without it no full disk either',
    'power, but for mutants.no_flush: a server that is killed loses what a machine without power would not keep, and the other way round',
    'size and duration: samples of seconds with a few periods; `matins lab soak` is the long form',
    "the business's own code: the lab's job stands for it")


def write(folder, told, records):
    value = dict(run=told, scope=scope(told, records), records=records, table=table(records), protections=protections(records))
    keep.write_json(os.path.join(folder, 'report.json'), value)
    keep.write(os.path.join(folder, 'report.html'), page(value, folder))


def scope(told, records):
    versions = [r['baseline_version']['versions'] for r in records if r['baseline_version']]
    return dict(
        experiments=len(records), samples=sum(len(r['observed_result'].get('samples', {})) for r in records),
        stores=sorted({v['store'] for v in versions}), program=versions[0]['program'] if versions else '', matins=versions[0]['matins'] if versions else '',
        kernel=versions[0]['kernel'] if versions else '', processors=versions[0]['processors'] if versions else '',
        older=sorted({v['older']['program'] for v in versions if 'older' in v}), sizes=sizes(records),
        nodes=sorted({r['baseline_version']['conditions']['topology.nodes'] for r in records if r['baseline_version']}),
        left_out=[*told.get('left_out', ()), *(f'{r["execution"]["experiment"]}: {r["observed_result"]["why"]}' for r in records if not r['observed_result'].get('samples'))],
        not_covered=[f'{fault}: {why}' for fault, where, why in MATRIX if not where] + list(NOT_COVERED),
        faults={fault: ', '.join(tried(where, records)) for fault, where, _ in MATRIX if where and tried(where, records)},
        not_tried={fault: where for fault, where, _ in MATRIX if where and not tried(where, records)}, lab_build=told['lab_build'])


def tried(where, records):
    """Which of these experiments this run has samples of."""
    names = [r['execution']['experiment'] for r in records if r['observed_result'].get('samples')]
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in where.split(', '))]


def sizes(records):
    """How much ran, over all samples: what a verdict rests on."""
    every = [s['measures'] for r in records for s in r['observed_result'].get('samples', {}).values()]
    found = {what: sum(m.get(key) or 0 for m in every) for what, key in dict(
        periods='rows', claims='claims', starts='starts', takeovers='lost', refusals='refusals', unknown='unknown', effects='effects').items()}
    return found | dict(seconds=round(sum(m.get('seconds') or 0 for m in every)), longest=max((m.get('seconds') or 0 for m in every), default=0))


def table(records):
    """promise -> what was tried on it."""
    found = {}
    for r in records:
        for promise in r['execution']['promises']:
            found.setdefault(promise, []).append(dict(experiment=r['execution']['experiment'], verdict=r['observed_result']['verdict'],
                                                      mutant=r['execution'].get('mutant', '')))
    return found


def protections(records):
    """Protection x experiment: as what each that was taken out was noticed, or that it was not."""
    return [dict(protection=r['execution']['mutant'], store=r['baseline_version']['conditions']['store'], experiment=r['execution']['experiment'],
                 noticed=judge.caught(r) or '') for r in records if r['execution'].get('catches')]


def protections_of(rows):
    if not rows:
        return ''
    return ('<h2>Protections taken out</h2><table><tr><th>protection</th><th>experiment</th><th>store</th><th>noticed as</th></tr>' + ''.join(
        f'<tr><td>{text(row["protection"])}</td><td>{text(row["experiment"])}</td><td>{text(row["store"].partition("://")[0])}</td>'
        f'<td>{text(row["noticed"]) or mark("invalid", "not noticed")}</td></tr>' for row in rows) + '</table>')


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
            for promise, tried in sorted(value['table'].items(), key=lambda kv: (len(kv[0]), kv[0]))), '</table>',
        protections_of(value['protections']), '<h2>Experiments</h2>']
    parts += [experiment(r, folder) for r in found]
    return ''.join(parts) + '</html>\n'


def mark(verdict, words=None):
    return f'<b class="v" style="background:{COLOURS[verdict]}">{words or verdict}</b>'


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
    rows = [(name, told[name]) for name in ('matins', 'program', 'older', 'stores', 'kernel', 'processors', 'nodes', 'sizes', 'lab_build') if told[name] not in ([], '')]
    rows = [(name.replace('_', ' '), shown(value)) for name, value in rows]
    rows += [(f'fault: {fault}', where) for fault, where in told['faults'].items()]
    return ('<table>' + ''.join(f'<tr><td>{text(k)}</td><td>{text(v)}</td></tr>' for k, v in rows) + '</table><p>Not tried in this run, and where it is:</p><ul>' +
            ''.join(f'<li>{text(fault)}: {text(where)}</li>' for fault, where in told['not_tried'].items()) + '</ul><p>Not covered:</p><ul>' +
            ''.join(f'<li>{text(what)}</li>' for what in (*told['left_out'], *told['not_covered'])) + '</ul>')


def shown(value):
    if isinstance(value, dict):
        return ', '.join(f'{key} {v}' for key, v in value.items())
    return ', '.join(map(str, value)) if isinstance(value, list) else value


def experiment(r, folder):
    e, result = r['execution'], r['observed_result']
    c = r['changed_condition']
    head = (f'<details{"" if result["verdict"] == "valid" else " open"}><summary>{mark(result["verdict"])} <b>{text(e["experiment"])}</b> '
            f'({text(r["topic"])}): {text(result["why"])}</summary><p>{text(r["claim_from_article"])} <i>{text(r["selected_chapter"])}</i></p>'
            f'<p>Changed, and nothing else: <code>{text(c["exactly_one"])}</code> from <code>{text(c["baseline"])}</code> to '
            f'<code>{text(c["candidate"])}</code>.</p>')
    if e.get('gives_up'):
        head += f'<p>Not promised under this condition, and said so beforehand: <b>{text(", ".join(e["gives_up"]))}</b>.</p>'
    if r['first_deviation']:
        head += deviation(r)
    samples = result.get('samples', {})
    if samples:
        names = sorted({name for s in samples.values() for name in s['measures']})
        head += '<table><tr><th>measure</th>' + ''.join(f'<th>{text(s)}</th>' for s in samples) + '</tr>' + ''.join(
            f'<tr><td>{text(name)}</td>' + ''.join(f'<td>{text(s["measures"].get(name, ""))}</td>' for s in samples.values()) + '</tr>'
            for name in names if any(s['measures'].get(name) not in (0, None, False) for s in samples.values())) + '</table>'
        here = os.path.join(folder, e['experiment'])
        head += plots.timelines(here, samples) + plots.lines(here, samples) + plots.logged(here, samples) + plots.looked_over(here, samples)
    head += f'<p>Passes when: <code>{text(r["pass_when"])}</code>; is stopped when: <code>{text(r["stop_when"])}</code>.</p>'
    for name in samples:
        stop = keep.read_json(os.path.join(folder, e['experiment'], name, 'stop.json'))
        if stop:
            head += (f'<p>{text(name)} was stopped: {text(stop["condition"])} ({text(stop["seen"])}); everything was dead {stop["seconds_to_stop"]} s later, '
                     f'and in the {stop["watched_for"]} s after that were written: {text(stop["written_afterwards"])}.</p>')
    return head + '</details>'
