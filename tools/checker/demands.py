"""What a job's schedule demands, against what became of its periods: missed, late, early, policy, order, caps."""
import heapq
from bisect import bisect_right
from collections import defaultdict

from history import INF, LIVE
from targets import targets


def unmatched(windows, starts):
    """Label-blind: every window [due, due + deadline] needs a run of its own that started inside it.  Earliest deadline
    first is optimal for interval targets with unit demand."""
    starts, used, unmet = sorted(starts), set(), []
    for low, high in sorted(windows, key=lambda window: window[1]):
        found = next((k for k, start in enumerate(starts) if k not in used and low <= start <= high), None)
        if found is None:
            unmet.append((low, high))
        else:
            used.add(found)
    return unmet


class Demands:
    def __init__(self, job, of, runs, cut, bad, stats):
        self.j, self.name, self.of, self.bad, self.stats = job, job['job'], of, bad, stats
        self.cut, self.audited = cut['db'], cut.get('audit', True)
        self.all = targets(job, self.cut)
        self.judged = [p for p in self.all if p <= self.cut - job['deadline']]      # the others are still open at the cut
        self.gens = {p: generations for (name, p), generations in runs.items() if name == self.name}
        self.runs = [run for generations in self.gens.values() for run in generations]
        self.done = {p: self.settled_spans(generations) for p, generations in self.gens.items()}

    @staticmethod
    def settled_spans(generations):
        """When a period was DONE or SKIPPED: until a later generation opened."""
        spans = []
        for run, later in zip(generations, generations[1:] + [None]):
            if run.settled is None:
                continue
            end = later.opened if later else INF
            if spans and spans[-1][1] >= run.settled:                               # opened and settled in one instant
                spans[-1] = spans[-1][0], end
            else:
                spans.append((run.settled, end))
        return spans

    def is_open(self, p, t):
        return not any(a <= t < b for a, b in self.done.get(p, ()))

    def waits_for_a_person(self, p, t):
        """FAILED(held) is a gap that no trigger takes: whether it has a place under the cap is left open."""
        generations = self.gens.get(p, ())
        return any(run.held_from is not None and run.held_from <= t < (later.opened if later else INF)
                   for run, later in zip(generations, [*generations[1:], None]))

    def check(self):
        self.check_misses()
        self.check_strays()
        self.check_gaps()
        self.check_how_far()
        self.check_how_many()
        if self.j.get('ordered'):
            self.check_order()
        if self.j.get('blind') and self.j['policy'] == 'each':
            self.check_blind()

    def check_misses(self):
        """I13, I14.  A generation that reopens a settled period is due when it was opened."""
        misses = defaultdict(list)
        for e in sorted(self.of['miss'], key=lambda e: e['db']):
            if e['job'] == self.name:
                misses[e['period']].append(e['db'])
        for p in self.judged:
            due, generations = p, self.gens.get(p, [None])
            for run, later in zip(generations, generations[1:] + [None]):
                if later and run.settled is None:
                    continue                                                        # judged as the later generation
                told = next((t for t in misses[p] if t >= due), None)
                self.check_miss(p, due, run, told)
                if later:
                    due = later.opened

    def check_miss(self, p, due, run, told):
        j, end, key = self.j, run and run.end, (self.name, p)
        limit = due + j['deadline'] + j['audit_cadence'] + j['audit_grace']
        if end is None:
            if self.audited:
                self.check_told(key, told, limit)
            kept = j['policy'] == 'each' and p >= self.cut - j['retention']
            if (kept or not self.audited) and limit <= self.cut:
                self.bad('I14', f'policy {j["policy"]}: a period inside the retention has no disposition', run=key)
            self.stats['reported_misses'] += told is not None
        elif end['op'] == 'commit':
            if self.audited and told is None and end['db'] > limit:
                self.bad('I13', 'LATE and never reported', run=key)
            self.stats['late_starts'] += run.starts[:1] > [due + j['grace']]
            self.stats['late_commits'] += end['db'] > due + j['deadline']

    def check_told(self, key, told, limit):
        if told is None and limit <= self.cut:
            self.bad('I13', 'SILENT MISS: no final state and no miss record', run=key)
        if told is not None and told > limit:
            self.bad('I13', f'miss reported {told - limit:.1f} s too late', run=key)

    def check_strays(self):
        """I15"""
        expected = set(self.all)
        for run in self.runs:
            p = run.key[1]
            if run.starts and run.starts[0] < p:
                self.bad('I15', 'started before its due time', run=run.key, early=round(p - run.starts[0], 3))
            changed = run.skip == 'changed' and not run.starts
            if changed and p in expected:
                self.bad('I15', 'SKIPPED(changed), but the schedule in force contains it', run=run.key)
            later = next((other for other in self.gens[p] if other.key[2] > run.key[2]), None)
            ahead = later is not None and later.opened <= p and not run.starts  # deleted before it was due
            if run.state is None or changed or ahead or run.by_hand():
                continue                                                        # never planned, or rightly withdrawn
            if p not in expected and p <= self.cut:                             # later ones may be planned ahead
                self.bad('I15', 'run for a period the schedule does not contain', run=run.key)

    def check_gaps(self):
        """I14: of one outage, skip runs nothing, latest only the newest, each all that was not SKIPPED"""
        for gap in self.of['gap']:
            if gap['job'] != self.name:
                continue
            missed = [p for p in self.judged if gap['from'] <= p < gap['to']]
            ran = [p for p in missed if any(run.starts and not run.by_hand() for run in self.gens.get(p, ()))]
            kept = [p for p in missed if not any(run.skip for run in self.gens.get(p, ()))]
            want = {'skip': [], 'latest': missed[-1:], 'each': kept}[self.j['policy']]
            if ran != want:
                self.bad('I14', f'misfire policy {self.j["policy"]}', job=self.name, ran=ran, want=want)

    def check_order(self):
        """I16: when a period starts, every older one is DONE or SKIPPED.  FAILED, final or not, blocks."""
        acts = [(t, 1, run.key[1]) for run in self.runs for t in run.starts]
        for p, spans in self.done.items():
            acts += [(a, 0, p) for a, _ in spans] + [(b, 2, p) for _, b in spans if b < INF]
        owed = set(self.all)
        open_, oldest = set(owed), list(self.all)                                   # a sorted list is a heap
        for t, kind, p in sorted(acts):
            if kind == 0:
                open_.discard(p)
            elif kind == 2:
                if p not in owed:
                    continue
                open_.add(p)
                heapq.heappush(oldest, p)
            else:
                while oldest and oldest[0] not in open_:
                    heapq.heappop(oldest)
                if oldest and oldest[0] < p:
                    self.bad('I16', 'started while an older period was neither DONE nor SKIPPED',
                             run=(self.name, p), older=oldest[0], at=t)

    def newer_owed(self, p, due_by, t, held):
        newer = self.all[bisect_right(self.all, p):bisect_right(self.all, due_by)]
        return sum(self.is_open(q, t) and (held or not self.waits_for_a_person(q, t)) for q in newer)

    def check_how_far(self):
        """I17: back-fill goes no further than the source's retention and the newest max_periods owed at the trigger"""
        j, cap = self.j, self.j.get('max_periods', INF)
        for run in self.runs:
            p = run.key[1]
            if run.backfill and run.planned is not None and p < run.planned - j['retention']:
                self.bad('I17', 'back-filled a period older than the data retention', run=run.key)
            if run.by_hand():
                continue                                                            # a person may go further back
            for t in run.first:
                if self.newer_owed(p, t - j['grace'], t, held=False) >= cap:
                    self.bad('I17', 'ran though max_periods newer ones were owed', run=run.key)
            # What was skipped with it, in the same transaction, was owed still.
            if run.skip == 'cap' and self.newer_owed(p, run.settled, run.settled - 5e-7, held=True) < cap:
                self.bad('I17', 'SKIPPED(cap) though among the newest max_periods', run=run.key)
        owed = [p for p in self.judged if self.is_open(p, self.cut) and not self.waits_for_a_person(p, self.cut)]
        for p in owed[:-cap] if cap < INF else ():
            if p not in self.gens or self.gens[p][-1].state not in LIVE:
                self.bad('I17', 'max_periods newer ones are owed, and it was not SKIPPED(cap)', run=(self.name, p))

    def check_how_many(self):
        """I17: no more than max_parallel back-fill runs at a time"""
        edges = [(t, step) for run in self.runs for (a, b), filling in zip(run.busy, run.filling) if filling
                 for t, step in ((a, 1), (b, -1))]
        now = most = 0
        for _, step in sorted(edges):
            now += step
            most = max(most, now)
        if most > self.j.get('max_parallel', INF):
            self.bad('I17', f'{most} back-fill runs at a time', job=self.name)

    def check_blind(self):
        """I13 once more, ignoring what the system SAYS: times of effects alone"""
        times = [e['db'] for e in self.of['effect'] if e['job'] == self.name and e.get('step', 0) == 0]
        for window in unmatched([(p, p + self.j['deadline']) for p in self.judged], times):
            self.bad('I13', 'label-blind: no effect inside the window', job=self.name, window=window)
