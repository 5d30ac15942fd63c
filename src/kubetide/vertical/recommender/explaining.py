"""The recommender as far as its records explain it."""

from __future__ import annotations

from typing import Final

from kubetide.loop import Explainer, Explaining
from kubetide.units.time import Instant
from kubetide.vertical.recommender.core import RecommenderCore
from kubetide.vertical.recommender.explain import explain_vpa
from kubetide.vertical.recommender.reasons import VOCABULARY


def _lines(core: RecommenderCore, subject: str, now: Instant, view: str) -> list[str]:
    del now, view
    namespace, _, name = subject.partition("/")
    return explain_vpa(core.state, namespace, name)


EXPLAINING: Final = Explaining(
    "recommender",
    RecommenderCore,
    VOCABULARY,
    (
        Explainer(
            "vpa",
            _lines,
            lambda core: [f"{namespace}/{name}" for namespace, name in core.state.vpas],
            namespaced=True,
        ),
    ),
)
