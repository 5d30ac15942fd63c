"""From what the records tell to a scenario, and sentences on what they do not show."""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from kubetide.experiments.capture.cluster import Cluster
from kubetide.experiments.capture.groups import groups_of, span_of
from kubetide.experiments.capture.manifests import hpa_manifest, limit_of, manifest_of, pod_manifest
from kubetide.experiments.capture.services import HpaHistory, Services, Tick, Workload
from kubetide.loop import FlagError, loop_entry, parse_flags
from kubetide.objects.base import Json
from kubetide.ports.errors import KubetideError
from kubetide.units.time import Duration, Instant, format_duration, format_rfc3339, to_seconds

CPU_SECONDS: Final = 0.01
"""CPU time of a notional request: records tell CPU, not requests."""
_AT_LIMIT: Final = 0.95
"""Share of the limit from which usage counts as cut off."""
_SECOND: Final = 1_000_000_000


class CaptureError(KubetideError):
    """Records that no scenario can be made of; the text says why and what to do."""


class Captured(msgspec.Struct, frozen=True):
    """A scenario and the files beside it.

    Attributes:
        value: The scenario.
        traces: Requests/s of each service, by file name.
        notes: What was assumed, and what the records do not show, a sentence each.
    """

    value: Json
    traces: dict[str, list[float]]
    notes: tuple[str, ...]

    def text(self) -> str:
        """Return the scenario as YAML, with the notes before it."""
        lines = [f"# - {note}\n" for note in self.notes]
        return "# Captured by `kubetide capture`. What to know:\n" + "".join(lines) + "\n" + _yaml(self.value)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def _yaml(value: Json) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


def captured(name: str, cluster: Cluster, services: Services | None, notes: Sequence[str] = ()) -> Captured:
    """Return the scenario of a run, and what to know of it after what is known already.

    Raises: CaptureError where the records are too short.
    """
    first = min(cluster.first, services.first) if services else cluster.first
    start = Instant(first - first % _SECOND)
    last = max(cluster.last, services.last) if services else cluster.last
    step = services.period if services else Duration(15 * _SECOND)
    steps = (last - start) // step
    if steps < 1:
        raise CaptureError(
            f"{name}: the records are shorter than one step of {format_duration(step)}; record longer"
        )
    known = list(notes)
    traces: dict[str, list[float]] = {}
    loads: list[Json] = []
    for loaded in _loaded(services) if services else ():
        load = _service(loaded, cluster, known)
        if load is None:
            continue
        values, held = _series(loaded.ticks, start, step, steps)
        if held:
            known.append(
                f"{loaded.title}: {held} of {steps} steps have no sample; the value before them holds."
            )
        traces[loaded.file] = values
        loads.append({**load, "load": {"trace": loaded.file, "step": format_duration(step)}})
    groups, types, about_groups = groups_of(cluster)
    value: Json = {
        "name": name,
        "description": f"Captured from {format_rfc3339(start)} to {format_rfc3339(last)}.",
        "start": format_rfc3339(start),
        "duration": format_duration(Duration(steps * step)),
        "step": format_duration(step),
        "loops": [loop for loop, there in (("horizontal", services), ("nodes", cluster)) if there],
        "flags": dict(_flags(cluster, services, known)),
        "instanceTypes": types,
        "nodeGroups": groups,
        **_pods(cluster, services, known),
        "services": loads,
        "manifests": [_yaml(manifest) for manifest in _manifests(cluster, services)],
    }
    known += [*about_groups, *_about(cluster, services, step)]
    return Captured({key: part for key, part in value.items() if part not in ({}, [])}, traces, tuple(known))


class _Loaded(NamedTuple):
    """A workload under load, what sentences call it, and the file of its trace."""

    title: str
    file: str
    workload: Workload
    ticks: Sequence[Tick]


def _loaded(services: Services) -> Iterator[_Loaded]:
    for key, history in sorted(services.hpas.items()):
        target = history.view.spec.scale_target_ref
        workload = target.kind, key[0], target.name
        yield _Loaded(f"HPA {'/'.join(key)}", f"{'-'.join(key)}.csv", workload, history.ticks)
    for workload, ticks in sorted(services.others.items()):
        kind, key = workload[0], workload[1:]
        yield _Loaded(f"{kind} {'/'.join(key)}", f"{'-'.join((*key, kind.lower()))}.csv", workload, ticks)


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


