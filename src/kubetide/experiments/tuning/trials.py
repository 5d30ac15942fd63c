"""Runs the proposals of a search: each combination under several conditions (days, loads) and seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kubetide.experiments.policies.evaluate import total_of
from kubetide.experiments.sweeps.grid import Axis, Variant, variants
from kubetide.experiments.sweeps.results import spread
from kubetide.experiments.sweeps.sweep import Cell, Store, Workers, run_sweep
from kubetide.experiments.tuning.goal import Constraint, TuneError
from kubetide.experiments.tuning.knobs import Knob
from kubetide.experiments.tuning.search import Trial, best_of, search
from kubetide.simulate.outcome.summary import Summary
from kubetide.simulate.scenarios.scenario import Scenario, ScenarioError


class Conditions:
    """Runs one scenario under every combination of conditions, on every seed.

    Args:
        path: The scenario's file.
        axes: The conditions, settings with several values, as of a sweep.
        done: Called after each cell.
    Raises: ScenarioError for a condition that cannot be.
    """

    def __init__(
        self,
        path: Path,
        scenario: Scenario,
        axes: Sequence[Axis],
        seeds: Sequence[int],
        *,
        workers: Workers,
        store: Store,
        done: Callable[[], None],
    ) -> None:
        self._path = path
        self._seeds = seeds
        self._workers = workers
        self._store = store
        self._done = done
        self.scenarios = [_there(one) for one in variants(path, scenario, axes, ())]

    def __len__(self) -> int:
        return len(self.scenarios) * len(self._seeds)

    def runs(self, knobs: Sequence[Knob], tried: Sequence[tuple[str, ...]]) -> list[list[Summary] | str]:
        """Return, for each combination of the knobs' values, its runs, or the error of one that failed."""
        found = [self._variant(scenario, knobs, values) for values in tried for scenario in self.scenarios]
        cells = run_sweep(
            found,
            self._seeds,
            base=self._path.parent,
            workers=self._workers,
            store=self._store,
            done=self._done,
        )
        size = len(self)
        return [_runs(cells[start : start + size]) for start in range(0, len(cells), size)]

    def _variant(self, scenario: Scenario, knobs: Sequence[Knob], values: tuple[str, ...]) -> Variant:
        axes = [Axis(knob.name, (value,)) for knob, value in zip(knobs, values, strict=True)]
        try:
            return variants(self._path, scenario, axes, ())[0]
        except ScenarioError as error:
            return Variant(values, None, str(error))


def _there(one: Variant) -> Scenario:
    if one.scenario is None:
        raise ScenarioError(one.error)
    return one.scenario


def _runs(cells: Sequence[Cell]) -> list[Summary] | str:
    error = next((cell.outcome.error for cell in cells if cell.outcome.error), "")
    return error or [cell.outcome.summary for cell in cells if cell.outcome.summary is not None]


def check_knob(path: Path, scenario: Scenario, knob: Knob) -> None:
    """Raise ScenarioError if the first, last or middle value cannot be set."""
    values = knob.values
    some = dict.fromkeys((values[0], values[-1], values[len(values) // 2]))
    variants(path, scenario, [Axis(knob.name, tuple(some))], ())


def unchanged_runs(conditions: Conditions) -> list[Summary]:
    """Return the runs of the unchanged scenario. Raises TuneError if one fails."""
    [found] = conditions.runs((), [()])
    if isinstance(found, str):
        raise TuneError(f"the scenario as it is cannot be run: {found}")
    return found


def trials_of(
    conditions: Conditions,
    knobs: Sequence[Knob],
    tried: Sequence[tuple[str, ...]],
    *,
    minimize: str,
    constraints: Sequence[Constraint],
    baseline: Sequence[Summary],
) -> list[Trial]:
    """Return a trial per combination: the mean of the minimized figure, and the excess of each constraint."""
    found = []
    for values, runs in zip(tried, conditions.runs(knobs, tried), strict=True):
        if isinstance(runs, str):
            found.append(Trial(values, float("inf"), error=runs))
            continue
        score = spread([total_of(run, minimize, "") for run in runs]).mean
        excess = tuple(one.excess(runs, baseline) for one in constraints)
        found.append(Trial(values, score, excess))
    return found


class Found(msgspec.Struct, frozen=True):
    """The result of a search.

    Attributes:
        trials: In the order in which they were made.
        best: The one with the lowest score that keeps the constraints on the runs of the search; None where none that
            keeps them has a lower one than the scenario as it is.
        baseline: The scenario as it is on those runs.
        score: What is minimized, in the mean of those.
        before, after: The scenario as it is, and with the values of ``best``, on the runs that it is judged on.
        error: Why those failed.
    """

    trials: list[Trial]
    best: Trial | None
    baseline: list[Summary]
    score: float
    before: list[Summary]
    after: list[Summary]
    error: str = ""

    def broken(self, constraints: Sequence[Constraint]) -> list[Constraint]:
        """Return the constraints that the result violates on the runs that it is judged on."""
        return [one for one in constraints if one.excess(self.after, self.before) > 0]


def tune(
    training: Conditions,
    evaluation: Conditions,
    knobs: Sequence[Knob],
    *,
    minimize: str,
    constraints: Sequence[Constraint],
    trials: int,
    seed: int,
) -> Found:
    """Search on some conditions, and evaluate the result on others. Raises TuneError."""
    baseline = unchanged_runs(training)

    def evaluate(tried: Sequence[tuple[str, ...]]) -> list[Trial]:
        return trials_of(
            training, knobs, tried, minimize=minimize, constraints=constraints, baseline=baseline
        )

    made = search(knobs, evaluate, trials=trials, seed=seed)
    score = spread([total_of(run, minimize, "") for run in baseline]).mean
    best = best_of(made, below=score)
    before = unchanged_runs(evaluation)
    if best is None:
        return Found(made, None, baseline, score, before, [])
    [after] = evaluation.runs(knobs, [best.values])
    if isinstance(after, str):
        return Found(made, best, baseline, score, before, [], error=after)
    return Found(made, best, baseline, score, before, after)
