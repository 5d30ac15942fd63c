"""From what the records show to a scenario, and sentences on what they do not show."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from kubetide.experiments.capture.errors import CaptureError
from kubetide.experiments.capture.groups import groups_of, said_of, span_of
from kubetide.experiments.capture.loads import CPU_SECONDS, Span, loads_of, vpa_targets
from kubetide.experiments.capture.manifests import hpa_manifest, manifest_of, pod_manifest, vpa_manifest
from kubetide.experiments.capture.observed import Seen
from kubetide.experiments.capture.tables import table_manifest
from kubetide.experiments.capture.vertical import RECOMMENDER, UPDATER
from kubetide.loop import FlagError, loop_entry, parse_flags
from kubetide.objects.base import Json
from kubetide.units.time import Duration, Instant, format_duration, format_rfc3339, to_seconds

_SECOND: Final = 1_000_000_000


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


def captured(name: str, seen: Seen) -> Captured:
    """Return the scenario of a run, and what to know of it. Raises CaptureError where the records are too short."""
    cluster, services = seen.cluster, seen.services
    first = min(cluster.first, services.first) if services else cluster.first
    start = Instant(first - first % _SECOND)
    last = max(cluster.last, services.last) if services else cluster.last
    step = services.period if services else Duration(15 * _SECOND)
    steps = (last - start) // step
    if steps < 1:
        raise CaptureError(
            f"{name}: the records are shorter than one step of {format_duration(step)}; record longer"
        )
    known = list(seen.notes)
    loads, traces = loads_of(seen, Span(start, Duration(steps * step)), known)
    groups, types, about_groups = groups_of(cluster)
    value: Json = {
        "name": name,
        "description": f"Captured from {format_rfc3339(start)} to {format_rfc3339(last)}.",
        "start": format_rfc3339(start),
        "duration": format_duration(Duration(steps * step)),
        "step": format_duration(step),
        "loops": [loop for loop, _ in _loops(seen)],
        "flags": dict(_flags(seen, known)),
        "instanceTypes": types,
        "nodeGroups": groups,
        **_pods(seen, known),
        "services": loads,
        "manifests": [_yaml(manifest) for manifest in _manifests(seen, known)],
    }
    known += [*about_groups, *_about(seen, step)]
    return Captured({key: part for key, part in value.items() if part not in ({}, [])}, traces, tuple(known))


def _pods(seen: Seen, notes: list[str]) -> Json:
    services = seen.services
    found: Json = {}
    for field, what, times in (
        ("ready", "took from start to Ready", services.ready_after if services else ()),
        ("stop", "took from deletion to end", seen.cluster.stops),
    ):
        if times:
            found[field] = span_of(times)
            notes.append(
                f"Pods: {len(times)} {what} {said_of(found[field])}, without the slowest and the quickest twentieth."
            )
        else:
            notes.append(f"Pods: no time that one {what} was seen; it is that of the defaults.")
    if "ready" in found:
        found |= {"imagePull": "0s", "start": "0s"}
    return {"pods": found} if found else {}


def _manifests(seen: Seen, notes: list[str]) -> Iterator[Json]:
    cluster, services = seen.cluster, seen.services
    there: set[tuple[str, str, str]] = set()
    for field in ("namespaces", "daemon_sets", "deployments", "stateful_sets", "pdbs"):
        for item in cluster.workloads.get(field, ()):
            manifest = manifest_of(field, item)
            if manifest is not None:
                meta = manifest["metadata"]
                there.add((manifest["kind"], meta.get("namespace", ""), meta["name"]))
                yield manifest
    yield from map(pod_manifest, cluster.pods)
    for (namespace, name), history in sorted(services.hpas.items() if services else ()):
        target = history.view.spec.scale_target_ref
        if (target.kind, namespace, target.name) in there:
            yield hpa_manifest(history.view)
        else:
            notes.append(
                f"HPA {namespace}/{name} is left out: its target, {target.kind} {target.name}, is not in the scenario."
            )
    for key, workload in vpa_targets(seen).items():
        assert seen.vertical is not None
        yield vpa_manifest(seen.vertical.views[key], seen.vertical.specs.get(key), workload)
    for table in seen.tables.at_start if seen.tables else ():
        manifest = table_manifest(table)
        if manifest is not None:
            yield manifest
        else:
            notes.append(
                f"{table.kind} {table.namespace}/{table.name}: a time table of this kind is not captured."
            )


def _loops(seen: Seen) -> Iterator[tuple[str, Any]]:
    """Yield the loops that ran, each with its settings; admission leaves no records and runs with the updater."""
    if seen.services is not None:
        yield "horizontal", seen.services.settings
    yield "nodes", seen.cluster.settings
    if seen.vertical is not None:
        yield RECOMMENDER, seen.vertical.recommender
        if seen.vertical.updater is not None:
            yield UPDATER, seen.vertical.updater
            yield "admission", None
    if seen.tables is not None:
        yield "schedules", seen.tables.settings


def _flags(seen: Seen, notes: list[str]) -> Iterator[tuple[str, str | int | float | bool]]:
    """Yield the flags that make the settings of the run."""
    for loop, settings in _loops(seen):
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


def _about(seen: Seen, step: Duration) -> Iterator[str]:
    cluster, services = seen.cluster, seen.services
    yield f"Load is CPU usage, as requests of {CPU_SECONDS:g} CPU-seconds each; what a pod uses without load counts as load."
    yield "Environment variables, commands, volumes and annotations of pods are left out."
    if seen.vertical is not None:
        yield "What the recommender remembered at the start is left out: its VPAs begin without history."
        if seen.vertical.updater is not None:
            yield "The admission controller leaves no records; it is taken to have run with the updater, with its defaults."
        if seen.vertical.later:
            yield f"{len(seen.vertical.later)} VPAs came after the start and are left out: {', '.join(seen.vertical.later)}."
    if seen.tables is not None and seen.tables.later:
        yield f"Time tables that came or were changed later are as at the start, or left out: {', '.join(seen.tables.later)}."
    if cluster.advised:
        yield "The node loop only advised: the flags are its own, and what scaled the nodes may have had others."
    if services is None:
        loaded = "only the targets of VPAs have a load" if seen.vertical else "no service has a load"
        yield f"There are no records of the HPA loop: {loaded}, and nothing scales pods by it."
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
    targets = _targets(seen)
    for key, (before, after) in sorted(cluster.scaled.items()):
        if before != after and key not in targets:
            yield f"{'/'.join(key)} went from {before} to {after} replicas, not by an HPA: the scenario keeps {before}."


def _targets(seen: Seen) -> set[tuple[str, str]]:
    """Return what HPAs and time tables scale, by namespace and name."""
    hpas = seen.services.hpas if seen.services else {}
    found = {(key[0], history.view.spec.scale_target_ref.name) for key, history in hpas.items()}
    return found | {
        (table.target.namespace, table.target.name) for table in (seen.tables.at_start if seen.tables else ())
    }
