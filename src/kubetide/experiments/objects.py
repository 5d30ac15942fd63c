"""Changes of the objects of a scenario: single fields by name, and patches as files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import msgspec

from kubetide.embedded.apiserver.patches.shapes import shape_of
from kubetide.embedded.apiserver.patches.strategic import StrategicPatchError, strategic_merge
from kubetide.experiments.paths import PathError, nearest, set_at, split_name
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.objects.yaml_reading import YamlError, read_documents
from kubetide.simulate.scenarios.build import Manifests
from kubetide.simulate.scenarios.scenario import ScenarioError

_HPA: Final = "HorizontalPodAutoscaler"
_SHORT_FIELDS: Final = {"min": "spec.minReplicas", "max": "spec.maxReplicas"}
_TARGETS: Final = ("averageUtilization", "averageValue", "value")
_SOURCES: Final = ("resource", "containerResource", "pods", "object", "external")


class Objects:
    """The objects of a scenario, in their order; ``changed`` says whether one was."""

    def __init__(self, manifests: Manifests) -> None:
        self._objects: list[tuple[str, Json]] = [(kind.kind, copy.deepcopy(json)) for kind, json in manifests]
        self._kinds = {kind.kind: kind for kind, _ in manifests}
        self.changed = False

    def texts(self) -> list[str]:
        """Return each object as an entry of ``manifests``."""
        return [
            msgspec.json.format(msgspec.json.encode(json), indent=1).decode() + "\n"
            for _, json in self._objects
        ]

    def set(self, kind: str, rest: str, new: Any) -> None:
        """Set a field of one object; ``rest`` is ``[NAMESPACE/]NAME.FIELD``. Raises PathError."""
        known = self._kind_of(kind)
        named = {_name_of(json): json for there, json in self._objects if there == known.kind}
        # A name that stands in one namespace only needs no namespace.
        names = [name.partition("/")[2] for name in named]
        short = {
            name: json for name, json in zip(names, named.values(), strict=True) if names.count(name) == 1
        }
        hinted = list(named) if "/" in rest or len(short) < len(named) else list(short)
        named |= short
        name, field = split_name(rest, named, known.kind, hinted)
        if not field:
            raise PathError(
                f"name the field of {known.kind} {name} to set, such as {kind}/{name}.metadata.labels.tier"
            )
        json = named[name]
        set_at(json, _field_of(known, json, field), new)
        self.changed = True

    def _kind_of(self, written: str) -> Kind[Any]:
        spelled = {
            spelling.lower(): kind
            for kind in self._kinds.values()
            for spelling in (kind.kind, kind.plural, kind.resource, *kind.short_names)
        }
        found = spelled.get(written.lower())
        if found is None:
            known = [
                "group",
                "service",
                "type",
                *(kind.short_names[0] if kind.short_names else kind.plural for kind in self._kinds.values()),
            ]
            raise PathError(f"no object of kind `{written}` is in the manifests; {nearest(written, known)}")
        return found

    def patch(self, file: Path) -> None:
        """Apply the objects of a file: a strategic merge patch of the one of that kind and name, or a new one.

        ``$patch: delete`` takes the object away. Raises ScenarioError.
        """
        try:
            documents = list(read_documents(file.read_bytes()))
        except OSError as error:
            raise ScenarioError(
                f"--patch {file}: cannot be read: {error.strerror}; check the path"
            ) from error
        except YamlError as error:
            raise ScenarioError(
                f"--patch {file} line {error.line}: not valid YAML: {error.detail}"
            ) from error
        for document in documents:
            self._patch(f"--patch {file} line {document.line}", document.value)
        self.changed |= bool(documents)

    def _patch(self, where: str, patch: Any) -> None:
        meta = patch.get("metadata") if isinstance(patch, dict) else None
        if not isinstance(meta, dict) or not meta.get("name") or not patch.get("kind"):
            raise ScenarioError(f"{where}: a patch names its object: give it kind and metadata.name")
        kind, name = str(patch["kind"]), _name_of(patch)
        for index, (there, json) in enumerate(self._objects):
            if there == kind and _name_of(json) == name:
                if patch.get("$patch") == "delete":
                    del self._objects[index]
                else:
                    self._objects[index] = kind, self._merged(where, kind, json, patch)
                return
        if "$patch" in patch:
            raise ScenarioError(f"{where}: there is no {kind} {name} in the manifests to {patch['$patch']}")
        self._objects.append((kind, patch))

    def _merged(self, where: str, kind: str, json: Json, patch: Json) -> Json:
        try:
            return strategic_merge(json, patch, shape_of(self._kinds[kind]))
        except StrategicPatchError as error:
            raise ScenarioError(f"{where}: {kind} {_name_of(json)}: {error}") from error


def _name_of(json: Json) -> str:
    meta = json["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta.get('name')}"


def _field_of(kind: Kind[Any], json: Json, field: str) -> str:
    """Return the path that a field's short name means: of an HPA ``target``, ``target.METRIC``, ``min`` and ``max``."""
    if kind.kind != _HPA:
        return field
    if field in _SHORT_FIELDS:
        return _SHORT_FIELDS[field]
    first, _, metric = field.partition(".")
    return _target_field(json, metric) if first == "target" else field


def _target_field(json: Json, asked: str) -> str:
    targets = {}
    for index, metric in enumerate(json.get("spec", {}).get("metrics") or []):
        source = next((one for one in _SOURCES if one in metric), None)
        if source is None:
            continue
        one = metric[source]
        name = one.get("name") or (one.get("metric") or {}).get("name") or source
        field = next((field for field in _TARGETS if field in one.get("target", {})), "averageUtilization")
        targets[name] = f"spec.metrics[{index}].{source}.target.{field}"
    if asked in targets:
        return targets[asked]
    if not asked and len(targets) == 1:
        return next(iter(targets.values()))
    ask = ", ".join(f"target.{name}" for name in targets) or "none: the HPA has no metrics"
    raise PathError(f"which target of HPA {_name_of(json)}? there are {ask}")
