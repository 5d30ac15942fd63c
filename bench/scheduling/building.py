"""From bytes of pods to a snapshot, and to the node loop's state: all at once, and event by event."""

from __future__ import annotations

import gc
import random
import time

import msgspec

from bench.scheduling.measuring import Reporter
from bench.scheduling.objects import PODS_A_NODE, make_node, pod_text, pod_texts
from kubetide.nodes.facts.slim_pods import PodSlimmer
from kubetide.nodes.facts.slimming import slim_node
from kubetide.nodes.state import Delta, State
from kubetide.objects.pod import Pod
from kubetide.scheduling import Snapshot

_EVENTS = 10_000
_BATCH = 500
"""Events that a state takes over at once."""

# Loading API objects into upstream's snapshot, by nodes of 30 pods.
_UPSTREAM_US = {5_000: 1.0e6, 15_000: 2.6e6}


def measure_building(nodes: int, report: Reporter) -> None:
    """Each is run once: what is built stays in memory, as in a process that starts."""
    pods = nodes * PODS_A_NODE
    each = 0.6e6 / 150_000 * pods / max(1, nodes / 5_000)
    decoder = msgspec.json.Decoder(Pod)
    texts = list(pod_texts(nodes))
    began = _now_us()
    decoded = [decoder.decode(text) for text in texts]
    decoding = _now_us() - began
    report.line("build, decoding pods as JSON", decoding, floor_us=decoding, pods=pods)
    del texts
    began = _now_us()
    slimmer = PodSlimmer()
    slim = [slimmer.keep(pod) for pod in decoded]
    report.line("build, slimming decoded pods", _now_us() - began, floor_us=decoding, pods=pods)
    del decoded
    made = [make_node(number) for number in range(nodes)]
    began = _now_us()
    snapshot = Snapshot()
    for node in made:
        snapshot.set_node(node)
    snapshot.add_pods(
        [((pod.metadata.namespace, pod.metadata.name), pod, pod.spec.node_name) for pod in slim]
    )
    measured = _now_us() - began
    report.line(
        "build, decoded pods into a snapshot",
        measured,
        target_us=each,
        upstream_us=_UPSTREAM_US,
        floor_us=decoding,
        pods=pods,
    )
    _measure_snapshot_events(snapshot, nodes, report)
    del snapshot
    delta = Delta(nodes=tuple(map(slim_node, made)), pods=tuple(slim))
    del slim
    state = State()
    began = _now_us()
    state.apply(delta, full=True)
    report.line("build, slim pods into the loop's state", _now_us() - began, floor_us=decoding, pods=pods)
    del delta
    _measure_state_events(state, slimmer, nodes, report)


def _measure_snapshot_events(snapshot: Snapshot, nodes: int, report: Reporter) -> None:
    decoder = msgspec.json.Decoder(Pod)
    texts, floor = _events(nodes, 2), _floor(nodes)
    gc.collect()  # of what was built with; events replace as much as they bring
    began = _now_us()
    for text in texts:
        pod = decoder.decode(text)
        snapshot.add_pod(pod, pod.spec.node_name)
    each = (_now_us() - began) / len(texts)
    report.line("event, bytes to snapshot", each, target_us=20, floor_us=floor, grows=False)


def _measure_state_events(state: State, slimmer: PodSlimmer, nodes: int, report: Reporter) -> None:
    decoder = msgspec.json.Decoder(Pod)
    texts, floor = _events(nodes, 3), _floor(nodes)
    gc.collect()
    began = _now_us()
    for at in range(0, len(texts), _BATCH):
        pods = tuple(slimmer.keep(decoder.decode(text)) for text in texts[at : at + _BATCH])
        state.apply(Delta(pods=pods))
    each = (_now_us() - began) / len(texts)
    report.line("event, bytes to the loop's state", each, target_us=20, floor_us=floor, grows=False)


def _floor(nodes: int) -> float:
    """What decoding one such event costs and no more."""
    decoder = msgspec.json.Decoder(Pod)
    texts = _events(nodes, 9)
    began = _now_us()
    for text in texts:
        decoder.decode(text)
    return (_now_us() - began) / len(texts)


def _events(nodes: int, version: int) -> list[bytes]:
    """Pods that change a label, a node's as likely as any other's."""
    draw = random.Random(version)
    return [pod_text(draw.randrange(nodes), draw.randrange(PODS_A_NODE), version) for _ in range(_EVENTS)]


def _now_us() -> float:
    return time.process_time_ns() / 1000
