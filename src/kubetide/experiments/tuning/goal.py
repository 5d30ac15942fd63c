"""The goal of a search: the minimum of one figure, with constraints on others."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from kubetide.experiments.policies.evaluate import total_of
from kubetide.experiments.policies.expectations import (
    ExpectationError,
    Total,
    check_subject,
    read_expectation,
)
from kubetide.experiments.sweeps.results import spread
from kubetide.ports.errors import KubetideError
from kubetide.simulate.outcome.summary import Summary

_NOW: Final = re.compile(r"\bnow\b")
_UPWARD: Final = {"<=": 1.0, "<": 1.0, ">=": -1.0, ">": -1.0}


class TuneError(KubetideError):
    """A search that cannot run; the text gives the reason and the fix."""


class Constraint(msgspec.Struct, frozen=True):
    """A figure of the whole run, meant as the mean over several, and its bound."""

    text: str
    rule: Total

    def excess(self, runs: Sequence[Summary], baseline: Sequence[Summary]) -> float:
        """Return by how much the mean of the runs exceeds the bound, as a share of it; at most 0 if it is met."""
        rule = self.rule
        bound = rule.bound
        if rule.of_baseline:
            bound *= self._mean(baseline)
        over = _UPWARD[rule.compare] * (self._mean(runs) - bound)
        if over == 0:
            return 0.0 if rule.compare in ("<=", ">=") else 1e-9
        return over / (abs(bound) or 1.0)

    def _mean(self, runs: Sequence[Summary]) -> float:
        return spread([total_of(run, self.rule.quantity, self.rule.subject) for run in runs]).mean


def read_constraint(text: str, services: Collection[str], groups: Collection[str]) -> Constraint:
    """Return a constraint in the language of policies, where ``now`` is the unchanged scenario. Raises TuneError."""
    try:
        expectation = read_expectation(_NOW.sub("baseline", text))
        check_subject(expectation, services, groups)
    except ExpectationError as error:
        raise TuneError(f"--keep {text}: {error}") from error
    rule = expectation.rule
    if not isinstance(rule, Total) or rule.compare not in _UPWARD:
        raise TuneError(
            f"--keep {text}: a search keeps figures of the whole run within bounds, such as `sloMinutes <= now`; "
            "hold anything else against its result with `kubetide test`"
        )
    return Constraint(text, rule)
