"""A fleet that does at once what the loop decides: nodes come and go, evicted pods are placed anew, first fit by name."""

from __future__ import annotations

from msgspec.structs import replace
from tests.nodes import frozen

from kubetide.nodes.decision import AddTaint, IncreaseSize, Outcome, RemoveTaint
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.state import Delta, Gone
from kubetide.objects.node import Taint
from kubetide.ports.cloud import Instance
from kubetide.scheduling import classify_unbound
from kubetide.units.quantity import milli
from kubetide.units.time import after, before, format_rfc3339, hours, minutes

A_MINUTE = minutes(1)


def priced(name, cpu, price, *, maximum=50, **fields):
    made = frozen.template(cpu=str(cpu), memory="64Gi", labels={"kind": name})
    return frozen.group(name, made=made, maximum=maximum, price_per_hour=price, **fields)


class Fleet(frozen.World):
    """``places``: group -> for each node the milli-CPU of its pods. Every move that was chosen is in ``chosen``."""

    def __init__(self, groups, places, *, more=(), **settings):
        names = {
            group.id: [f"{group.id}-{at}" for at in range(len(places.get(group.id, ())))] for group in groups
        }
        cpus = {group.id: str(group.template.node.status.capacity["cpu"]) for group in groups}
        placed = [
            frozen.pod(f"{name}-p{at}", cpu=f"{cpu}m", node=name)
            for group in groups
            for name, on in zip(names[group.id], places.get(group.id, ()), strict=True)
            for at, cpu in enumerate(on)
        ]
        known = [
            replace(
                group,
                target_size=len(names[group.id]),
                instances=tuple(Instance(provider_id=f"cloud:///{name}") for name in names[group.id]),
            )
            for group in groups
        ]
        super().__init__(
            groups=known,
            nodes=[
                frozen.node(name, cpu=cpus[group], memory="64Gi", labels={"kind": group})
                for group, some in names.items()
                for name in some
            ],
            pods=[*placed, *more],
            replica_sets=(frozen.replica_set("web", 100),),
            settings={"expander": "least-cost", "consolidation_enabled": True, **settings},
        )
        self.state.memory.started = before(frozen.START, hours(4))
        self.cpus, self.made, self.chosen, self.bills = cpus, 0, [], []

    @property
    def price(self):
        return sum(
            group.target_size * group.price_per_hour for group in self.groups.values() if group.target_size
        )

    @staticmethod
    def deletion_of(name):
        return Gone(pods=(("default", name),))

    def kinds(self):
        return {name: group.target_size for name, group in self.groups.items() if group.target_size}

    def run(self, duration, *, step=A_MINUTE):
        """Tick until the time is over."""
        for _ in range(duration // step):
            self.now = after(self.now, step)
            self.minute()
        return self

    def minute(self):
        known = len(self.reasons)
        actions = self.tick()
        self.chosen += [one for one in self.reasons[known:] if one.code == "ConsolidationChosen"]
        for action in actions:
            if isinstance(action, IncreaseSize) and action.group not in self.refused:
                self._join(action)
        for action in actions:
            if isinstance(action, AddTaint):
                self._taint(action)
            elif isinstance(action, RemoveTaint):
                self._untaint(action)
        self.bills.append(self.price)

    def _join(self, action):
        group = self.groups[action.group]
        for _ in range(action.delta):
            self.made += 1
            name = f"{group.id}-new-{self.made}"
            made = frozen.node(
                name,
                cpu=self.cpus[group.id],
                memory="64Gi",
                labels={"kind": group.id},
                created=format_rfc3339(self.now),
            )
            instance = Instance(provider_id=f"cloud:///{name}")
            self.change(group.id, instances=(*(self.groups[group.id].instances or ()), instance))
            self.apply(nodes=(made,))

    def _taint(self, action):
        node = self.state.nodes[action.node]
        if action.key != TO_BE_DELETED:
            taint = Taint(key=action.key, value=action.value, effect=action.effect)
            spec = replace(node.spec, taints=(*(node.spec.taints or ()), taint))
            self.apply(nodes=(replace(node, spec=spec),))
            return
        moved = [pod for pod in self.state.pods.values() if pod.spec.node_name == action.node]
        group = self.groups[self.state.group_of(action.node)]
        self.state.memory.scale_down.deletions.pop(action.node)
        left = tuple(one for one in group.instances if one.provider_id != f"cloud:///{action.node}")
        self.change(group.id, instances=left, target_size=group.target_size - 1)
        keys = [(pod.metadata.namespace, pod.metadata.name) for pod in moved]
        self.apply(gone=Gone(nodes=(action.node,), pods=tuple(keys)))
        for pod in moved:
            self._place(pod)

    def _untaint(self, action):
        node = self.state.nodes[action.node]
        remaining = tuple(one for one in node.spec.taints or () if one.key != action.key)
        self.apply(nodes=(replace(node, spec=replace(node.spec, taints=remaining)),))

    def _place(self, pod):
        """The controller's new pod, on the first node that takes it."""
        self.made += 1
        asked = milli(pod.spec.containers[0].resources.requests["cpu"])
        name = f"again-{self.made}"
        created = format_rfc3339(self.now)
        waiting = frozen.pod(name, cpu=f"{asked}m", created=created)
        snapshot = self.state.snapshot
        takes = [one for one in sorted(self.state.nodes) if snapshot.fits(classify_unbound(waiting), one)]
        if takes:
            waiting = frozen.pod(name, cpu=f"{asked}m", node=takes[0], created=created)
        self.apply(pods=(waiting,))

    def apply(self, *, nodes=(), pods=(), gone=None):
        self.gather(nodes=nodes, pods=pods, gone=gone or Gone())

    def gather(self, **changes):
        """Apply changes of any kind, with the groups as they are."""
        self.state.apply(Delta(groups=tuple(self.groups.values()), **changes))

    def _do(self, action):
        return super()._do(action) if not isinstance(action, (AddTaint, RemoveTaint)) else Outcome()
