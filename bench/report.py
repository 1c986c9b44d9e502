"""What people see: the table in the terminal, and docs/benchmarks.md, where what was written by hand stays."""
import os
import re

import results as judge

HAND = re.compile(r'<!-- by hand: (\S+) -->\n(.*?)<!-- end by hand -->', re.S)

INTRODUCTION = """# Benchmarks

What `./dev bench` measured, in its own words. It writes this page anew each time, from `build/bench/results.json`; what stands
between "by hand" marks is kept, and what that file has no figures of stays as it was measured before. [How it
measures](../bench/README.md): medians of interleaved rounds, least and most in brackets, ratios within a round. The machine is
shared with others unless the page says otherwise, so a ratio to a floor or a peer of the same round says more than a figure.
"""

HEADINGS = {
    'pure': 'The pure parts',
    'drain/postgresql': 'A backlog on PostgreSQL, and other schedulers beside it',
    'drain/sqlite': 'A backlog on SQLite',
    'drain/mariadb': 'A backlog on MariaDB',
    'open_transaction/postgresql': 'A transaction that is left open on PostgreSQL',
    'latency/postgresql': 'Due instant to first instruction, on PostgreSQL',
    'latency/sqlite': 'Due instant to first instruction, on SQLite',
    'latency/mariadb': 'Due instant to first instruction, on MariaDB',
    'burst/postgresql': '2,000 fires at one instant, on PostgreSQL',
    'burst/sqlite': '2,000 fires at one instant, on SQLite',
    'burst/mariadb': '2,000 fires at one instant, on MariaDB',
    'idle/postgresql': 'An idle node on PostgreSQL, and a fire now and then',
    'idle/sqlite': 'An idle node on SQLite, and a fire now and then',
    'takeover/postgresql': 'Takeover on PostgreSQL: the node killed, and the whole host',
    'takeover/sqlite': 'Takeover on SQLite: the node killed, and all that it had started',
    'outage/postgresql': "A day's outage: the planning pass, on PostgreSQL",
    'outage/sqlite': "A day's outage: the planning pass, on SQLite",
    'claims/postgresql': 'Beside a million rows, on PostgreSQL',
    'claims/sqlite': 'Beside a million rows, on SQLite',
    'leases/1': 'Redis leases, one at a time',
    'leases/16': 'Redis leases, 16 in a round trip',
}


def number(value):
    if value >= 1000:
        return f'{value:,.0f}'
    if value >= 100:
        return f'{value:.0f}'
    return f'{value:.3g}'


def with_spread(found):
    median, least, most = found
    return f'{number(median)} [{number(least)}–{number(most)}]'


def goal_text(goal):
    bound = f'≥ {number(goal.at_least)}' if goal.at_least is not None else f'≤ {number(goal.at_most)}'
    if not goal.to:
        return f'{goal.figure} {bound}'
    return f'{goal.figure} {bound} × {"the best peer" if goal.to == "peers" else goal.to}'


def progress(measure, result):
    told = result.get('failed') or ', '.join(f'{f} {number(result[f])}' for f in measure.figures if isinstance(result.get(f), (int, float)))
    return f'  round {result["round"]}  {measure.name:<44} {told}   (load {result["load1"]})'


def round_seconds(results, measure):
    """How long a round of it took when it was measured here last; or what measures.py supposes."""
    found = judge.spread(judge.values(results, measure.name, 'took_seconds').values())
    return found[0] if found else measure.seconds


def durations(results, table, rounds):
    """The measures with how long each takes, and each group's sum, in minutes."""
    lines, groups = [f'{"measure":<44} {"rounds":>6} {"s a round":>9} {"minutes":>8}'], {}
    for measure in table:
        times, seconds = min(measure.rounds or rounds, rounds), round_seconds(results, measure)
        groups[measure.group] = groups.get(measure.group, 0) + times * seconds / 60
        lines.append(f'{measure.name:<44} {times:>6} {seconds:>9.0f} {times * seconds / 60:>8.1f}')
    lines += ['', f'{"group":<44} {"minutes":>25}', *(f'{group:<44} {minutes:>25.1f}' for group, minutes in groups.items())]
    return '\n'.join([*lines, f'{"all":<44} {sum(groups.values()):>25.1f}'])


