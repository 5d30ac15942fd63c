"""Requirements of pod groups on the new nodes of an estimate, as integers.

Most of it is the same for every template, and the rest for templates of the same site (``conditions``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.estimator.conditions import REFUSED, Site, Terms
from kubetide.scheduling.estimator.plain_numbers import may_borrow, plain_terms
from kubetide.scheduling.estimator.single import Kind
from kubetide.scheduling.filters.node_ports import collide
from kubetide.scheduling.pods.classes import charges_on_node
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import ColumnKey, PodClass, Port
from kubetide.scheduling.pods.resources import node_allocatable
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.scheduling.snapshot.verdicts import passes_alone

_INT64 = 1 << 63


class GroupDemand(NamedTuple):
    """The requirements of groups on copies of one template.

    Attributes:
        stock: What a copy has of each column.
        counts: What shared tallies are before anything is placed.
        own: How many own tallies there are.
        kinds: By number of the group.
    """

    stock: list[int]
    counts: list[int]
    own: int
    kinds: dict[int, Kind]


class Demands:
    """The requirements of groups for one template after another; see ``holds``."""

    def __init__(self, snapshot: Snapshot, groups: Sequence[PodGroup]) -> None:
        self._snapshot = snapshot
        self._groups = groups
        classes = dict.fromkeys(group.pod_class for group in groups)
        plain = self._plain = plain_terms(snapshot, classes)
        self._left_out = {at for at, group in enumerate(groups) if group.pod_class not in plain}
        self._terms = Terms(snapshot, plain)
        charged = dict.fromkeys(key for one in plain for key, _ in one.charges)
        self._columns: dict[ColumnKey, int] = {key: at for at, key in enumerate(charged)}
        self._used: dict[tuple[str, int], list[Port]] = {}
        """Ports that have a column, by what those share that may collide."""
        for key in charged:
            if isinstance(key, Port):
                self._used.setdefault((key.protocol, key.port), []).append(key)
        self._most = [0] * len(charged)
        """How much of each column all pods could take together."""
        for group in groups:
            for key, amount in group.pod_class.charges if group.pod_class in plain else ():
                self._most[self._columns[key]] += abs(amount) * len(group.pods)
        self._standing: dict[Hashable, tuple[PodClass, list[int]]] = {}
        for at, group in enumerate(groups):
            if at not in self._left_out:
                alike = group.pod_class if group.pod_class.node_key is None else group.pod_class.node_key
                self._standing.setdefault(alike, (group.pod_class, []))[1].append(at)
        self._ports = [at for at, group in enumerate(groups) if group.pod_class.ports]
        volumes = snapshot.facts.volumes
        names = (*snapshot.names(), *(volumes.csi_nodes if volumes is not None else ()))
        self._taken = [name for name in names if "-e-" in name]
        self._sizes: dict[tuple[tuple[int, int], ...], int] = {}
        self._alone = {one: self._kind_of(one) for one in plain}
        self._kinds: dict[Site, dict[int, Kind]] = {}
        self._made_at = snapshot.version, snapshot.layout

    @property
    def holds(self) -> bool:
        """Whether the snapshot and its tables of counts are unchanged."""
        return self._made_at == (self._snapshot.version, self._snapshot.layout)

    def of(self, template: Node, daemon_pods: Sequence[Pod], groups: Sequence[int]) -> GroupDemand | None:
        """Return the requirements of groups, by number, on copies of a template; None if they cannot be integers."""
        if not self._left_out.isdisjoint(groups) or self._terms.counts_any(daemon_pods):
            return None
        prefix = f"{template.metadata.name}-e-"
        if any(name.startswith(prefix) for name in self._taken):
            return None
        # Of two pods of one name the later takes the place of the other.
        daemons = {(pod.metadata.namespace, pod.metadata.name): pod for pod in daemon_pods}
        taken = [
            charge for pod in daemons.values() for charge in charges_on_node(pod, self._snapshot.facts.minor)
        ]
        stock = self._stock(template, taken)
        if any(abs(amount) + most >= _INT64 for amount, most in zip(stock, self._most, strict=True)):
            return None
        metadata = template.metadata
        name = f"{prefix}0"
        node = replace(
            template,
            metadata=replace(metadata, name=name, labels={**(metadata.labels or {}), HOSTNAME: name}),
        )
        alone = Rows(facts=self._snapshot.facts, pods={})
        alone.append(node)
        site = self._terms.site(node, alone)
        kinds = self._kinds_at(site)
        refused = self._refused(alone, groups, [key for key, _ in taken if isinstance(key, Port)])
        if refused:
            kinds = {**kinds, **{at: kinds[at]._replace(conditions=REFUSED) for at in refused}}
        return GroupDemand(stock, site.counts, self._terms.own, kinds)

    def _stock(self, template: Node, taken: Sequence[tuple[ColumnKey, int]]) -> list[int]:
        offered = node_allocatable(template)
        stock = [offered.get(key, 0) if isinstance(key, str) else 0 for key in self._columns]
        for key, amount in taken:
            at = self._columns.get(key)
            if at is not None:
                stock[at] -= amount
        return stock

    def _refused(self, alone: Rows, groups: Sequence[int], ports: Sequence[Port]) -> list[int]:
        """Return which of the groups, and of those that stand alike, the node object refuses, or the ports of DaemonSets' pods."""
        refused: list[int] = []
        asked = frozenset(groups)
        for pod_class, these in self._standing.values():
            if not asked.isdisjoint(these) and not passes_alone(pod_class, alone):
                refused += these
        for at in self._ports if ports else ():
            if any(collide(port, used) for port in self._groups[at].pod_class.ports for used in ports):
                refused.append(at)
        return refused

    def _kinds_at(self, site: Site) -> dict[int, Kind]:
        kinds = self._kinds.get(site)
        if kinds is None:
            of_class = {
                one: kind._replace(conditions=site.conditions_of(one)) for one, kind in self._alone.items()
            }
            kinds = self._kinds[site] = {
                at: of_class[group.pod_class]
                for at, group in enumerate(self._groups)
                if at not in self._left_out
            }
        return kinds

    def _kind_of(self, pod_class: PodClass) -> Kind:
        """Return what is the same at every site."""
        columns = self._columns
        # Places for pods are seldom what is short, so they are looked at last.
        needs = (*pod_class.needs[1:], pod_class.needs[0])
        colliding = [
            columns[used]
            for port in pod_class.ports
            for used in self._used.get((port.protocol, port.port), ())
            if collide(port, used)
        ]
        ports = sorted(dict.fromkeys(colliding))
        falls_back = pod_class.spreads_by_hostname
        borrows = falls_back and may_borrow(self._snapshot, pod_class, self._plain[pod_class])
        gates = (*((columns[key], least) for key, least in needs), *((at, 0) for at in ports))
        return Kind(
            gates=gates,
            size=self._sizes.setdefault(gates, len(self._sizes)),
            charges=tuple((columns[key], amount) for key, amount in pod_class.charges),
            conditions=REFUSED,
            falls_back=falls_back,
            may_borrow=borrows,
        )
