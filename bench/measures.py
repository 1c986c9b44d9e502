"""The table of all measures: what `./dev bench` runs, what it shows, and what is aimed at.

A measure is one command line of bench/README.md's interface. `--store URL` is added by the runner; `quick` replaces
options for `--quick`. Measures of one `group` are compared, so they run interleaved, round after round."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Goal:
    """A figure's bound: at_least or at_most, in the figure's own unit; or a ratio to another measure of the same group
    (`to` is its name, or `peers` for the best of them, in the same figure, round by round)."""
    figure: str
    at_least: float | None = None
    at_most: float | None = None
    to: str | None = None


@dataclasses.dataclass(frozen=True)
class Measure:
    name: str                  # what it measures, from the general to the special: 'drain/postgresql/jobs/planned'
    program: str               # 'floors/postgresql_floor', 'drivers/drain' below build/bench; 'versus/graphile_worker'
    store: str                 # postgresql, sqlite, redis or none
    group: str
    options: dict = dataclasses.field(default_factory=dict)  # name -> value; True: the name alone
    quick: dict = dataclasses.field(default_factory=dict)
    figures: tuple = ('per_second',)  # those in the table, in this order
    goals: tuple = ()
    rounds: int | None = None  # where it is slow: fewer than are asked for
    patience: int = 300        # seconds until it is given up


PURE = ('next/every_5_minutes', 'next/nightly', 'next/first_mondays', 'next/leap_days', 'next/in_the_gap', 'next/office_hours',
        'parse/every_5_minutes', 'parse/nightly', 'parse/first_mondays', 'parse/leap_days', 'parse/in_the_gap',
        'parse/office_hours', 'plan/one_fire', 'plan/a_day', 'expect/a_year', 'job/parse_file', 'job/from_json')
PURE_GOALS = {'next/every_5_minutes': 60, 'next/leap_days': 300}  # ns


def pure():
    for name in PURE:
        goals = (Goal('ns', at_most=PURE_GOALS[name]),) if name in PURE_GOALS else ()
        yield Measure(f'pure/{name}', 'programs/pure_bench', 'none', 'pure', {'benchmark': name}, figures=('ns',), goals=goals)


DRAIN_FIGURES = ('per_second', 'node_cpu_us_per_run', 'store_cpu_us_per_run')


def floor(name, store, group, options, quick=None, figures=DRAIN_FIGURES):
    return Measure(f'floor/{name}', f'floors/{store}_floor', store, group, options, quick or {}, figures)


def floors():
    for store, batches in (('postgresql', {'batch': 1000, 'connections': 2, 'together': True}),
                           ('sqlite', {'batch': 1000, 'connections': 1, 'together': True})):
        group, quick = f'drain/{store}', {'runs': 5_000}
        alone = {'batch': 1, 'connections': batches['connections']}
        for shape in ('jobs', 'periods'):
            yield floor(f'{store}/{shape}', store, group, {'shape': shape, 'runs': 20_000, **batches}, quick)
        yield floor(f'{store}/in_our_tables', store, group, {'shape': 'jobs', 'tables': 'matins', 'runs': 20_000, **batches}, quick)
        yield floor(f'{store}/single_commits', store, group, {'shape': 'jobs', 'runs': 2_000, **alone}, {'runs': 500})
        yield floor(f'{store}/latency', store, f'latency/{store}', {'measure': 'latency', 'runs': 1_000, 'seconds': 30, 'connections': 1},
                    {'runs': 100, 'seconds': 3}, ('p50_ms', 'p99_ms', 'max_ms'))
        yield floor(f'{store}/burst', store, f'burst/{store}',
                    {'measure': 'burst', 'runs': 2_000, 'batch': 500, 'connections': batches['connections']}, None,
                    ('started_ms', 'committed_ms'))


def drain_goals(store, shape, name, per_second, processes):
    of_floor = {'postgresql': 0.65, 'sqlite': 0.5}[store]
    goals = [Goal('per_second', at_least=per_second), Goal('per_second', at_least=of_floor, to=f'floor/{store}/{shape}')]
    if store == 'postgresql':
        goals.append(Goal('per_second', at_least=1.1, to='peers'))
    if processes > 1:
        goals.append(Goal('per_second', at_least=1.0, to=f'{name.rsplit("/", 1)[0]}/1'))
    return tuple(goals)


def drains():
    for store, per_second in (('postgresql', 55_000), ('sqlite', 100_000)):
        for shape in ('jobs', 'periods'):
            for planned in (True, False):
                for processes in (1, 2):
                    options = {'shape': shape, 'processes': processes, 'runs': 20_000}
                    if planned:
                        options['planned'] = True
                    name = f"drain/{store}/{shape}/{'planned' if planned else 'from_nothing'}/{processes}"
                    yield Measure(name, 'drivers/drain', store, f'drain/{store}', options, {'runs': 2_000},
                                  figures=DRAIN_FIGURES,
                                  goals=drain_goals(store, shape, name, per_second, processes))


def latencies():
    for store in ('postgresql', 'sqlite'):
        yield Measure(f'latency/{store}/minute', 'drivers/latency', store, f'latency/{store}',
                      {'runs': 2_000, 'seconds': 60}, {'runs': 200, 'seconds': 10},
                      figures=('p50_ms', 'p99_ms', 'max_ms', 'early'),
                      goals=(Goal('p50_ms', at_most=1), Goal('p99_ms', at_most=4), Goal('early', at_most=0)))
        yield Measure(f'latency/{store}/burst', 'drivers/latency', store, f'burst/{store}',
                      {'runs': 2_000, 'seconds': 0}, {'runs': 200},
                      figures=('p50_ms', 'max_ms', 'committed_ms', 'early'),
                      goals=(Goal('max_ms', at_most=50), Goal('committed_ms', at_most=250),
                             Goal('early', at_most=0)))


def quiet_nodes():
    for store in ('postgresql', 'sqlite'):
        for jobs in (10_000, 100_000):
            yield Measure(f'idle/{store}/{jobs}', 'drivers/idle', store, f'idle/{store}/{jobs}', {'jobs': jobs},
                          {'jobs': 1_000, 'seconds': 10, 'settle': 5},
                          figures=('resident_mib', 'node_cpu_ms_per_second') + (
                              ('store_cpu_ms_per_second', 'transactions_per_second') if store == 'postgresql' else ()),
                          goals=(Goal('resident_mib', at_most=20),) + (
                              (Goal('transactions_per_second', at_most=0.5),) if store == 'postgresql' else ()),
                          rounds=1, patience=900)


def first_runs():
    for store, most in (('postgresql', 25), ('sqlite', 15)):
        yield Measure(f'first_run/{store}', 'drivers/first_run', store, f'first_run/{store}', {'starts': 7},
                      {'starts': 2}, figures=('p50_ms', 'max_ms'), goals=(Goal('p50_ms', at_most=most),))


def execs():
    """What a call costs over what it runs."""
    for store, most in (('postgresql', 20), ('sqlite', 12)):
        yield Measure(f'exec/{store}', 'drivers/exec', store, f'exec/{store}', {'calls': 40}, {'calls': 5},
                      figures=('over_ms', 'p50_ms', 'true_p50_ms', 'max_ms'), goals=(Goal('over_ms', at_most=most),))


def leases():
    for pipeline in (1, 16):
        group, options = f'leases/{pipeline}', {'pipeline': pipeline, 'pairs': 400_000 if pipeline > 1 else 60_000}
        quick = {'pairs': 20_000}
        yield Measure(f'floor/redis/{pipeline}', 'floors/redis_floor', 'redis', group, options, quick, DRAIN_FIGURES)
        goals = (Goal('per_second', at_least=60_000),) if pipeline > 1 else ()
        yield Measure(f'leases/fenced/{pipeline}', 'drivers/leases', 'redis', group, options, quick, DRAIN_FIGURES, goals)
        yield Measure(f'leases/unfenced/{pipeline}', 'drivers/leases', 'redis', group, {**options, 'unfenced': True}, quick,
                      DRAIN_FIGURES)


def single_commits():
    """One run at a time, so that each START and each end is a commit of its own."""
    yield Measure('drain/sqlite/single_commits', 'drivers/drain', 'sqlite', 'drain/sqlite',
                  {'shape': 'jobs', 'planned': True, 'slots': 1, 'runs': 2_000}, {'runs': 300}, figures=DRAIN_FIGURES,
                  goals=(Goal('per_second', at_least=0.8, to='floor/sqlite/single_commits'),))


def claims():
    for store in ('postgresql', 'sqlite'):
        for beside in ('nothing', 'not_due', 'due'):
            goals = [Goal('p99_ms', at_most=10)]
            if beside != 'nothing':
                goals.append(Goal('per_second', at_least=0.9, to=f'claims/{store}/nothing'))
            yield Measure(f'claims/{store}/{beside}', 'drivers/claims', store, f'claims/{store}', {'beside': beside},
                          {'rows': 20_000, 'runs': 2_000}, figures=('per_second', 'p50_ms', 'p99_ms'), goals=tuple(goals), rounds=3,
                          patience=600)


def programs():
    for store in ('postgresql', 'sqlite'):
        yield Measure(f'commands/{store}/sustained', 'drivers/commands', store, f'commands/{store}', {'runs': 3_000},
                      {'runs': 300}, goals=(Goal('per_second', at_least=500),), rounds=3)
        yield Measure(f'commands/{store}/burst', 'drivers/commands', store, f'commands/{store}',
                      {'runs': 500, 'burst': True, 'slots': 500}, {'runs': 100}, figures=('started_ms', 'committed_ms'),
                      goals=(Goal('started_ms', at_most=1000),), rounds=3)


def long_measures():
    """Those that take minutes: one round each."""
    for store in ('postgresql', 'sqlite'):
        yield Measure(f'cron/{store}', 'drivers/cron', store, f'cron/{store}', {'minutes': 10}, {'jobs': 100, 'minutes': 1},
                      figures=('p50_ms', 'p99_ms', 'max_ms', 'missed', 'twice', 'cpu_seconds'),
                      goals=(Goal('p99_ms', at_most=30), Goal('missed', at_most=0), Goal('twice', at_most=0),
                             Goal('cpu_seconds', at_most=0.5)), rounds=1, patience=900)
        yield Measure(f'takeover/{store}', 'drivers/takeover', store, f'takeover/{store}', {'times': 30}, {'times': 2},
                      figures=('p50_ms', 'p99_ms', 'max_ms'), goals=(Goal('p99_ms', at_most=1000),), rounds=1, patience=900)
        yield Measure(f'outage/{store}', 'drivers/outage', store, f'outage/{store}', {'jobs': 100_000}, {'jobs': 2_000},
                      figures=('seconds', 'cpu_seconds', 'resident_mib'), goals=(Goal('seconds', at_most=5),), rounds=1, patience=1800)
        yield Measure(f'purge/{store}', 'drivers/purge', store, f'purge/{store}', {'seconds': 20}, {'rows': 20_000, 'seconds': 4},
                      figures=('purged_per_second', 'call_p50_ms', 'p50_ms', 'p99_ms', 'max_ms'),
                      goals=(Goal('p99_ms', at_most=100),), rounds=1, patience=900)


def drivers():
    return [*drains(), *single_commits(), *latencies(), *quiet_nodes(), *first_runs(), *execs(),
            *claims(), *programs(), *long_measures(), *leases()]


def peers():
    """On the same server as the drains of PostgreSQL, and BullMQ beside them on Redis."""
    for name, store, runs in (('graphile_worker', 'postgresql', 20_000), ('pg_boss', 'postgresql', 20_000), ('bullmq', 'redis', 20_000),
                              ('river', 'postgresql', 20_000), ('db_scheduler', 'postgresql', 20_000), ('quartz', 'postgresql', 1_500)):
        for processes in (1, 2):
            yield Measure(f'peer/{name}/{processes}', f'versus/{name}', store, 'drain/postgresql', {'processes': processes, 'runs': runs},
                          {'runs': runs // 3}, DRAIN_FIGURES)


def all_measures():
    return [*pure(), *floors(), *drivers(), *peers()]
