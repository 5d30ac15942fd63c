"""Who serves an HPA, by its metadata: pure rules, the same before and after a restart.

The Lease excludes Cluster Autoscaler. Upstream's HPA controller has none of its own: its process holds the one
of kube-controller-manager whether that controller is on or off. What it does leave is its name in the
``managedFields`` of each status and scale it writes. It writes a status only when that changes, so that the age of
the last write does not show whether it is alive: an HPA whose status another manager has written stays its own
until a person hands it over.

Source: API concepts, "Field management"; pkg/controller/podautoscaler of kube-controller-manager v1.36 (a status is
written when it differs from the one that was read).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from kubetide.objects.base import json_name
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, Kind
from kubetide.objects.meta import Key
from kubetide.units.time import (
    ZERO,
    Duration,
    Instant,
    TimeFormatError,
    format_rfc3339,
    parse_rfc3339,
    seconds,
)

ANNOTATION: Final = "kubetide.dev/handover"
"""On an HPA: ``kubetide@TIME``, handed over to this program at that time, or ``others``."""

OTHERS: Final = "others"
OWN: Final = "kubetide"
"""The manager that the API server takes from our User-Agent; our commands append to it."""

CLUSTER_WIDE: Final = "kube-controller-manager"
"""Where this one writes a single status, it serves all HPAs of the cluster."""

UNCLAIMED: Final = seconds(60)
"""An HPA without a status is adopted when nobody has written one for so long."""

_AHEAD: Final = seconds(60)
"""A consent that is further in the future than clocks differ is none."""

_PEOPLE: Final = ("kubectl",)
_BESIDE_AN_HPA: Final = ("keda",)
"""Managers that scale a target from and to zero while an HPA controller does the rest."""

TargetKind = tuple[str, str]
"""Group, and kind in lower case, which is how a reference may be written."""
Target = tuple[str, str, str, str]
"""What an HPA scales: group and kind, namespace and name."""

DEPLOYMENT: Final[TargetKind] = (DEPLOYMENTS.group, DEPLOYMENTS.kind.lower())


class Entry(msgspec.Struct, frozen=True, rename=json_name):
    """One entry of ``managedFields``."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""

    @property
    def at(self) -> Instant:
        """The time of the last write; the beginning of time if it cannot be read."""
        try:
            return parse_rfc3339(self.time)
        except TimeFormatError:
            return Instant(0)


class _Meta(msgspec.Struct, rename=json_name):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    managed_fields: tuple[Entry, ...] | None = None


class _TargetRef(msgspec.Struct, rename=json_name):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class _Spec(msgspec.Struct, rename=json_name):
    scale_target_ref: _TargetRef = msgspec.field(default_factory=_TargetRef)


class ManagedHpa(msgspec.Struct, rename=json_name):
    """The parts of an HPA that show who serves it."""

    api_version: str = ""
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _WorkloadSpec(msgspec.Struct, rename=json_name):
    replicas: Any = None
    """A custom kind may hold anything there."""


class ManagedWorkload(msgspec.Struct, rename=json_name):
    """The parts of a workload with ``scale`` that show who scales it."""

    api_version: str = ""
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _WorkloadSpec = msgspec.field(default_factory=_WorkloadSpec)


MANAGED_HPAS: Final = Kind(HPAS.group, HPAS.version, HPAS.kind, HPAS.plural, ManagedHpa)


class Write(NamedTuple):
    """The last write of a manager, by the API server's clock, in whole seconds."""

    at: Instant
    manager: str


class Consent(NamedTuple):
    """The annotation's meaning: handed over to us at a time, or to others; ``wrong`` quotes an unreadable value."""

    at: Instant | None = None
    others: bool = False
    wrong: str = ""


class View(NamedTuple):
    """The facts about one HPA.

    Attributes:
        own: Our last write of its status; None for none.
        foreign: The last write of its status by each other controller.
        target: What it scales.
    """

    namespace: str
    name: str
    target: Target
    consent: Consent
    own: Instant | None
    foreign: tuple[Write, ...]

    @property
    def newest(self) -> Write | None:
        """The last write of another controller."""
        return max(self.foreign, default=None)


class ScaleView(NamedTuple):
    """Other controllers that wrote a workload's ``scale``, and its requested replicas.

    The API server notes no time there, so that nothing is known of a write but from the watch. Who changes the number
    takes the field over, and with it the entry of who had it before.
    """

    namespace: str
    name: str
    foreign: tuple[Write, ...]
    replicas: Any = None


class State(Enum):
    """Who serves an HPA."""

    OURS = "kubetide"
    THEIRS = "another"
    RELEASED = "released"
    """Given to others by a person."""
    BLOCKED = "blocked"
    """Without a status, while another controller serves HPAs of the cluster."""
    UNCLAIMED = "unclaimed"
    """Without a status, for a short time yet."""


