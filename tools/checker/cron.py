"""Fires of a schedule, slowly and obviously: every minute of every local day is looked at.

Cron of 5 fields as Vixie's, the macros, and `@every DURATION`; clock changes by the rule of Debian's cron(8):
  - a schedule with `*` in its minute or hour field follows the wall clock through both passes of a repeated hour, and
    has nothing to match in a missing one;
  - any other fires once for each matching wall-clock time: for one that does not exist at the first instant after the
    gap (changes of up to 3 hours), for one that comes twice at its first pass.
"""
import re
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

MACROS = {'@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *', '@monthly': '0 0 1 * *', '@weekly': '0 0 * * 0',
          '@daily': '0 0 * * *', '@midnight': '0 0 * * *', '@hourly': '0 * * * *'}
MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split()
DAYS = 'sun mon tue wed thu fri sat'.split()
UNITS = {'ms': 0.001, 's': 1, 'm': 60, 'h': 3600, 'd': 86400}
LONGEST_CHANGE = 3 * 3600


class Cron:
    """One parsed expression of 5 fields."""

    def __init__(self, expression):
        fields = MACROS.get(expression, expression).split()
        if len(fields) != 5:
            raise ValueError(f'{expression!r}: not 5 fields')
        minute, hour, dom, month, dow = fields
        self.minutes, self.hours = parse_field(minute, 0, 59), parse_field(hour, 0, 23)
        self.doms, self.months = parse_field(dom, 1, 31), parse_field(month, 1, 12, MONTHS)
        self.dows = {d % 7 for d in parse_field(dow, 0, 7, DAYS)}
        self.both_days = dom.startswith('*') or dow.startswith('*')
        self.interval = minute.startswith('*') or hour.startswith('*')

    def has_day(self, day):
        if day.month not in self.months:
            return False
        by_dom, by_dow = day.day in self.doms, day.isoweekday() % 7 in self.dows
        return by_dom and by_dow if self.both_days else by_dom or by_dow

    def times_of(self, day):
        """Matching wall-clock times of a day, as the clock on the wall should show them."""
        if self.has_day(day):
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    yield datetime(day.year, day.month, day.day, hour, minute)


def parse_field(text, low, high, names=()):
    values = set()
    for part in text.lower().split(','):
        span, _, step = part.partition('/')
        if span == '*':
            first, last = low, high
        elif '-' in span:
            first, last = (value_of(end, low, names) for end in span.split('-', 1))
        else:
            first = value_of(span, low, names)
            last = high if step else first
        if not low <= first <= last <= high:
            raise ValueError(f'{part!r}: not within {low}-{high}')
        values.update(range(first, last + 1, int(step or 1)))
    return values


def value_of(text, low, names):
    return names.index(text) + low if text in names else int(text)


@lru_cache(maxsize=None)
def zone(name):
    return timezone.utc if name == 'UTC' else ZoneInfo(name)


def local(instant, zone_name):
    """The wall clock of a zone at an instant."""
    return datetime.fromtimestamp(instant, zone(zone_name)).replace(tzinfo=None)


def instants_of(wall, zone_name):
    """The instants at which a zone's clock shows `wall`: none, one or two."""
    found = {wall.replace(tzinfo=zone(zone_name), fold=fold).timestamp() for fold in (0, 1)}
    return sorted(t for t in found if local(t, zone_name) == wall)


def end_of_gap(wall, zone_name):
    """-> (the first instant after the gap that swallows `wall`, the gap's length)"""
    a, b = (wall.replace(tzinfo=zone(zone_name), fold=fold).timestamp() for fold in (1, 0))
    low, high, length = int(min(a, b)), int(max(a, b)), abs(b - a)
    offset = local(low, zone_name) - datetime.fromtimestamp(low, timezone.utc).replace(tzinfo=None)
    while high - low > 1:                               # the last second of the old offset, by halves
        middle = (low + high) // 2
        same = local(middle, zone_name) - datetime.fromtimestamp(middle, timezone.utc).replace(tzinfo=None) == offset
        low, high = (middle, high) if same else (low, middle)
    return high, length


def fires(expression, zone_name, first, last):
    """-> (instant, nominal wall-clock time), ascending, from `first` to `last`, both included."""
    if expression.startswith('@every '):
        yield from every(seconds_of(expression[7:]), zone_name, first, last)
        return
    cron, found = Cron(expression), {}
    day, end = local(first, zone_name).date() - timedelta(days=2), local(last, zone_name).date() + timedelta(days=1)
    while day <= end:
        for wall in cron.times_of(day):
            for instant in chosen(cron, wall, zone_name):
                found.setdefault(instant, wall)         # of several at the end of a gap, the earliest names it
        day += timedelta(days=1)
    yield from sorted((t, wall) for t, wall in found.items() if first <= t <= last)


def chosen(cron, wall, zone_name):
    """The instants at which a fire of this wall-clock time happens, by the rule above."""
    instants = instants_of(wall, zone_name)
    if cron.interval:
        return instants
    if instants:
        return instants[:1]
    end, length = end_of_gap(wall, zone_name)
    return [end] if length <= LONGEST_CHANGE else []


def every(step, zone_name, first, last):
    """Multiples of the step since 1970, so that restarts and nodes agree."""
    due = -(-first // step) * step
    while due <= last:
        yield due, local(due, zone_name)
        due += step


def seconds_of(text):
    parts = re.findall(r'(\d+)(ms|s|m|h|d)', text)
    if not parts or ''.join(n + unit for n, unit in parts) != text.strip():
        raise ValueError(f'{text!r}: not a length of time')
    return sum(int(n) * UNITS[unit] for n, unit in parts)


# ---- periods ------------------------------------------------------------------------------------------------------

def period_key(due, nominal, kind, shift, zone_name):
    """The text that names the period: 2026-10-30, 2026-W44, 2026-10, or for hour and fire the UTC instant of the start."""
    if kind == 'fire':
        return instant_text(due)
    if kind == 'hour':
        hours = shift_of(shift, 'h')
        return instant_text(hour_start(due, zone_name) + 3600 * hours)
    day = shifted_day(nominal.date(), shift)
    if kind == 'day':
        return day.isoformat()
    if kind == 'week':
        year, week, _ = day.isocalendar()
        return f'{year:04}-W{week:02}'
    if kind == 'month':
        return f'{day.year:04}-{day.month:02}'
    raise ValueError(f'{kind!r}: no kind of period')


def instant_text(instant):
    return datetime.fromtimestamp(instant, timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')


def hour_start(instant, zone_name):
    wall = local(instant, zone_name)
    return instant - wall.minute * 60 - wall.second


def shift_of(shift, unit):
    return int(shift[:-1]) if shift and shift.endswith(unit) else 0


def shifted_day(day, shift):
    months = shift_of(shift, 'M')
    if months:
        number = day.year * 12 + day.month - 1 + months
        last = date((number + 1) // 12, (number + 1) % 12 + 1, 1) - timedelta(days=1)
        day = last.replace(day=min(day.day, last.day))
    return day + timedelta(days=shift_of(shift, 'd') + 7 * shift_of(shift, 'w'))