def _pods(cluster: Cluster, services: Services | None, notes: list[str]) -> Json:
    found: Json = {}
    for field, what, times in (
        ("ready", "took from start to Ready", services.ready_after if services else ()),
        ("stop", "took from deletion to end", cluster.stops),
    ):
        if times:
            found[field] = span_of(times)
            low, high = found[field].split("-")
            notes.append(
                f"Pods: {len(times)} {what} {low} to {high}, without the slowest and the quickest twentieth."
            )
        else:
            notes.append(f"Pods: no time that one {what} was seen; it is that of the defaults.")
    if "ready" in found:
        found |= {"imagePull": "0s", "start": "0s"}
    return {"pods": found} if found else {}


def _manifests(cluster: Cluster, services: Services | None) -> Iterator[Json]:
    for field in ("namespaces", "daemon_sets", "deployments", "stateful_sets", "pdbs"):
        for item in cluster.workloads.get(field, ()):
            manifest = manifest_of(field, item)
            if manifest is not None:
                yield manifest
    yield from map(pod_manifest, cluster.pods)
    for _, history in sorted(services.hpas.items() if services else ()):
        yield hpa_manifest(history.view)


def _flags(
    cluster: Cluster, services: Services | None, notes: list[str]
) -> Iterator[tuple[str, str | int | float | bool]]:
    """Yield the flags that make the settings of the run."""
    for loop, settings in (
        ("nodes", cluster.settings),
        ("horizontal", services.settings if services else None),
    ):
        if settings is None:
            continue
        entry = loop_entry(loop)
        default, hints = type(settings)(), typing.get_type_hints(type(settings))
        for flag, field in sorted(entry.flags.fields.items()):
            value = getattr(settings, field)
            if value == getattr(default, field) or field == "seed":
                continue
            written = format_duration(value) if hints[field] is Duration else value
            if isinstance(written, tuple) and all(isinstance(one, str) for one in written):
                written = ",".join(written)
            try:
                right = getattr(parse_flags({flag: written}, [entry]).of(type(settings)), field) == value
            except (FlagError, AttributeError, TypeError):
                right = False
            if right:
                yield flag, written
            else:
                notes.append(f"Flag --{flag} differs from its default and is not captured.")


def _about(cluster: Cluster, services: Services | None, step: Duration) -> Iterator[str]:
    yield f"Load is CPU usage, as requests of {CPU_SECONDS:g} CPU-seconds each; what a pod uses without load counts as load."
    yield "Environment variables, commands, volumes and annotations of pods are left out, and so are VPAs and time tables."
    if cluster.advised:
        yield "The node loop only advised: the flags are its own, and what scaled the nodes may have had others."
    if services is None:
        yield "There are no records of the HPA loop: no service has a load, and nothing scales pods."
    elif services.longest_gap > 3 * step:
        yield f"The HPA loop's records have a hole of {to_seconds(services.longest_gap):.0f} s."
    for key, history in sorted(services.hpas.items() if services else ()):
        if history.changed is not None:
            yield f"HPA {'/'.join(key)} was changed at {format_rfc3339(history.changed)}: the scenario has it as it was before."
    for field, names in sorted(cluster.later.items()):
        if field != "namespaces":
            yield f"{len(names)} {field.replace('_', ' ')} came after the start and are left out: {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}."
    if cluster.loose:
        yield f"{cluster.loose} pods of Jobs and of other owners, or by themselves and later, are left out."
    targets = _targets(services.hpas if services else {})
    for key, (before, after) in sorted(cluster.scaled.items()):
        if before != after and key not in targets:
            yield f"{'/'.join(key)} went from {before} to {after} replicas, not by an HPA: the scenario keeps {before}."


def _targets(hpas: Mapping[tuple[str, str], HpaHistory]) -> set[tuple[str, str]]:
    return {(key[0], history.view.spec.scale_target_ref.name) for key, history in hpas.items()}
