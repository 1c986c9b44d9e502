"""The periods that must exist, enumerated from a job's definition alone.

A job_def gives one of
  every, start [, until]          a fixed interval, in seconds
  schedule [, timezone] , start   cron of 5 fields, a macro such as @daily, or `@every 90s` (cron.py)
and optionally
  until        nothing is due after this
  paused       [[from, to], ...]: nothing is due in these
  period       fire (default), hour, day, week or month: of several fires in one period the first names it
  biz_date     -1d, -1h, -1w, -1M: shifts the period's key from the fire's own day
A version of a job that changed: `versions: [{from, ...the keys above}]`, each in force until the next one's `from`.
"""
import cron
from history import INF


def targets(job, upto):
    """-> ascending due times, `upto` included."""
    return [due for due, _ in periods(job, upto)]


def periods(job, upto):
    """-> [(due, key of the period)], ascending."""
    found, seen = [], set()
    versions = job.get('versions') or [{'from': job['start']}]
    for number, version in enumerate(versions):
        d = {**job, **version}
        end = versions[number + 1]['from'] if number + 1 < len(versions) else INF
        first = max(d['start'], version['from'])
        last = min(upto, d.get('until') or upto)
        for due, nominal in fires(d, first, last):
            if due >= end:
                break
            key = cron.period_key(due, nominal, d.get('period', 'fire'), d.get('biz_date'), d.get('timezone', 'UTC'))
            name = due if d.get('period', 'fire') == 'fire' else key
            if name in seen or any(a <= due < b for a, b in d.get('paused', [])):
                continue
            seen.add(name)
            found.append((due, key))
    return found


def fires(d, first, last):
    """-> (due, nominal local time) from `first` to `last`, both included."""
    if 'every' in d:
        due = d['start']
        while due <= last:
            if due >= first:
                yield due, cron.local(due, d.get('timezone', 'UTC'))
            due += d['every']
    else:
        yield from cron.fires(d['schedule'], d.get('timezone', 'UTC'), first, last)