def table_row(results, table, measure):
    """[name, figures, of the floor, of the best peer, goals] as texts."""
    figures = []
    for figure in measure.figures:
        found = judge.spread(judge.values(results, measure.name, figure).values())
        if found:
            figures.append(f'{figure} {with_spread(found)}')
    if not figures:
        failed = [r['failed'] for r in results['measures'][measure.name]['rounds'] if 'failed' in r]
        figures = [f'no figure: {failed[-1]}' if failed else 'not measured']
    verdicts = []
    for goal in measure.goals:
        found, reached, other = judge.judged(results, table, measure, goal)
        if found is None:
            verdicts.append(f'{goal_text(goal)}: not known')
            continue
        versus = f' (that is {other})' if goal.to == 'peers' else ''
        verdicts.append(f'{goal_text(goal)}{versus}: {"reached" if reached else "missed"}, {with_spread(found)}')
    return measure.name, figures, verdicts


def for_terminal(results, table, chosen):
    lines = ['', f'{"measure":<44} median [least–most] of the rounds']
    for measure in chosen:
        name, figures, verdicts = table_row(results, table, measure)
        lines.append(f'{name:<44} {", ".join(figures)}')
        lines += [f'{"":<46}{verdict}' for verdict in verdicts]
    for title, reason in results['missing'].items():
        lines.append(f'{title} was not measured: {reason}')
    return '\n'.join(lines)


# ---- the document ----

def by_hand(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return dict(HAND.findall(f.read()))


class Before:
    """The page as it stands, for what is not measured anew."""

    def __init__(self, path):
        self.goals, self.cells, self.commands, self.missed = {}, {}, {}, {}
        if not os.path.exists(path):
            return
        with open(path) as f:
            text = HAND.sub('', f.read())
        for section in text.split('\n## ')[1:]:
            self.read(section)

    def read(self, section):
        heading, *lines = section.splitlines()
        rows = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines if line.startswith('| ')]
        if heading == 'Goals':
            kept = [line for line in lines if line.startswith('| ')][1:]
            # A goal's text, without the peer that was the best then.
            self.goals = {(row[0], row[1].split(', ')[0]): (line, row[4]) for row, line in zip(rows[1:], kept) if row[4] != 'not measured'}
        elif rows and rows[0][0] == 'measure':
            self.cells.update({row[0]: dict(zip(rows[0], row)) for row in rows[1:]})
            commands = section.split('```')[1].strip().splitlines()
            self.commands.update(dict(zip((row[0] for row in rows[1:]), commands)))
            for line in lines:
                if line.startswith('- '):
                    self.missed.setdefault(line[2:].split(',', 1)[0], []).append(line[2:])


def hand_section(kept, name, at_first=''):
    return f'<!-- by hand: {name} -->\n{kept.get(name, at_first)}<!-- end by hand -->\n'


def machine_section(results, measured):
    rounds = [r for m in measured for r in results['measures'][m.name]['rounds']]
    lines = ['## Machine and versions', '', '| what | |', '|---|---|']
    lines += [f'| {what} | {value} |' for what, value in results['machine'].items()]
    lines.append(f'| servers and peers | {", ".join(results["versions"].values())} |')
    if rounds:
        loads, others, at = [r['load1'] for r in rounds], [r['others'] for r in rounds], [r['at'] for r in rounds]
        lines.append(f'| load average meanwhile | {min(loads)} to {max(loads)} |')
        lines.append(f'| cores busy with other things before a measure | {with_spread(judge.spread(others))} |')
        lines.append(f'| measured | {min(at)} to {max(at)} |')
    lines += [f'| {title} | not measured: {reason} |' for title, reason in results['missing'].items()]
    return '\n'.join(lines) + '\n'


def why_unknown(results, measure, goal, other):
    """Of a goal that nothing can be said about."""
    if measure.name not in results['measures']:
        return 'not measured'
    failed = [r['failed'] for r in results['measures'][measure.name]['rounds'] if 'failed' in r]
    if not judge.values(results, measure.name, goal.figure):
        return f'no figure: {failed[-1]}' if failed else 'no figure'
    return f"{other} was not measured beside it" if other else "no other scheduler was measured beside it"


