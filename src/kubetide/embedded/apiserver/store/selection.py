"""Which objects a list or a watch is about: a namespace and two selectors."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.patches.field_selectors import FieldSelector, FieldSelectorError
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.objects.kinds import Kind
from kubetide.ports.errors import BadRequest
from kubetide.units.selectors import Selector, SelectorError

_ALWAYS = frozenset({"metadata.name", "metadata.namespace"})

# Source: the selectable fields of each kind in Kubernetes v1.36.
_SELECTABLE: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        }
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "replicasets.apps": frozenset({"status.replicas"}),
    "events": frozenset(
        {
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
}

# The kinds of the core group that convert their selectors themselves, and have words of their own.
_OWN_WORDS = frozenset({"pods", "nodes", "namespaces", "events"})

# What a field is when the object does not say: booleans and numbers compare as their zero.
_ABSENT = {"spec.hostNetwork": "false", "spec.unschedulable": "false", "status.replicas": "0"}


def _unsupported(kind: Kind[Any], path: str) -> str:
    if kind.resource in _OWN_WORDS or kind.model is dict:
        return f"field label not supported: {path}"
    if kind.group == "batch":
        return f'field label "{path}" not supported for {kind.kind}'
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


class Selection:
    """A namespace (empty: all) and two selectors; ``matches`` looks at the selectors only."""

    __slots__ = ("_fields", "_labels", "everything", "namespace", "node_name")

    def __init__(self, kind: Kind[Any], namespace: str = "", labels: str = "", fields: str = "") -> None:
        """Read the selectors. Raises BadRequest for one that cannot be read or a field that cannot be selected by."""
        self.namespace = namespace if kind.namespaced else ""
        self.everything = not labels and not fields
        self.node_name = ""
        """The node that all selected pods are bound to, empty where the selector does not say."""
        try:
            self._labels = Selector.parse(labels) if labels else None
            self._fields = FieldSelector.parse(fields) if fields else None
        except SelectorError as error:
            raise BadRequest(error.detail) from error
        except FieldSelectorError as error:
            raise BadRequest(str(error)) from error
        if self._fields is None:
            return
        supported = _ALWAYS | _SELECTABLE.get(kind.resource, frozenset())
        for term in self._fields.terms:
            if term.path not in supported:
                raise BadRequest(_unsupported(kind, term.path))
            if term.path == "spec.nodeName" and term.equal:
                self.node_name = term.value

    def matches(self, revision: Revision) -> bool:
        """Return whether both selectors match."""
        if self.everything:
            return True
        json = revision.json
        if self._labels is not None and not self._labels.matches(json["metadata"].get("labels")):
            return False
        return self._fields is None or self._fields.matches(lambda path: _field(json, path))


def _field(json: dict[str, Any], path: str) -> str:
    if path == "source":
        value: Any = (json.get("source") or {}).get("component") or json.get("reportingComponent")
    else:
        value = json
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return _ABSENT.get(path, "") if value is None else str(value)
