"""DynamicResources: the devices of a pod's claims must be allocated on the node, or free there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from kubetide.objects.node import Node
from kubetide.objects.resource import ResourceClaim
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.devices.claims import (
    Problem,
    allocate_on,
    asked_by,
    asks_for_devices,
    extended_claim,
    find_claims,
)
from kubetide.scheduling.devices.facts import ClaimKey
from kubetide.scheduling.devices.ledger import Held, Ledger
from kubetide.scheduling.devices.problems import ClaimError, NodeError
from kubetide.scheduling.devices.shortage import shortage_text
from kubetide.scheduling.pods.device_use import DeviceUse
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.resources import node_allocatable
from kubetide.scheduling.refusal import ERROR, UNRESOLVABLE, Refusal
from kubetide.units.vectors import BoolVector

CANNOT_ALLOCATE = "cannot allocate all claims"
NOT_AVAILABLE = "resourceclaim not available on the node"
CANNOT_FIT = "cannot fit resource"


class _Verdict(NamedTuple):
    """Why a node is refused; ``message`` is empty when it is not."""

    message: str = ""
    fatal: bool = False


_PASSES = _Verdict()
_NO_NODES: Mapping[int, Node] = MappingProxyType({})
_Claims = list[tuple[ClaimKey, ResourceClaim]]


class _HeldNow(NamedTuple):
    """What the ledger says of the claims of a class at one of its versions.

    Attributes:
        held: The allocations that they have.
        wanting: The claims that have none.
        closed: By identity, nodes that are known to have no devices for those.
    """

    version: int
    held: list[Held]
    wanting: tuple[ClaimKey, ...]
    closed: Mapping[int, Node]


class DeviceJudge:
    """The verdict on one class: allocated claims bind it to nodes, for the others it searches devices.

    What is found for a set of pools holds until one of them changes, for all nodes that have no others, and for all
    pods whose claims ask for the same.
    """

    only_tightens = True
    takes_in_copies = True
    terms = None

    def __init__(self, use: DeviceUse, namespace: str, claims: _Claims, ledger: Ledger, rows: Rows) -> None:
        self._use = use
        self._namespace = namespace
        self._claims = claims
        self._ledger = ledger
        self._rows = rows
        self._mapped = [name for name, _ in use.extended if ledger.class_of(name) is not None]
        self._failed: dict[tuple[object, ...], tuple[tuple[int, ...], _Verdict]] = {}
        self._asked: dict[tuple[object, ...], bytes] = {}
        self._held: _HeldNow | None = None

    def nodes(self) -> BoolVector:
        held = self._held_now()
        return np.fromiter((self._passes(row, held) for row in range(self._rows.n)), np.bool_, self._rows.n)

    def first(self, rows: Iterable[int]) -> int:
        """Return the first of these rows that passes, or -1."""
        held = self._held_now()
        nodes, closed = self._rows.nodes, held.closed
        left = (row for row in rows if id(nodes[row]) not in closed)
        return next((row for row in left if not self._verdict(row, held).message), -1)

    def node(self, row: int) -> bool:
        return self._passes(row, self._held_now())

    def verdict(self, row: int) -> _Verdict:
        """Evaluate one node as it is now."""
        return self._verdict(row, self._held_now())

    def _held_now(self) -> _HeldNow:
        known, ledger = self._held, self._ledger
        if known is not None and known.version == ledger.version:
            return known
        held = [(key, ledger.held(key)) for key, _ in self._claims]
        wanting = tuple(dict.fromkeys(key for key, one in held if one is None))
        # With extended resources each node may be asked for others.
        alike = wanting and not self._mapped
        closed = ledger.closed_to(self._asked_for(wanting, ())) if alike else _NO_NODES
        self._held = _HeldNow(ledger.version, [one for _, one in held if one is not None], wanting, closed)
        return self._held

    def _passes(self, row: int, held_now: _HeldNow) -> bool:
        return id(self._rows.nodes[row]) not in held_now.closed and not self._verdict(row, held_now).message

    def _verdict(self, row: int, held_now: _HeldNow) -> _Verdict:
        wanting = held_now.wanting
        by_devices = self._by_devices(self._rows.nodes[row])
        if self._mapped:
            offered = node_allocatable(self._rows.nodes[row])
            if any(name not in offered and name not in by_devices for name, _ in self._use.extended):
                return _Verdict(CANNOT_FIT)
            if not by_devices and not self._claims:
                return _PASSES
        if wanting or self._mapped:
            found = self._search(row, wanting, tuple(by_devices))
            if found.message:
                return found
        return self._reached(row, held_now.held)

    def failure(self, row: int) -> str:
        """Return the error of the device search on a node; empty if it has a result."""
        found = self.verdict(row)
        return _failed(found.message) if found.fatal else ""

    def shortage(self, row: int) -> str:
        """Return what is short on a node that cannot serve all claims, empty if that is unknown."""
        node, ledger = self._rows.nodes[row], self._ledger
        wanting = tuple(key for key, _ in self._claims if ledger.held(key) is None)
        claims = self._unserved(wanting, tuple(self._by_devices(node)))
        return shortage_text(node, ledger.pools_of(node).pools, claims, ledger.classes, ledger.in_use)

    def _reached(self, row: int, held: list[Held]) -> _Verdict:
        node = self._rows.nodes[row]
        for one in held:
            if one.failed or (one.reach is not None and not one.reach.matches(node)):
                return _Verdict(NOT_AVAILABLE)
        return _PASSES

    def _search(self, row: int, wanting: tuple[ClaimKey, ...], by_devices: tuple[str, ...]) -> _Verdict:
        node, ledger = self._rows.nodes[row], self._ledger
        try:
            pools = ledger.pools_of(node)
        except ClaimError as error:
            return _Verdict(str(error), fatal=True)
        asked = self._asked_for(wanting, by_devices)
        # Errors name the claim.
        state = ledger.state_of(pools)
        known = self._failed.get((pools.key, asked))
        if known is not None and known[0] == state:
            return known[1]
        try:
            given = allocate_on(node, pools, self._unserved(wanting, by_devices), ledger, asked)
        except (NodeError, ClaimError) as error:
            verdict = _Verdict(str(error), fatal=isinstance(error, ClaimError))
            self._failed[pools.key, asked] = (state, verdict)
            return verdict
        if given is not None:
            return _PASSES
        ledger.close(node, pools, asked)
        return _Verdict(CANNOT_ALLOCATE)

    def _asked_for(self, wanting: tuple[ClaimKey, ...], by_devices: tuple[str, ...]) -> bytes:
        """Return a key that is equal for claims that ask for the same devices in the same order."""
        found = self._asked.get((wanting, by_devices))
        if found is None:
            claims = self._unserved(wanting, by_devices)
            found = self._asked[wanting, by_devices] = asked_by(claims)
        return found

    def _by_devices(self, node: Node) -> list[str]:
        """Return the extended resources that only devices can be on a node."""
        offered = node_allocatable(node) if self._mapped else {}
        return [name for name in self._mapped if not offered.get(name)]

    def _unserved(self, wanting: tuple[ClaimKey, ...], by_devices: tuple[str, ...]) -> list[ResourceClaim]:
        """Return the claims that devices are to be found for."""
        claims = [claim for key, claim in self._claims if key in wanting]
        if self._mapped:
            claims.append(extended_claim(self._use, by_devices, self._ledger, self._namespace))
        return claims


class DynamicResources:
    """Source: kube-scheduler v1.36 DynamicResources with structured parameters.

    Every node passes when the facts of a snapshot hold no devices (None).
    """

    name = "DynamicResources"

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:
        ledger = rows.devices
        if pod.devices is None or ledger is None or not asks_for_devices(pod.devices, ledger):
            return None
        found = find_claims(pod.devices, ledger)
        if not isinstance(found, Problem):
            return None
        if not found.fatal:
            return Refusal(plugin=self.name, reasons=(found.message,), phase="PreFilter")
        reason = f'running PreFilter plugin "{self.name}": {found.message}'
        return Refusal(
            plugin=self.name, reasons=(reason,), code=ERROR, phase="PreFilter", detail=found.message
        )

    def judge(self, pod: PodClass, rows: Rows) -> DeviceJudge | None:
        ledger = rows.devices
        if pod.devices is None or ledger is None or not asks_for_devices(pod.devices, ledger):
            return None
        found = find_claims(pod.devices, ledger)
        if isinstance(found, Problem):
            return None
        return DeviceJudge(pod.devices, pod.namespace, found, ledger, rows)

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        judge = self.judge(pod, rows)
        verdict = _PASSES if judge is None else judge.verdict(row)
        if judge is None or not verdict.message:
            return None
        detail = judge.shortage(row) if verdict.message == CANNOT_ALLOCATE else verdict.message
        return Refusal(
            plugin=self.name,
            reasons=(self._reason(verdict),),
            code=ERROR if verdict.fatal else UNRESOLVABLE,
            detail=detail,
        )

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        judge = self.judge(pod, rows)
        masks: dict[str, BoolVector] = {}
        for row in range(rows.n if judge is not None else 0):
            verdict = _PASSES if judge is None else judge.verdict(row)
            if verdict.message:
                reason = self._reason(verdict)
                masks.setdefault(reason, np.zeros(rows.n, np.bool_))[row] = True
        return list(masks.items())

    def _reason(self, verdict: _Verdict) -> str:
        return _failed(verdict.message) if verdict.fatal else verdict.message


def _failed(message: str) -> str:
    return f'running "{DynamicResources.name}" filter plugin: {message}'