def goals_section(results, table, before):
    lines, counts = ['| measure | goal | median [least–most] | of the goal | |', '|---|---|---|---|---|'], {True: 0, False: 0, None: 0}
    for measure in table:
        for goal in measure.goals:
            found, reached, other = judge.judged(results, table, measure, goal)
            text = goal_text(goal) + (f', {other}' if goal.to == 'peers' and other else '')
            if measure.name not in results['measures'] and (earlier := before.goals.get((measure.name, goal_text(goal)))):
                line, verdict = earlier
                counts[{'reached': True, '**missed**': False}.get(verdict)] += 1
                lines.append(line)
                continue
            counts[reached] += 1
            if found is None:
                lines.append(f'| {measure.name} | {text} | | | {why_unknown(results, measure, goal, other)} |')
                continue
            bound = goal.at_least if goal.at_least is not None else goal.at_most
            share = found[0] / bound if goal.at_least is not None else bound / found[0] if found[0] else float('inf')
            lines.append(f'| {measure.name} | {text} | {with_spread(found)} | {share:.2f} | {"reached" if reached else "**missed**"} |')
    said = f'Of {sum(counts.values())} goals {counts[True]} are reached, {counts[False]} missed, {counts[None]} not known.'
    return '\n'.join(['## Goals', '', said, '', *lines]) + '\n'


def missed_goals(results, table, measures):
    for measure in measures:
        for goal in measure.goals:
            found, reached, _ = judge.judged(results, table, measure, goal)
            if found is not None and not reached:
                bound = goal.at_least if goal.at_least is not None else goal.at_most
                by = f'{abs(found[0] / bound - 1):.0%}' if bound else f'{found[0]:,.0f}'
                yield f'{measure.name}, {goal_text(goal)}, by {by}'


def group_section(results, table, group, before, kept):
    measures = [m for m in table if m.group == group and (m.name in results['measures'] or m.name in before.cells)]
    figures = list(dict.fromkeys(f for m in measures for f in m.figures))
    lines = [f'## {HEADINGS.get(group, group)}', '', '| measure | ' + ' | '.join(figures) + ' | rounds |', '|---|' + '---|' * (len(figures) + 1)]
    for measure in measures:
        if measure.name not in results['measures']:
            earlier = before.cells[measure.name]
            lines.append(f'| {" | ".join(earlier.get(column, "") for column in ("measure", *figures, "rounds"))} |')
            continue
        cells = []
        for figure in figures:
            found = judge.spread(judge.values(results, measure.name, figure).values()) if figure in measure.figures else None
            cells.append(with_spread(found) if found else '')
        good = len(judge.values(results, measure.name, measure.figures[0]))
        failed = sum('failed' in r for r in results['measures'][measure.name]['rounds'])
        lines.append(f'| {measure.name} | {" | ".join(cells)} | {good}{f" of {good + failed}" if failed else ""} |')
    lines += ['', 'Commands (`--store` is a fresh one for each):', '', '```']
    lines += [results['measures'][m.name]['command'] if m.name in results['measures'] else before.commands[m.name] for m in measures]
    lines.append('```')
    missed = [text for m in measures for text in
              (missed_goals(results, table, [m]) if m.name in results['measures'] else before.missed.get(m.name, ()))]
    if missed:
        lines += ['', 'Missed:', ''] + [f'- {text}' for text in missed]
    return '\n'.join(lines) + '\n\n' + hand_section(kept, group)


def write_document(path, results, table):
    kept, before = by_hand(path), Before(path)
    measured = [m for m in table if m.name in results['measures']]
    groups = list(dict.fromkeys(m.group for m in table if m.name in results['measures'] or m.name in before.cells))
    parts = [INTRODUCTION, hand_section(kept, 'summary'), machine_section(results, measured), goals_section(results, table, before)]
    parts += [group_section(results, table, group, before, kept) for group in groups]
    # What was written about a group that is not measured any more is not thrown away.
    parts += [hand_section(kept, name) for name in kept if name not in groups and name != 'summary']
    with open(path, 'w') as f:
        f.write('\n'.join(parts))
