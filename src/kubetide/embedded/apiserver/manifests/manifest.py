"""Manifests: files of YAML or JSON documents, read strictly.

Everything that is wrong with a file is said at once: where (file, line, document), about which
object and field, and what to write instead.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.manifests.custom import kinds_defined_by
from kubetide.embedded.apiserver.manifests.dumped import as_sent, is_dumped, is_over
from kubetide.embedded.apiserver.manifests.hpa_older import as_v2
from kubetide.embedded.apiserver.manifests.structure import beyond_range, child_path, type_of
from kubetide.embedded.apiserver.manifests.upstream_fields import UPSTREAM_FIELDS
from kubetide.embedded.apiserver.rules.validation import validate
from kubetide.objects.definition import CustomResourceDefinition
from kubetide.objects.kinds import (
    CAPACITY_KINDS,
    CUSTOM_RESOURCE_DEFINITIONS,
    ELASTIC_WORKLOADS,
    KINDS,
    VPA_CHECKPOINTS,
    VPA_CHECKPOINTS_V1BETA2,
    VPAS,
    VPAS_V1BETA2,
    Kind,
)
from kubetide.objects.yaml_reading import YamlError, read_documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubetide.objects.base import Json

__all__ = ["CustomKinds", "ManifestError", "Problem", "load_manifests"]

CustomKinds = dict[tuple[str, str], Kind[Any]]
"""What definitions bring, by (apiVersion, kind)."""

_TOP_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_BY_DEFINITION: tuple[Kind[Any], ...] = (
    CUSTOM_RESOURCE_DEFINITIONS,
    VPAS,
    VPA_CHECKPOINTS,
    *CAPACITY_KINDS,
    ELASTIC_WORKLOADS,
)
_MANIFEST_KINDS: CustomKinds = {
    **KINDS,
    **{(kind.api_version, kind.kind): kind for kind in _BY_DEFINITION},
}
_MAX_TYPO = 2
_WORKLOADS = ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job", "CronJob", "Pod")
_NOT_YET = {
    "ReplicationController": f"of workloads, {', '.join(_WORKLOADS)} are",
    "LimitRange": "leave it out, and write the requests and limits that it gives into the pods",
}
"""Kinds that scaling decisions read and that are not embedded yet, with what to do."""
WITHOUT_INFLUENCE: dict[str, frozenset[str]] = {
    "": frozenset({"Endpoints"}),
    "admissionregistration.k8s.io": frozenset(
        {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
    ),
    "apiregistration.k8s.io": frozenset({"APIService"}),
    "discovery.k8s.io": frozenset({"EndpointSlice"}),
    "gateway.networking.k8s.io": frozenset({"Gateway", "GatewayClass", "HTTPRoute"}),
    "monitoring.coreos.com": frozenset({"PodMonitor", "PrometheusRule", "ServiceMonitor"}),
}
"""Kinds that stand beside workloads in real manifests and that no scaling decision reads, by API group."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one object of a file; document and line count from 1."""

    source: str
    line: int
    document: int
    subject: str  # "Deployment shop/web", or empty where no object could be made out
    text: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}: document {self.document}"
        return f"{place}: {self.subject}: {self.text}" if self.subject else f"{place}: {self.text}"


