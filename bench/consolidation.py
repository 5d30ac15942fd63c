"""CPU time of one search for moves of consolidation, as JSON lines: 1,000 candidates among all nodes of a cluster.

The cluster is that of ``bench.ticks scan`` (30 pods a node, half of the nodes at 19 % CPU, half at 65 %) with prices, and
three smaller groups without nodes. The first search is that of a new process, the next one finds facts of nodes known.

    python -m bench.consolidation [NODES ...]
"""

from __future__ import annotations

import json
import sys
import time

from msgspec.structs import replace

from bench.ticks import SCAN, START, make_node, make_state
from kubetide.nodes.consolidation.candidates import candidates
from kubetide.nodes.consolidation.search import MOST_CANDIDATES, find_moves
from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import Outcome, Outcomes
from kubetide.nodes.state import Delta, State
from kubetide.objects.node import Node
from kubetide.ports.cloud import NodeGroup, NodeTemplate
from kubetide.units.time import Instant, after, before, hours, seconds

_PRICE = 0.77
_SMALLER = {"half": ("8", "32Gi", 0.384), "quarter": ("4", "16Gi", 0.192), "lean": ("16", "32Gi", 0.68)}


def _template(cpu: str, memory: str) -> NodeTemplate:
    made = make_node(0)
    sizes: dict[str, str | float] = {"cpu": cpu, "memory": memory, "pods": "110"}
    node: Node = replace(made, status=replace(made.status, capacity=sizes, allocatable=sizes))
    return NodeTemplate(node=node, source="catalogue")


def make_priced(nodes: int) -> State:
    """Return the state with prices, after hours in which nothing was bought."""
    state = make_state(nodes, SCAN)
    groups = [replace(group, price_per_hour=_PRICE) for group in state.groups.values()]
    groups += [
        NodeGroup(
            id=name, max_size=nodes, target_size=0, template=_template(cpu, memory), price_per_hour=price
        )
        for name, (cpu, memory, price) in _SMALLER.items()
    ]
    state.set_groups(groups)
    state.settings = replace(state.settings, consolidation_enabled=True, expander="least-cost")
    state.memory.started = before(START, hours(4))
    return state


def measure(nodes: int) -> None:
    """Run ticks up to the consolidation step, and measure the search."""
    state = make_priced(nodes)
    for number, words in enumerate(("the first", "the next")):
        now = Instant(after(START, seconds(10 * number)))
        step = Delta()
        while step.step != "consolidate":
            state.apply(step)
            commands = decide(state, now)
            absorb(state, commands, Outcomes(tuple(Outcome("withheld") for _ in commands.actions)), now)
            step = Delta(step=commands.next_step or "update")
        state.apply(step)
        assert state.tick is not None, "the tick is open until the next"
        began = time.process_time_ns()
        found = find_moves(state, state.tick, now, 10)
        spent_ms = (time.process_time_ns() - began) / 1e6
        print(
            json.dumps(
                {
                    "operation": f"consolidation search, {words}",
                    "nodes": nodes,
                    "candidates": len(candidates(state, now, MOST_CANDIDATES)),
                    "tried": found.tried,
                    "moves": len(found.moves),
                    "cpu_ms": round(spent_ms, 1),
                }
            ),
            flush=True,
        )


def main() -> None:
    for nodes in map(int, sys.argv[1:] or ["1000", "5000", "15000"]):
        measure(nodes)


if __name__ == "__main__":
    main()
