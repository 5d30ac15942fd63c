"""The load of each service, from the CPU usage of its pods."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from kubetide.experiments.capture.cluster import Cluster
from kubetide.experiments.capture.manifests import limit_of
from kubetide.experiments.capture.observed import Seen
from kubetide.experiments.capture.services import Workload
from kubetide.experiments.capture.ticks import Tick
from kubetide.experiments.capture.vertical import Vertical
from kubetide.objects.base import Json
from kubetide.objects.meta import Key
from kubetide.units.quantity import bytes_to_text
from kubetide.units.selectors import Selector
from kubetide.units.time import Duration, Instant, format_duration, format_rfc3339

CPU_SECONDS: Final = 0.01
"""CPU time of a notional request: records tell CPU, not requests."""
_AT_LIMIT: Final = 0.95
"""Share of the limit from which usage counts as cut off."""
_USUAL_MEMORY: Final = 90
"""Percentile of what pods used that they use in the scenario: what a VPA recommends by."""


class Span(NamedTuple):
    """The captured time."""

    start: Instant
    length: Duration


class _Loaded(NamedTuple):
    """A workload under load, what sentences call it, and the file of its trace."""

    title: str
    file: str
    workload: Workload
    ticks: Sequence[Tick]
    step: Duration


def loads_of(seen: Seen, span: Span, notes: list[str]) -> tuple[list[Json], dict[str, list[float]]]:
    """Return the services of a scenario, and requests/s of each by file name; adds what is missing to ``notes``."""
    loads: list[Json] = []
    traces: dict[str, list[float]] = {}
    memory = _memory(seen, notes)
    for loaded in _loaded(seen):
        load = _service(loaded, seen.cluster, notes)
        if load is None:
            continue
        steps = -(-span.length // loaded.step)
        values, held = _series(loaded.ticks, span.start, loaded.step, steps)
        if held:
            notes.append(
                f"{loaded.title}: {held} of {steps} steps have no sample; the value before them holds."
            )
        file = _free(loaded.file, traces)
        traces[file] = values
        used = memory.get(loaded.workload)
        own = {} if used is None else {"baseMemory": used}
        loads.append({**load, **own, "load": {"trace": file, "step": format_duration(loaded.step)}})
    return loads, traces


def _free(file: str, taken: Container[str]) -> str:
    """Return the file's name, or one like it that is not taken: a-b/c and a/b-c are called the same."""
    number = 2
    name = file
    while name in taken:
        name, number = f"{number}-{file}", number + 1
    return name


def _loaded(seen: Seen) -> Iterator[_Loaded]:
    known: set[Workload] = set()
    services = seen.services
    for key, history in sorted(services.hpas.items() if services else ()):
        target = history.view.spec.scale_target_ref
        workload = target.kind, key[0], target.name
        known.add(workload)
        assert services is not None
        yield _Loaded(
            f"HPA {'/'.join(key)}", f"{'-'.join(key)}.csv", workload, history.ticks, services.period
        )
    for workload, ticks in sorted(services.others.items() if services else ()):
        kind, name = workload[0], workload[1:]
        known.add(workload)
        assert services is not None
        file = f"{'-'.join((*name, kind.lower()))}.csv"
        yield _Loaded(f"{kind} {'/'.join(name)}", file, workload, ticks, services.period)
    for key, workload in vpa_targets(seen).items():
        if workload not in known:
            assert seen.vertical is not None
            step = seen.vertical.recommender.recommender_interval
            ticks = seen.vertical.ticks.get(key, [])
            yield _Loaded(f"VPA {'/'.join(key)}", f"{'-'.join(key)}-vpa.csv", workload, ticks, step)


