"""Nodes, groups and worlds for tests of what a node loop learns from the machines it has seen."""

from __future__ import annotations

from tests.nodes.frozen import START, World, group, node, template

from kubetide.nodes.state import Delta
from kubetide.nodes.templates.build import template_of
from kubetide.units.time import after, format_rfc3339, seconds

TYPE = "node.kubernetes.io/instance-type"
C5D = {TYPE: "c5d.large"}
CATALOGUE = template(cpu="2", memory="4Gi", labels=C5D, source="catalogue: c5d.large, 2 CPU, 4Gi")
DEVICE = "smarter-devices/fuse"
BIG = {"cpu": "500m", "memory": "8Gi"}


def of_type(name, *, memory="16Gi", cpu="2", labels=None, **extra):
    """Return a node of type c5d.large that takes no more pods."""
    full = {"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}}
    return node(name, cpu=cpu, memory=memory, labels={**C5D, **(labels or {})}, **{**full, **extra})


def sizes_with(**more):
    full = {"cpu": "2", "memory": "16Gi", "pods": "110", **more}
    return {"capacity": full, "allocatable": full}


def two_groups(**fields):
    return [group("a", made=CATALOGUE, nodes=("a-1",)), group("b", made=CATALOGUE, **fields)]


def after_restart(world, groups, **objects):
    """Return the world of a new process, which knows only what the last one has learned."""
    made = World(groups=groups, **objects)
    made.state.apply(Delta(learned=world.state.memory.learned))
    return made


def template_for(world, name):
    """Return the template of a group, without pods of DaemonSets."""
    return template_of(world.state, world.state.groups[name], ())


def memory_of(world, name):
    """Return the memory in the template of a group, the origin of the template and its source in words."""
    found = template_for(world, name)
    return found.node.status.allocatable["memory"], found.origin, found.source


def joining(name="b-1", *, ready_at=None, taints=(), **kwargs):
    """Return a node that was made at the start: not ready, or ready since then."""
    extra = {
        "metadata": {"creationTimestamp": format_rfc3339(START)},
        "spec": {
            "providerID": f"cloud:///{name}",
            "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
        },
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False" if ready_at is None else "True",
                    "lastTransitionTime": format_rfc3339(after(START, ready_at or seconds(0))),
                }
            ]
        },
    }
    return of_type(name, **extra, **kwargs)


def joined(**kwargs):
    """Return a world in which a node of group b has joined after 40 s, with the taints that it lost."""
    world = World(nodes=[joining(**kwargs)], groups=[group("b", made=CATALOGUE, nodes=("b-1",))])
    world.tick(at=seconds(10))
    world.tick(at=seconds(50), nodes=(joining(ready_at=seconds(40)),))
    world.tick(at=seconds(110))
    return world
