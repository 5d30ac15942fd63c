"""The updater as far as its records explain it."""

from __future__ import annotations

from typing import Final

from kubetide.loop import Explainer, Explaining
from kubetide.units.time import Instant
from kubetide.vertical.updater.core import UpdaterCore
from kubetide.vertical.updater.reasons import VOCABULARY, explain_pod


def _lines(core: UpdaterCore, subject: str, now: Instant, view: str) -> list[str]:
    del now, view
    namespace, _, name = subject.partition("/")
    if (namespace, name) not in core.state.pods:
        raise KeyError(subject)
    return explain_pod(core.reasons, subject)


EXPLAINING: Final = Explaining(
    "updater",
    UpdaterCore,
    VOCABULARY,
    (
        Explainer(
            "update",
            _lines,
            lambda core: [f"{namespace}/{name}" for namespace, name in core.state.pods],
            namespaced=True,
        ),
    ),
)
