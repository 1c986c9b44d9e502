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
    store: str                 # postgresql, sqlite or redis
    group: str
    options: dict = dataclasses.field(default_factory=dict)  # name -> value; True: the name alone
    quick: dict = dataclasses.field(default_factory=dict)
    figures: tuple = ('per_second',)  # those in the table, in this order
    goals: tuple = ()
    rounds: int | None = None  # where it is slow: fewer than are asked for
    patience: int = 300        # seconds until it is given up


def floors():
    return []


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
                                  figures=('per_second', 'node_cpu_us_per_run', 'store_cpu_us_per_run'),
                                  goals=(Goal('per_second', at_least=per_second),))


def drivers():
    return list(drains())


def peers():
    return []


def all_measures():
    return floors() + drivers() + peers()
