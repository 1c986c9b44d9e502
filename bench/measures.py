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
    store: str                 # postgresql, sqlite, mariadb, redis or none
    group: str
    options: dict = dataclasses.field(default_factory=dict)  # name -> value; True: the name alone
    quick: dict = dataclasses.field(default_factory=dict)
    figures: tuple = ('per_second',)  # those in the table, in this order
    goals: tuple = ()
    rounds: int | None = None  # where it is slow: fewer than are asked for
    patience: int = 300        # seconds until it is given up
    seconds: int = 10          # about so long does a round take, with making and dropping its store; for --list


PURE = ('next/every_5_minutes', 'next/nightly', 'next/first_mondays', 'next/leap_days', 'next/in_the_gap', 'next/office_hours',
        'parse/every_5_minutes', 'parse/nightly', 'parse/first_mondays', 'parse/leap_days', 'parse/in_the_gap',
        'parse/office_hours', 'plan/one_fire', 'plan/a_day', 'expect/a_year', 'job/parse_file', 'job/from_json')
PURE_GOALS = {'next/every_5_minutes': 60, 'next/leap_days': 300}  # ns


def pure():
    for name in PURE:
        goals = (Goal('ns', at_most=PURE_GOALS[name]),) if name in PURE_GOALS else ()
        yield Measure(f'pure/{name}', 'programs/pure_bench', 'none', 'pure', {'benchmark': name}, figures=('ns',), goals=goals, seconds=2)


DRAIN_FIGURES = ('per_second', 'node_cpu_us_per_run', 'store_cpu_us_per_run')


LATENCY_FIGURES = ('p50_ms', 'p99_ms', 'max_ms')
STORES = ('postgresql', 'sqlite', 'mariadb')


def floor(name, store, group, options, quick=None, figures=DRAIN_FIGURES, seconds=4):
    return Measure(f'floor/{name}', f'floors/{store}_floor', store, group, options, quick or {}, figures, seconds=seconds)


def floors():
    for store, batches in (('postgresql', {'batch': 1000, 'connections': 2, 'together': True}),
                           ('sqlite', {'batch': 1000, 'connections': 1, 'together': True}),
                           ('mariadb', {'batch': 1000, 'connections': 2, 'together': True})):
        group, quick = f'drain/{store}', {'runs': 5_000}
        alone = {'batch': 1, 'connections': batches['connections']}
        for shape in ('jobs', 'periods'):
            yield floor(f'{store}/{shape}', store, group, {'shape': shape, 'runs': 20_000, **batches}, quick)
        yield floor(f'{store}/in_our_tables', store, group, {'shape': 'jobs', 'tables': 'matins', 'runs': 20_000, **batches}, quick)
        yield floor(f'{store}/single_commits', store, group, {'shape': 'jobs', 'runs': 2_000, **alone}, {'runs': 500})
        yield floor(f'{store}/latency', store, f'latency/{store}', {'measure': 'latency', 'runs': 1_000, 'seconds': 30, 'connections': 1},
                    {'runs': 100, 'seconds': 3}, LATENCY_FIGURES, seconds=32)
        yield floor(f'{store}/burst', store, f'burst/{store}',
                    {'measure': 'burst', 'runs': 2_000, 'batch': 500, 'connections': batches['connections']}, None,
                    ('started_ms', 'committed_ms'), seconds=3)


# A second, of the floor; of each store.
DRAIN_GOALS = {'postgresql': (55_000, 0.65), 'sqlite': (100_000, 0.5), 'mariadb': (15_000, 0.5)}


def drain_goals(store, shape, name, processes):
    per_second, of_floor = DRAIN_GOALS[store]
    goals = [Goal('per_second', at_least=per_second), Goal('per_second', at_least=of_floor, to=f'floor/{store}/{shape}')]
    if store == 'postgresql':
        goals.append(Goal('per_second', at_least=1.1, to='peers'))
    if processes > 1:
        goals.append(Goal('per_second', at_least=1.0, to=f'{name.rsplit("/", 1)[0]}/1'))
    return tuple(goals)


