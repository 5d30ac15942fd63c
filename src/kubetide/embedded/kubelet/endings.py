"""Which pods end by themselves, when, and how well.

A pod ends by itself when its restart policy allows it (OnFailure or Never) and it is a Job's or
says so. The annotations of its template decide over what is drawn:

* ``kubetide.dev/run-duration``: how long its containers run, such as ``90s``;
* ``kubetide.dev/exit-code``: how they end, ``0`` (the default) or another code up to 255.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from kubetide.objects.meta import controller_of
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, TimeFormatError, parse_duration

RUN_DURATION = "kubetide.dev/run-duration"
EXIT_CODE = "kubetide.dev/exit-code"

_LOG = logging.getLogger(__name__)


class Ending(NamedTuple):
    """How a pod ends: after how long, and with which exit code."""

    runs_for: Duration
    exit_code: int


def ending_of(pod: Pod, drawn: Duration) -> Ending | None:
    """Return how the pod ends, None when it runs until it is stopped; ``drawn`` is for one that does not say."""
    if pod.spec.restart_policy not in {"OnFailure", "Never"}:
        return None
    annotations = pod.metadata.annotations or {}
    owner = controller_of(pod.metadata)
    said = annotations.get(RUN_DURATION)
    if said is None and (owner is None or owner.kind != "Job"):
        return None
    return Ending(drawn if said is None else _duration(pod, said, drawn), _exit_code(pod, annotations))


def _duration(pod: Pod, text: str, drawn: Duration) -> Duration:
    try:
        found = parse_duration(text)
    except TimeFormatError:
        found = Duration(-1)
    if found >= 0:
        return found
    _warn(pod, RUN_DURATION, text, "a duration such as 90s")
    return drawn


def _exit_code(pod: Pod, annotations: dict[str, str]) -> int:
    text = annotations.get(EXIT_CODE, "0")
    if text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 255:
        return int(text)
    _warn(pod, EXIT_CODE, text, "a number from 0 to 255")
    return 0


def _warn(pod: Pod, annotation: str, text: str, expected: str) -> None:
    meta = pod.metadata
    _LOG.warning(
        "pod %s/%s: annotation %s is %r, not %s: it is left out of account",
        meta.namespace,
        meta.name,
        annotation,
        text,
        expected,
    )