class ManifestError(ValueError):
    """A file with problems, one a line."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def load_manifests(
    text: str | bytes,
    source: str,
    *,
    skipped: list[str] | None = None,
    custom: CustomKinds | None = None,
    places: list[tuple[str, int]] | None = None,
) -> list[tuple[Kind[Any], Json]]:
    """Read every object of a file, ``List`` kinds taken apart; documents may be empty.

    The objects come back as written, without defaults; null members are dropped; autoscalers of older
    versions come as autoscaling/v2, VPA objects of v1beta2 as v1. An object of a custom
    kind follows its CustomResourceDefinition; it is not held against the schema here. Of objects that a server
    has printed (``kubectl get -o yaml``) what it added is taken away, but for uid and owners; those that are
    being deleted or have run to their end are left out.

    Args:
        text: YAML or JSON, any number of documents.
        source: the file's name, for messages.
        skipped: where given, objects of kinds that no decision reads are passed over, and the kind of
            each is added here; else they are errors.
        custom: kinds that definitions have brought already; those of the file are added.
        places: takes, for each object, the file's name and the line where it begins.

    Raises: ManifestError with everything that was found wrong.
    """
    objects: list[tuple[Kind[Any], Json]] = []
    problems: list[Problem] = []
    known = {} if custom is None else custom
    try:
        for document in read_documents(text):
            for path, value in _expanded(document.value, ""):
                if skipped is not None and _has_no_influence(value, known):
                    skipped.append(value["kind"])
                    continue
                if is_dumped(value):
                    if is_over(value):
                        continue
                    value = as_sent(value)  # noqa: PLW2901 the object from here on
                current, older = as_v2(_vpa_as_v1(value))
                kind, texts = (None, older) if older else _checked(current, known)
                if kind is not None and not texts:
                    objects.append((kind, current))
                    if places is not None:
                        places.append((source, document.line_of(path)))
                    known |= _kinds_in(kind, current)
                subject = _subject(value)
                for field, problem in texts:
                    line = document.line_of(_joined(path, field))
                    said = f"{field}: {problem}" if field else problem
                    problems.append(Problem(source, line, document.number, subject, said))
    except YamlError as exc:
        problems.append(Problem(source, exc.line, exc.document, "", exc.detail))
    if problems:
        raise ManifestError(problems)
    return objects


def _has_no_influence(value: Any, custom: CustomKinds) -> bool:
    if not isinstance(value, dict):
        return False
    version, kind = value.get("apiVersion"), value.get("kind")
    return (
        isinstance(version, str)
        and isinstance(kind, str)
        and (version, kind) not in custom
        and kind in WITHOUT_INFLUENCE.get(_group(version), ())
        and not _calls_urls(value)
    )


def _calls_urls(value: Json) -> bool:
    """Return whether this configures webhooks that can be called: each by a URL, none by a Service."""
    webhooks = value.get("webhooks")
    clients = (
        [one.get("clientConfig") for one in webhooks if isinstance(one, dict)]
        if isinstance(webhooks, list)
        else []
    )
    return bool(clients) and all(isinstance(client, dict) and client.get("url") for client in clients)


def _kinds_in(kind: Kind[Any], value: Json) -> CustomKinds:
    """Return the kinds that an object brings: none unless it is a definition."""
    if kind is not CUSTOM_RESOURCE_DEFINITIONS:
        return {}
    definition = msgspec.convert(value, CustomResourceDefinition)
    return {(one.api_version, one.kind): one for one in kinds_defined_by(definition)}


def _vpa_as_v1(value: Any) -> Any:
    """Return a VPA object or checkpoint of v1beta2 as one of v1, which has all of its fields; others as they are."""
    if isinstance(value, dict):
        known = (str(value.get("apiVersion")), str(value.get("kind")))
        for kind, old in ((VPAS, VPAS_V1BETA2), (VPA_CHECKPOINTS, VPA_CHECKPOINTS_V1BETA2)):
            if known == (old.api_version, old.kind):
                return {**value, "apiVersion": kind.api_version}
    return value


def _group(version: str) -> str:
    return version.rpartition("/")[0]


def _expanded(value: Any, path: str, inherited: tuple[str, str] = ("", "")) -> Iterator[tuple[str, Any]]:
    """Yield each object with its path in the document; items of a typed list have the list's type."""
    if not isinstance(value, dict):
        yield path, value
        return
    kind, version = value.get("kind"), value.get("apiVersion")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
        item_type = (str(version or ""), kind.removesuffix("List"))
        for index, item in enumerate(value["items"]):
            yield from _expanded(item, f"{path}items[{index}]", item_type if item_type[1] else ("", ""))
        return
    if inherited[1] and not kind and not version:
        value["apiVersion"], value["kind"] = inherited
    yield path, value


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if path and field else path or field