class Verdict(NamedTuple):
    """Who serves an HPA, and the other controller's write that shows it."""

    state: State
    by: Write | None = None
    ended: bool = False
    """Whether that write came after it was ours."""


def is_own(manager: str, own: str = OWN) -> bool:
    """Return whether a manager is this program or one of its commands."""
    return manager == own or manager.startswith(f"{own}-")


def is_controller(manager: str, own: str = OWN) -> bool:
    """Return whether a manager is another controller: neither ours nor a person's tool."""
    return not is_own(manager, own) and not manager.startswith(_PEOPLE)


def view_of(hpa: ManagedHpa, own: str = OWN) -> View:
    """Return the parts of an HPA that show who serves it."""
    meta, target = hpa.metadata, hpa.spec.scale_target_ref
    entries = [one for one in meta.managed_fields or () if one.subresource == "status"]
    return View(
        meta.namespace,
        meta.name,
        (target.api_version.rpartition("/")[0], target.kind.lower(), meta.namespace, target.name),
        consent_of((meta.annotations or {}).get(ANNOTATION, "")),
        max((one.at for one in entries if is_own(one.manager, own)), default=None),
        _writes(one for one in entries if is_controller(one.manager, own)),
    )


def scale_view_of(workload: ManagedWorkload, own: str = OWN) -> ScaleView:
    """Return which others have scaled a workload through ``scale``."""
    meta = workload.metadata
    return ScaleView(
        meta.namespace,
        meta.name,
        _writes(
            one
            for one in meta.managed_fields or ()
            if one.subresource == "scale"
            and is_controller(one.manager, own)
            and not one.manager.startswith(_BESIDE_AN_HPA)
        ),
        workload.spec.replicas,
    )


def _writes(entries: Iterable[Entry]) -> tuple[Write, ...]:
    return tuple(sorted(Write(one.at, one.manager) for one in entries))


def consent_of(text: str) -> Consent:
    """Return the meaning of the annotation's value."""
    if not text:
        return Consent()
    if text == OTHERS:
        return Consent(others=True)
    to, _, time = text.partition("@")
    try:
        return Consent(at=parse_rfc3339(time)) if to == OWN else Consent(wrong=text)
    except TimeFormatError:
        return Consent(wrong=text)


def consent_text(at: Instant) -> str:
    """Return the annotation's value that hands an HPA over to us at a time."""
    return f"{OWN}@{format_rfc3339(Instant(at // 1_000_000_000 * 1_000_000_000))}"


def verdict_of(
    view: View,
    *,
    now: Instant,
    scale: ScaleView | None,
    cluster_wide: Write | None,
    served_by_others: int,
    unclaimed: Duration,
    adopt_after: Duration = UNCLAIMED,
) -> Verdict:
    """Return who serves an HPA.

    Args:
        now: By the API server's clock. A consent of the future is none yet.
        scale: Who else has scaled its target.
        cluster_wide: The last write of any HPA's status by ``CLUSTER_WIDE``.
        served_by_others: How many HPAs of the cluster other controllers serve.
        unclaimed: For how long this program has watched the HPA.
        adopt_after: How long one without a status must be watched before it is taken on.
    """
    if view.consent.others:
        return Verdict(State.RELEASED, view.newest)
    since = view.consent.at
    if since is not None and since > now + _AHEAD:
        since = None
    if since is None and view.foreign:
        return Verdict(State.THEIRS, view.newest)
    since = view.own if since is None else since
    if since is None:
        if served_by_others:
            return Verdict(State.BLOCKED, cluster_wide)
        return Verdict(State.OURS if unclaimed >= adopt_after else State.UNCLAIMED)
    others = [*view.foreign, *(scale.foreign if scale else ()), *([cluster_wide] if cluster_wide else [])]
    after = [one for one in others if one.at > since]
    return Verdict(State.THEIRS, max(after), ended=True) if after else Verdict(State.OURS)


def cluster_wide_write(views: Iterable[View]) -> Write | None:
    """Return the last write of any HPA's status by ``CLUSTER_WIDE``."""
    return max(
        (write for view in views for write in view.foreign if write.manager == CLUSTER_WIDE), default=None
    )


def verdicts_of(
    views: Mapping[Key, View], scales: Mapping[Target, ScaleView], now: Instant
) -> dict[Key, Verdict]:
    """Return who serves each HPA of a cluster, by a single read."""
    cluster_wide = cluster_wide_write(views.values())

    def verdict(view: View, served_by_others: int) -> Verdict:
        return verdict_of(
            view,
            now=now,
            scale=scales.get(view.target),
            cluster_wide=cluster_wide,
            served_by_others=served_by_others,
            unclaimed=ZERO,
        )

    first = {key: verdict(view, 0) for key, view in views.items()}
    others = sum(one.state is State.THEIRS for one in first.values())
    return {key: verdict(view, others) for key, view in views.items()}