def drains():
    for store in STORES:
        for shape in ('jobs', 'periods'):
            for planned in (True, False):
                for processes in (1, 2):
                    options = {'shape': shape, 'processes': processes, 'runs': 20_000}
                    if planned:
                        options['planned'] = True
                    name = f"drain/{store}/{shape}/{'planned' if planned else 'from_nothing'}/{processes}"
                    yield Measure(name, 'drivers/drain', store, f'drain/{store}', options, {'runs': 2_000},
                                  figures=DRAIN_FIGURES, goals=drain_goals(store, shape, name, processes),
                                  seconds=20 if shape == 'jobs' else 6)


def single_commits():
    """One run at a time, so that each START and each end is a commit of its own."""
    yield Measure('drain/sqlite/single_commits', 'drivers/drain', 'sqlite', 'drain/sqlite',
                  {'shape': 'jobs', 'planned': True, 'slots': 1, 'runs': 2_000}, {'runs': 300}, figures=DRAIN_FIGURES,
                  goals=(Goal('per_second', at_least=0.8, to='floor/sqlite/single_commits'),), seconds=12)


def open_transactions():
    """The same backlog after the same hour of work, with and without a transaction that is as old as that hour."""
    for name, more, goals in (('none', {}, ()), ('an_hour', {'snapshot': True},
                                                 (Goal('per_second', at_least=0.5, to='open_transaction/postgresql/none'),))):
        yield Measure(f'open_transaction/postgresql/{name}', 'drivers/drain', 'postgresql', 'open_transaction/postgresql',
                      {'shape': 'jobs', 'planned': True, 'hour': True, **more, 'runs': 20_000}, {'runs': 2_000},
                      figures=(*DRAIN_FIGURES, 'dead_rows'), goals=goals, patience=600, seconds=35)


def latencies():
    for store in STORES:
        # Nothing is said of how late MariaDB may be.
        goals = () if store == 'mariadb' else (Goal('p50_ms', at_most=1), Goal('p99_ms', at_most=4), Goal('early', at_most=0))
        yield Measure(f'latency/{store}/minute', 'drivers/latency', store, f'latency/{store}',
                      {'runs': 2_000, 'seconds': 60}, {'runs': 200, 'seconds': 10},
                      figures=(*LATENCY_FIGURES, 'early'), goals=goals, seconds=83)
        if store != 'mariadb':
            yield Measure(f'latency/{store}/planned_by_another', 'drivers/other_planner', store, f'latency/{store}',
                          {'runs': 2_000, 'seconds': 60}, {'runs': 200, 'seconds': 10},
                          figures=(*LATENCY_FIGURES, 'early', 'planned_before_p50_ms'),
                          goals=(Goal('p50_ms', at_most=1.5), Goal('p99_ms', at_most=6), Goal('early', at_most=0)), seconds=83)
        goals = () if store == 'mariadb' else (Goal('max_ms', at_most=50), Goal('committed_ms', at_most=250), Goal('early', at_most=0))
        yield Measure(f'latency/{store}/burst', 'drivers/latency', store, f'burst/{store}',
                      {'runs': 2_000, 'seconds': 0}, {'runs': 200}, figures=('p50_ms', 'max_ms', 'committed_ms', 'early'),
                      goals=goals, seconds=23)


