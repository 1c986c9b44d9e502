"""What was measured: medians, spread, ratios within a round, and whether a goal is reached."""
import statistics


def values(results, name, figure):
    """round -> value, of the rounds that gave one."""
    measure = results['measures'].get(name)
    if not measure:
        return {}
    return {r['round']: r[figure] for r in measure['rounds'] if isinstance(r.get(figure), (int, float))}


def spread(numbers):
    """(median, least, most), or nothing."""
    numbers = list(numbers)
    return (statistics.median(numbers), min(numbers), max(numbers)) if numbers else None


def ratios(results, name, other, figure):
    """Round by round, of one run alone."""
    measures = results['measures']
    if name not in measures or other not in measures or measures[name]['run'] != measures[other]['run']:
        return []
    ours, theirs = values(results, name, figure), values(results, other, figure)
    return [ours[r] / theirs[r] for r in ours if theirs.get(r)]


def best_peer(results, table, measure, figure, lower_is_better=False):
    """The name of the best of the other schedulers in the group, by median."""
    medians = {m.name: statistics.median(v.values()) for m in table
               if m.group == measure.group and m.program.startswith('versus/') and (v := values(results, m.name, figure))}
    if not medians:
        return None
    return (min if lower_is_better else max)(medians, key=medians.get)


def judged(results, table, measure, goal):
    """(spread of what the goal is about, whether it is reached, what it was held against); spread is None where it was not
    measured."""
    other = goal.to
    if other == 'peers':
        other = best_peer(results, table, measure, goal.figure, goal.at_most is not None)
    if goal.to:
        found = spread(ratios(results, measure.name, other, goal.figure)) if other else None
    else:
        found = spread(values(results, measure.name, goal.figure).values())
    if found is None:
        return None, None, other
    reached = found[0] >= goal.at_least if goal.at_least is not None else found[0] <= goal.at_most
    return found, reached, other