def vpa_targets(seen: Seen) -> dict[Key, Workload]:
    """Return the workload of each VPA: its reference's, or if only its pods are known, their controller."""
    found: dict[Key, Workload] = {}
    if seen.vertical is None:
        return found
    for key, view in sorted(seen.vertical.views.items()):
        reference = seen.vertical.specs.get(key, {}).get("targetRef")
        if reference:
            found[key] = reference["kind"], key[0], reference["name"]
            continue
        selector = Selector.parse(view.target.selector) if view.target.matches else None
        for field, kind in (("deployments", "Deployment"), ("stateful_sets", "StatefulSet")):
            for item in seen.cluster.workloads.get(field, ()):
                spec: Any = item.spec  # type: ignore[attr-defined]
                labels = spec.template.metadata.labels or {}
                if selector is not None and item.metadata.namespace == key[0] and selector.matches(labels):
                    found.setdefault(key, (kind, key[0], item.metadata.name))
    return found


def _memory(seen: Seen, notes: list[str]) -> dict[Workload, str]:
    found: dict[Workload, str] = {}
    vertical: Vertical | None = seen.vertical
    for key, workload in vpa_targets(seen).items():
        used = vertical.memory.get(key) if vertical is not None else None
        if used:
            low, usual, high = (int(one) for one in np.percentile(used, (0, _USUAL_MEMORY, 100)))
            usual -= usual % (1 << 20)
            found[workload] = bytes_to_text(max(usual, 1 << 20))
            notes.append(
                f"VPA {'/'.join(key)}: its pods used {low >> 20} to {high >> 20} MiB of memory each; in the scenario each uses "
                f"{found[workload]} all the time."
            )
    return found


def _service(loaded: _Loaded, cluster: Cluster, notes: list[str]) -> Json | None:
    kind, namespace, name = loaded.workload
    title = loaded.title
    if kind not in ("Deployment", "StatefulSet"):
        notes.append(f"{title}: its target is a {kind}, which is not captured: it has no load.")
        return None
    if all(tick.used is None for tick in loaded.ticks):
        notes.append(f"{title}: no CPU usage of its pods is known: it has no load.")
        return None
    field = "deployments" if kind == "Deployment" else "stateful_sets"
    there = {(item.metadata.namespace, item.metadata.name): item for item in cluster.workloads.get(field, ())}
    item: Any = there.get((namespace, name))
    if item is None:
        notes.append(f"{title}: its target {kind} {name} was not there at the start: it has no load.")
        return None
    _note_limit(title, loaded.ticks, limit_of(field, item), notes)
    place: Json = {"namespace": namespace, "cpuSecondsPerRequest": CPU_SECONDS}
    if field == "deployments":
        return {"deployment": name, **place}
    selector = item.spec.selector.match_labels if item.spec.selector else None
    return {"name": name, "selector": dict(selector or {}), **place}


def _note_limit(title: str, ticks: Sequence[Tick], limit: float | None, notes: list[str]) -> None:
    if limit is None:
        return
    cut = [
        tick
        for tick in ticks
        if tick.used is not None and tick.serving and tick.used >= _AT_LIMIT * limit * tick.serving
    ]
    if cut:
        notes.append(
            f"{title}: in {len(cut)} of {len(ticks)} ticks, first at {format_rfc3339(cut[0].at)}, its pods used all of "
            f"their limit of {limit:g}m: its load is a lower bound there."
        )


def _series(ticks: Sequence[Tick], start: Instant, step: Duration, steps: int) -> tuple[list[float], int]:
    """Return the requests/s of each step, and how many hold the value before them for want of a sample."""
    values = [math.nan] * steps
    for tick in ticks:
        if tick.used is not None:
            index = min(max((tick.middle - start) // step, 0), steps - 1)
            values[index] = round(tick.used / 1000 / CPU_SECONDS, 4)
    # The last step is sampled after the end.
    held = sum(map(math.isnan, values[:-1]))
    last = next((value for value in values if not math.isnan(value)), 0.0)
    for index, value in enumerate(values):
        last = values[index] = last if math.isnan(value) else value
    return values, held