def quiet_nodes():
    for store in ('postgresql', 'sqlite'):
        for jobs in (10_000, 100_000):
            yield Measure(f'idle/{store}/{jobs}', 'drivers/idle', store, f'idle/{store}', {'jobs': jobs},
                          {'jobs': 1_000, 'seconds': 10, 'settle': 5, 'fires': 20},
                          figures=('resident_mib', 'cpu_ms_per_second', 'node_cpu_ms_per_second', 'store_cpu_ms_per_second',
                                   'store_alone_cpu_ms_per_second', 'transactions_per_second', 'p50_ms', 'p99_ms'),
                          goals=(Goal('resident_mib', at_most=20), Goal('cpu_ms_per_second', at_most=0.6),
                                 Goal('transactions_per_second', at_most=0.5), Goal('p50_ms', at_most=1), Goal('p99_ms', at_most=4)),
                          rounds=1, patience=900, seconds=310 if jobs > 10_000 else 280)


def first_runs():
    for store, most in (('postgresql', 25), ('sqlite', 15), ('mariadb', None)):
        yield Measure(f'first_run/{store}', 'drivers/first_run', store, f'first_run/{store}', {'starts': 7},
                      {'starts': 2}, figures=('p50_ms', 'max_ms'), goals=(Goal('p50_ms', at_most=most),) if most else (), seconds=20)
    for store in ('postgresql', 'sqlite'):
        for when, more in (('started', {}), ('standby', {'standby': True})):
            yield Measure(f'next_node/{store}/{when}', 'drivers/next_node', store, f'next_node/{store}', {'times': 7, **more},
                          {'times': 2}, figures=('p50_ms', 'max_ms'), goals=(Goal('max_ms', at_most=200),), rounds=3, seconds=32)


def execs():
    """What a call costs over what it runs."""
    for store, most in (('postgresql', 20), ('sqlite', 12)):
        yield Measure(f'exec/{store}', 'drivers/exec', store, f'exec/{store}', {'calls': 40}, {'calls': 5},
                      figures=('over_ms', 'p50_ms', 'true_p50_ms', 'max_ms'), goals=(Goal('over_ms', at_most=most),), seconds=5)


def leases():
    for pipeline in (1, 16):
        group, options = f'leases/{pipeline}', {'pipeline': pipeline, 'pairs': 400_000 if pipeline > 1 else 60_000}
        quick = {'pairs': 20_000}
        yield Measure(f'floor/redis/{pipeline}', 'floors/redis_floor', 'redis', group, options, quick, DRAIN_FIGURES, seconds=4)
        goals = (Goal('per_second', at_least=60_000),) if pipeline > 1 else ()
        yield Measure(f'leases/fenced/{pipeline}', 'drivers/leases', 'redis', group, options, quick, DRAIN_FIGURES, goals, seconds=6)
        yield Measure(f'leases/unfenced/{pipeline}', 'drivers/leases', 'redis', group, {**options, 'unfenced': True}, quick,
                      DRAIN_FIGURES, seconds=5)


def claims():
    for store in ('postgresql', 'sqlite'):
        for beside in ('nothing', 'not_due', 'jobs', 'due'):
            goals = [Goal('p99_ms', at_most=10)]
            if beside != 'nothing':
                goals.append(Goal('per_second', at_least=0.9, to=f'claims/{store}/nothing'))
            yield Measure(f'claims/{store}/{beside}', 'drivers/claims', store, f'claims/{store}', {'beside': beside},
                          {'rows': 20_000, 'runs': 2_000}, figures=('per_second', 'by_one_caller_per_second', 'p50_ms', 'p99_ms'),
                          goals=tuple(goals), rounds=3, patience=900, seconds=35 if beside == 'nothing' else 90)


def programs():
    for store in ('postgresql', 'sqlite'):
        yield Measure(f'commands/{store}/sustained', 'drivers/commands', store, f'commands/{store}', {'runs': 3_000},
                      {'runs': 300}, goals=(Goal('per_second', at_least=500),), rounds=3, seconds=10)
        yield Measure(f'commands/{store}/burst', 'drivers/commands', store, f'commands/{store}',
                      {'runs': 500, 'burst': True, 'slots': 500}, {'runs': 100}, figures=('started_ms', 'committed_ms'),
                      goals=(Goal('started_ms', at_most=1000),), rounds=3, seconds=16)


