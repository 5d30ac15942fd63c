"""The recommender's entry for explanations from records."""

from __future__ import annotations

from typing import Final

from kubetide.explain.algorithm import StepCore
from kubetide.loop import Explainer, Explaining
from kubetide.units.time import Instant
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.explain import explain_vpa
from kubetide.vertical.recommender.one_vpa import OneVpaCore
from kubetide.vertical.recommender.reasons import VOCABULARY
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.targets_only import TargetsCore
from kubetide.vertical.recommender.weekly_change import since_last_week


def _lines(core: StepCore[State], subject: str, now: Instant, view: str) -> list[str]:
    del now, view
    namespace, _, name = subject.partition("/")
    return explain_vpa(core.state, namespace, name)


def _targets(core: StepCore[State]) -> dict[str, str]:
    views = core.state.views
    return {"/".join(key): view.workload for key, view in views.items() if view.workload}


def _alone(subject: str) -> OneVpaCore:
    namespace, _, name = subject.partition("/")
    return OneVpaCore((namespace, name))


EXPLAINING: Final = Explaining(
    "recommender",
    ALGORITHM.core,
    VOCABULARY,
    (
        Explainer(
            "vpa",
            _lines,
            lambda core: [f"{namespace}/{name}" for namespace, name in core.state.vpas],
            namespaced=True,
            targets=_targets,
            alone=_alone,
            targets_alone=TargetsCore,
            added_by="updater",
            since_last_week=since_last_week,
        ),
    ),
)
