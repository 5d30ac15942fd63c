"""The target of a VPA: its pod selector, and whether it is the topmost controller of its pods.

``Controllers`` is what the recommender knows of controllers; ``topmost`` walks from one up to the one that nobody owns.
Updater and admission, which ask by pod, do that with the views of ``workloads``.

Source: VPA 1.8, pkg/target and pkg/target/controller_fetcher.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.meta import ApiObject, controller_of
from kubetide.objects.workload import Scale
from kubetide.units.selectors import NOTHING, Selector, SelectorError
from kubetide.vertical.workloads import WELL_KNOWN, selector_of


class ControllerKey(NamedTuple):
    """Which controller: namespace, kind and name identify it; the API version is as the reference spells it."""

    namespace: str
    kind: str
    name: str
    api_version: str = ""


class TargetError(Exception):
    """Why a target or an owner cannot be read, in upstream's words."""


class ScaleNotFound(TargetError):
    """The API server has no scale of a controller: its kind has no such subresource, or the object does not exist."""


class Controllers(NamedTuple):
    """What is known of controllers.

    Attributes:
        get: Return a well-known controller by namespace, kind and name; None where there is none.
        scale: Return the scale of a controller of another kind; raises ScaleNotFound where the API server has none, and
            TargetError where it cannot be read.
    """

    get: Callable[[str, str, str], ApiObject | None]
    scale: Callable[[ControllerKey], Scale]


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of reading a VPA's target.

    Attributes:
        selector: Text of the pod selector; ``matches`` is False where it matches nothing.
        problem: Why the target cannot be used, as the condition ConfigUnsupported says it; empty if it can.
    """

    selector: str = ""
    matches: bool = False
    problem: str = ""

    def read(self) -> Selector:
        """Return the selector."""
        return Selector.parse(self.selector) if self.matches else NOTHING


def read_target(namespace: str, reference: CrossVersionObjectReference | None, known: Controllers) -> Target:
    """Return the pod selector of a VPA's target, or why there is none."""
    if reference is None:
        text = "targetRef not defined. If this is a v1beta1 object, switch to v1"
        return Target(problem=f"Cannot read targetRef. Reason: {text}")
    key = ControllerKey(namespace, reference.kind, reference.name, reference.api_version)
    try:
        selector = _selector_of(key, known)
    except (TargetError, SelectorError) as exc:
        return Target(problem=f"Cannot read targetRef. Reason: {exc}")
    shown = f"{key.api_version}.{key.kind}/{key.name}"
    try:
        top = topmost(key, known)
    except TargetError as exc:
        return Target(
            problem=f"Error checking if target {shown} is a topmost well-known or scalable controller: {exc}"
        )
    if top != key:
        return Target(
            problem=f"The target {shown} has a parent controller but it should point to a topmost well-known or scalable controller"
        )
    return Target(str(selector), matches=selector.selectable)


def topmost(key: ControllerKey, known: Controllers) -> ControllerKey:
    """Return the last controller above this one, itself included, that is well known or has a scale.

    The walk ends below an owner without a scale, such as the custom resource of an operator.

    Raises: TargetError for an owner that is a Node or that cannot be read, for a missing well-known one, and for a cycle.
    """
    top = None
    seen = {key}
    while True:
        if key.kind == "Node":
            raise TargetError(unhandled(key._replace(api_version="v1"), "node is not a valid owner"))
        try:
            found = _object(key, known)
        except ScaleNotFound:
            if top is None:
                raise
            return top
        top = key
        owner = controller_of(found.metadata)
        if owner is None:
            return top
        key = ControllerKey(key.namespace, owner.kind, owner.name, owner.api_version)
        if key in seen:
            raise TargetError("cycle detected in ownership chain")
        seen.add(key)


def _object(key: ControllerKey, known: Controllers) -> ApiObject:
    if key.kind not in WELL_KNOWN:
        return known.scale(key)
    found = known.get(key.namespace, key.kind, key.name)
    if found is None:
        raise TargetError(f"{key.kind} {key.namespace}/{key.name} does not exist")
    return found


def _selector_of(key: ControllerKey, known: Controllers) -> Selector:
    found: Any = _object(key, known)
    if key.kind in WELL_KNOWN:
        return selector_of(found)
    if not found.status.selector:
        text = f"resource {key.namespace}/{key.name} has an empty selector for scale sub-resource"
        raise TargetError(unhandled(key, text))
    try:
        return Selector.parse(found.status.selector)
    except SelectorError as exc:
        raise TargetError(unhandled(key, str(exc))) from exc


def unhandled(key: ControllerKey, error: str) -> str:
    """Return upstream's words for a controller whose scale cannot be used."""
    return f"unhandled targetRef {key.api_version} / {key.kind} / {key.name}, last error {error}"