def _subject(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or metadata.get("generateName") or ""
    namespace = metadata.get("namespace") or ""
    full = f"{namespace}/{name}" if namespace else name
    return f"{value.get('kind') or 'object'} {full}".rstrip()


def _checked(value: Any, custom: CustomKinds) -> tuple[Kind[Any] | None, list[tuple[str, str]]]:
    """Return the kind, and what is wrong: field path and text."""
    if not isinstance(value, dict):
        return None, [("", "a manifest is a map with apiVersion, kind and metadata")]
    version, name = value.get("apiVersion"), value.get("kind")
    if not isinstance(name, str) or not name:
        return None, [("kind", "is missing: write for example kind: Deployment")]
    kind = (
        _MANIFEST_KINDS.get((version, name)) or custom.get((version, name))
        if isinstance(version, str)
        else None
    )
    if kind is None:
        return None, [_unknown_kind(version, name, custom)]
    texts = list(_misfit_fields(value, type_of(kind), "", kind))
    metadata = value.get("metadata")
    if metadata is None or (isinstance(metadata, dict) and not metadata.get("name")):
        if not (isinstance(metadata, dict) and metadata.get("generateName")):
            return kind, [*texts, ("metadata.name", "is missing: give the object a name")]
        value_for_rules = {**value, "metadata": {**metadata, "name": "generated"}}
    else:
        value_for_rules = value
    return kind, texts + _rule_problems(kind, value_for_rules)


def _rule_problems(kind: Kind[Any], value: Json) -> list[tuple[str, str]]:
    """Return the rules that the object will break when it is created."""
    metadata = value["metadata"]
    if kind.namespaced and isinstance(metadata, dict) and not metadata.get("namespace"):
        value = {**value, "metadata": {**metadata, "namespace": "default"}}
    errors = validate(kind, defaults(kind, value))
    return [(error.field, _with_quotes(str(error).partition(": ")[2])) for error in errors]


def _with_quotes(problem: str) -> str:
    """Return a problem with what to do about a word that YAML reads as a switch, such as ``updateMode: Off``."""
    if problem.endswith(("expected a text, got true", "expected a text, got false")):
        return f"{problem}; YAML reads yes, no, on and off as true and false, so write the word in quotes"
    return problem


def _unknown_kind(version: Any, name: str, custom: CustomKinds) -> tuple[str, str]:
    kinds = {**_MANIFEST_KINDS, **custom}
    group = _group(str(version))
    is_custom = "." in group and all(_group(known) != group for known, _ in kinds)
    served = sorted(api_version for api_version, kind in kinds if kind == name and not is_custom)
    if served:
        if not version:
            return "apiVersion", f"is missing: {name} is {served[0]}"
        return "apiVersion", f'"{version}" does not serve {name}: write {served[0]}'
    names = sorted({kind for _, kind in kinds})
    if name in _NOT_YET:
        return "kind", f"{name} is not supported yet; {_NOT_YET[name]}"
    near = (
        []
        if is_custom
        else difflib.get_close_matches(name.lower(), [known.lower() for known in names], n=1, cutoff=0.6)
    )
    if near:
        meant = next(known for known in names if known.lower() == near[0])
        return "kind", f'"{name}" is not known; did you mean {meant}?'
    return "kind", (
        f'"{name}" is not known; known kinds are {", ".join(names)}, and what a CustomResourceDefinition '
        "before it brings"
    )


def _misfit_fields(
    value: Any, kind: inspect.Type, path: str, top: Kind[Any] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield fields that nobody reads, as they are mistakes (see ``upstream_fields``), and numbers out of range."""
    if isinstance(kind, inspect.UnionType):
        for option in kind.types:
            if not isinstance(option, inspect.NoneType):
                yield from _misfit_fields(value, option, path)
    elif isinstance(kind, inspect.StructType) and isinstance(value, dict):
        ours = {field.encode_name: field for field in kind.fields}
        others = UPSTREAM_FIELDS.get(kind.cls, frozenset())
        complete = kind.cls in UPSTREAM_FIELDS
        for name, member in value.items():
            field = ours.get(name)
            if field is not None:
                if problem := beyond_range(name, member, field.type):
                    yield child_path(path, name), problem
                yield from _misfit_fields(member, field.type, child_path(path, name))
            elif name not in others and not (top is not None and name in _TOP_FIELDS):
                meant = _nearest(name, [*ours, *others])
                if top is not None and "spec" in ours and name in _names_of(ours["spec"].type):
                    yield name, f"belongs in spec: write spec.{name}"
                elif meant:
                    yield child_path(path, name), f"unknown field; did you mean {meant}?"
                elif complete:
                    yield child_path(path, name), "unknown field"
    elif isinstance(kind, inspect.VarTupleType) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _misfit_fields(item, kind.item_type, f"{path}[{index}]")


def _names_of(kind: inspect.Type) -> frozenset[str]:
    """Return the names of a struct's fields, also of those that nobody here reads; none of any other type."""
    if not isinstance(kind, inspect.StructType):
        return frozenset()
    return frozenset(field.encode_name for field in kind.fields) | UPSTREAM_FIELDS.get(kind.cls, frozenset())


def _nearest(name: str, known: list[str]) -> str | None:
    """Return the known name that is at most two edits away, the nearest first."""
    best, best_distance = None, _MAX_TYPO + 1
    for candidate in sorted(known):
        # Short names are all near each other: of a name of three letters one may be wrong.
        allowed = min(_MAX_TYPO, max(1, len(candidate) // 3))
        distance = 0 if candidate.lower() == name.lower() else _edits(name, candidate, allowed)
        if distance <= allowed and distance < best_distance:
            best, best_distance = candidate, distance
    return best


def _edits(a: str, b: str, limit: int) -> int:
    """Return the Levenshtein distance, or more than ``limit`` as soon as it is."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    row = list(range(len(b) + 1))
    for i, char in enumerate(a, start=1):
        previous, row[0] = row[0], i
        for j, other in enumerate(b, start=1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (char != other))
        if min(row) > limit:
            return limit + 1
    return row[-1]