def deaths():
    for store in ('postgresql', 'sqlite'):
        yield Measure(f'takeover/{store}/node', 'drivers/takeover', store, f'takeover/{store}', {'times': 30}, {'times': 2},
                      figures=LATENCY_FIGURES, goals=(Goal('p99_ms', at_most=1000),), rounds=1, patience=900, seconds=90)
        yield Measure(f'takeover/{store}/host', 'drivers/host_gone', store, f'takeover/{store}', {'times': 30, 'lease_s': 5}, {'times': 3},
                      figures=(*LATENCY_FIGURES, 'after_lease_p50_ms', 'after_lease_p99_ms'),
                      goals=(Goal('p99_ms', at_most=5500), Goal('after_lease_p99_ms', at_most=500)), rounds=1, patience=900, seconds=60)


def outages():
    for store in ('postgresql', 'sqlite'):
        group, quick = f'outage/{store}', {'jobs': 2_000}
        yield Measure(f'outage/{store}/pass', 'drivers/outage', store, group, {'jobs': 100_000}, quick,
                      figures=('seconds', 'cpu_seconds', 'resident_mib'), goals=(Goal('seconds', at_most=5),), rounds=1, patience=1800,
                      seconds=60)
        yield Measure(f'outage/{store}/live', 'drivers/outage', store, group, {'jobs': 100_000, 'live': 'running'}, quick,
                      figures=('seconds', 'resident_mib', *LATENCY_FIGURES), goals=(Goal('max_ms', at_most=100),), rounds=1,
                      patience=1800, seconds=90)
        # What falls due while the first node after the outage has not planned yet: nothing is said of that.
        yield Measure(f'outage/{store}/returning', 'drivers/outage', store, group, {'jobs': 100_000, 'live': 'returning'}, quick,
                      figures=('seconds', 'resident_mib', *LATENCY_FIGURES), rounds=1, patience=1800, seconds=90)


def long_measures():
    """Those that take minutes: one round each."""
    for store in ('postgresql', 'sqlite'):
        yield Measure(f'cron/{store}', 'drivers/cron', store, f'cron/{store}', {'minutes': 10}, {'jobs': 100, 'minutes': 1},
                      figures=('p50_ms', 'p99_ms', 'max_ms', 'missed', 'twice', 'cpu_seconds'),
                      goals=(Goal('p99_ms', at_most=30), Goal('missed', at_most=0), Goal('twice', at_most=0),
                             Goal('cpu_seconds', at_most=0.5)), rounds=1, patience=900, seconds=640)
        yield Measure(f'purge/{store}', 'drivers/purge', store, f'purge/{store}', {'seconds': 20}, {'rows': 20_000, 'seconds': 4},
                      figures=('purged_per_second', 'call_p50_ms', 'p50_ms', 'p99_ms', 'max_ms'),
                      goals=(Goal('p99_ms', at_most=100),), rounds=1, patience=900, seconds=60)


def drivers():
    return [*drains(), *single_commits(), *open_transactions(), *latencies(), *quiet_nodes(), *first_runs(), *execs(), *claims(),
            *programs(), *deaths(), *outages(), *long_measures(), *leases()]


def peers():
    """On the same server as the drains of PostgreSQL, and BullMQ beside them on Redis."""
    for name, store, runs in (('graphile_worker', 'postgresql', 20_000), ('pg_boss', 'postgresql', 20_000), ('bullmq', 'redis', 20_000),
                              ('river', 'postgresql', 20_000), ('db_scheduler', 'postgresql', 20_000), ('quartz', 'postgresql', 1_500)):
        for processes in (1, 2):
            yield Measure(f'peer/{name}/{processes}', f'versus/{name}', store, 'drain/postgresql', {'processes': processes, 'runs': runs},
                          {'runs': runs // 3}, DRAIN_FIGURES, seconds=12)


def all_measures():
    return [*pure(), *floors(), *drivers(), *peers()]
