"""A container's recommendation for people: its reasons, and a chart of its usage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kubetide.objects.vpa import OFF
from kubetide.units.quantity import bytes_to_text, milli_to_text, readable
from kubetide.vertical.recommender.facts.members import Vpa
from kubetide.vertical.recommender.headline import headline
from kubetide.vertical.recommender.reasons import VOCABULARY, reasons_of
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.targets.estimate import percentiles
from kubetide.vertical.recommender.usage.buckets import CPU_BUCKETS, MEMORY_BUCKETS
from kubetide.vertical.recommender.usage.cells import summed
from kubetide.vertical.resources.policies import WITHOUT_UPDATES
from kubetide.vertical.targets import Target

_WIDTH = 40
_NAMES = ("target", "lower", "upper")


def explain(state: State, namespace: str, vpa: str, container: str) -> tuple[str, ...]:
    """Return lines of text: samples, percentile, margin, confidence, caps, and a histogram of each resource.

    Raises: KeyError with a sentence, for a VPA that this recommender does not serve.
    """
    known = state.vpas.get((namespace, vpa))
    if known is None:
        raise KeyError(
            f"{namespace}/{vpa} is not served by recommender {state.settings.recommender_name};"
            f" it serves {len(state.vpas)} VPAs"
        )
    lines = [VOCABULARY.text(reason) for reason in reasons_of(state, known, container)]
    rows = dict(state.cells_of(known)).get(container)
    if rows is not None:
        for resource in ("cpu", "memory"):
            lines += picture(state, rows, resource)
    return tuple(lines)


def explain_vpa(state: State, namespace: str, name: str) -> list[str]:
    """Return the answer, then the lines of each container of a VPA. Raises: KeyError for a VPA that is not served."""
    known = state.vpas[namespace, name]
    containers = [container for container, _ in state.cells_of(known)]
    lines = [_answer(state, known)]
    for container in containers or [""]:
        lines += explain(state, namespace, name, container)
    return lines


def _answer(state: State, vpa: Vpa) -> str:
    """Return in one line what a VPA recommends, what holds that back and until when, and why pods do not get it."""
    reasons = {container: reasons_of(state, vpa, container) for container, _ in state.cells_of(vpa)}
    return headline(reasons, vpa.view.target.problem, tuple(_use(state, vpa)))


def _use(state: State, vpa: Vpa) -> Iterator[str]:
    """Yield why pods do not get the recommendation, where the VPA itself is why: its mode, or another VPA."""
    mode, target = vpa.view.mode, vpa.view.target
    if vpa.view.advised:
        yield "there is no VPA object: this is advice, and nothing is written"
    elif mode in WITHOUT_UPDATES:
        yield WITHOUT_UPDATES[mode]
    if mode == OFF or target.problem:
        return
    if len(same := vpas_by_target(state)[vpa.view.namespace, target]) > 1:
        yield same_target_text(same)


def vpas_by_target(state: State) -> dict[tuple[str, Target], list[str]]:
    """Return the names of the VPAs that may change pods, in order, by namespace and target."""
    found: dict[tuple[str, Target], list[str]] = {}
    for (namespace, name), one in sorted(state.vpas.items()):
        if one.view.mode != OFF and not one.view.target.problem:
            found.setdefault((namespace, one.view.target), []).append(name)
    return found


def same_target_text(names: Sequence[str]) -> str:
    """Return what several VPAs on one target come to."""
    return (
        f"VPAs {', '.join(names)} select the same pods: of several on one target only the oldest changes them"
    )


def picture(state: State, rows: tuple[int, ...], resource: str) -> Iterator[str]:
    """Yield a bar per used bucket, as long as its weight, with the percentiles beside them."""
    sums = summed(state.aggregates, [rows])
    histograms, buckets, text = (
        (sums.cpu, CPU_BUCKETS, milli_to_text)
        if resource == "cpu"
        else (sums.memory, MEMORY_BUCKETS, bytes_to_text)
    )
    one = np.zeros(1, np.int64)
    if histograms.is_empty(one)[0]:
        yield f"{resource}: nothing used yet"
        return
    shares = percentiles(state.settings)[resource != "cpu"]
    marks: dict[int, list[str]] = {}
    for name, share, bucket in zip(_NAMES, shares, histograms.percentiles(one, shares)[:, 0], strict=True):
        marks.setdefault(int(bucket), []).append(f"{name} ({share:g})")
    weights = histograms.weights[0]
    low, high = int(histograms.low[0]), int(histograms.high[0])
    greatest = float(weights[low : high + 1].max())
    yield f"{resource}: weight by usage, recent samples weigh more"
    for bucket in range(low, high + 1):
        bar = "#" * round(_WIDTH * float(weights[bucket]) / greatest)
        share = float(weights[bucket] / histograms.total[0])
        if bar or bucket in marks:
            mark = "  <- " + ", ".join(marks[bucket]) if bucket in marks else ""
            yield f"  up to {readable(text(int(buckets.ends[bucket]))):>8} {share:6.1%} {bar}{mark}"
