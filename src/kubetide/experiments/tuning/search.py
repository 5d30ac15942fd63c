"""The search: Optuna proposes values of the knobs, or all are tried if they are few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

import msgspec

from kubetide.experiments.tuning.goal import TuneError
from kubetide.experiments.tuning.knobs import Knob

BATCH: Final = 8
"""Trials that are proposed together, whatever runs them, so that the search does not depend on it."""


class Trial(msgspec.Struct, frozen=True):
    """Values of the knobs and their result.

    Attributes:
        score: What is to be small; infinite where a run failed.
        excess: By how much each constraint is passed; at most 0 where it is met.
        error: Why a run failed.
    """

    values: tuple[str, ...]
    score: float
    excess: tuple[float, ...] = ()
    error: str = ""

    @property
    def feasible(self) -> bool:
        """Whether it ran and met every constraint."""
        return not self.error and all(over <= 0 for over in self.excess)


Evaluate = Callable[[Sequence[tuple[str, ...]]], Sequence[Trial]]
"""Returns a trial for each combination of values, in their order."""


def search(knobs: Sequence[Knob], evaluate: Evaluate, *, trials: int, seed: int) -> list[Trial]:
    """Return the trials in execution order, each combination once.

    Raises: TuneError where Optuna is needed and not installed.
    """
    if math.prod(len(knob.values) for knob in knobs) <= trials:
        return list(evaluate(list(product(*(knob.values for knob in knobs)))))
    return _proposed(knobs, evaluate, trials, seed)


def _proposed(knobs: Sequence[Knob], evaluate: Evaluate, trials: int, seed: int) -> list[Trial]:
    optuna = _optuna()
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
    )
    found: dict[tuple[str, ...], Trial] = {}
    asked_for = 0
    while asked_for < trials:
        asked = [study.ask() for _ in range(min(BATCH, trials - asked_for))]
        asked_for += len(asked)
        proposed = [tuple(_suggested(one, knob) for knob in knobs) for one in asked]
        new = [values for values in dict.fromkeys(proposed) if values not in found]
        found |= {trial.values: trial for trial in evaluate(new)}
        for one, values in zip(asked, proposed, strict=True):
            trial = found[values]
            if trial.error:
                study.tell(one, state=optuna.trial.TrialState.FAIL)
            else:
                for number, over in enumerate(trial.excess):
                    one.set_constraint(str(number), over)
                study.tell(one, trial.score)
    return list(found.values())


def _suggested(trial: Any, knob: Knob) -> str:
    if knob.ordered:
        number: int = trial.suggest_int(knob.name, 0, len(knob.values) - 1)
        return knob.values[number]
    value: str = trial.suggest_categorical(knob.name, knob.values)
    return value


def _optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415  an extra, imported where it is used
    except ImportError as error:
        raise TuneError(
            f"the knobs have more combinations than --trials, and searching them needs the package optuna ({error}): "
            "pip install 'optuna>=5', or give fewer values"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def best_of(trials: Sequence[Trial], *, below: float) -> Trial | None:
    """Return the trial with the lowest score that meets every constraint, the first of equals.

    None where no such score is lower than ``below``.
    """
    feasible = (trial for trial in trials if trial.feasible and trial.score < below)
    return min(feasible, key=lambda trial: trial.score, default=None)
