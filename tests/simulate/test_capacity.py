"""Requests for capacity from end to end: the examples of docs/capacity.md, on the embedded cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kubetide.nodes.core import NodesCore
from kubetide.nodes.explain.buffers import explain_buffer
from kubetide.objects.capacity import is_true
from kubetide.runtime.recording.records import read_records
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario

EXAMPLES = Path(__file__).parents[2] / "examples"


def played(name, out, warn=pytest.fail, **changes):
    """Run an example; return its summary, the core after the last record, and all reasons."""
    scenario = msgspec.structs.replace(load_scenario(EXAMPLES / f"{name}.yaml"), **changes)
    result = run_simulation(scenario, base=EXAMPLES, out=out, seed=1, warn=warn)
    core, reasons, last = NodesCore(), [], None
    for record in read_records(out, "nodes"):
        core.apply(bytes(record.state), full=record.full)
        core.decide(record.now)
        core.absorb(bytes(record.outcomes), record.now)
        reasons += record.reasons
        last = record.now
    return result, core.state, reasons, last


def test_a_gang_gets_all_of_its_capacity_or_none(tmp_path):
    """All nodes are bought at once, the pods find their capacity, the booking ends; a request that is too large buys nothing."""
    _, state, reasons, _ = played("provisioning-request", tmp_path, duration="12m")
    bought = [one.fields for one in reasons if one.code == "Increased"]
    assert bought == [{"size": 0, "to": 6}]
    found = {one.metadata.name: one.status.conditions for one in state.capacity.requests}
    assert is_true(found["train"], "BookingExpired")
    assert is_true(found["probe"], "Provisioned")
    assert not is_true(found["too-large"], "Provisioned")
    assert not state.pending


def test_capacity_is_reserved_and_filled_again(tmp_path):
    """A burst takes the capacity of a buffer and waits for no node; the buffer has nodes bought behind it."""
    result, state, reasons, now = played("capacity-buffer", tmp_path, duration="35m")
    assert result.summary.pending_pod_minutes == 0
    grown = [one for one in reasons if one.code == "BufferDemand" and one.fields["missing"]]
    assert {one.subject for one in grown} >= {"default/report-room", "default/storefront-spare"}
    spare = explain_buffer(state, ("default", "storefront-spare"), now)
    assert " requested pods have capacity." in spare[0]
    for buffer in ("storefront-spare", "report-room"):
        template = state.capacity.template("default", f"capacitybuffer-{buffer}-pod-template")
        assert template.metadata.uid
        assert template.template.spec.containers


def test_a_remembered_shortage_spares_orders_in_vain(tmp_path):
    """With the memory one order fails, without it one in each group; the pods wait no longer."""
    waits = {}
    for memory, orders in (("30m", 1), ("0s", 4)):
        flags = {"stock-out-memory": memory, "expander": "least-waste"}
        result, _, reasons, _ = played("stock-out", tmp_path / memory, flags=flags, duration="40m")
        failed = [one for one in reasons if one.code == "FailedInstance"]
        assert len(failed) == orders
        waits[memory] = result.summary.pending_pod_minutes
    assert waits["30m"] <= waits["0s"]


QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: default}
spec: {hard: {requests.cpu: "9"}}
"""
USED = 'status: {hard: {requests.cpu: "9"}, used: {requests.cpu: "6"}}\n'


@pytest.mark.parametrize(("text", "pods"), [(QUOTA, 2), (QUOTA + USED, 1)], ids=["spec", "status"])
def test_a_quota_limits_the_buffers_of_its_namespace(tmp_path, text, pods):
    """A run takes the status as its manifest gives it, else the amounts of the spec; the buffer's nodes are for what is left."""
    manifests = (*load_scenario(EXAMPLES / "capacity-buffer.yaml").manifests, text)
    notices = []
    changes = {"duration": "10m", "manifests": manifests, "warn": notices.append}
    _, state, _, now = played("capacity-buffer", tmp_path, **changes)
    rule = "a run creates pods above it; only CapacityBuffers keep to it, by its status"
    assert notices == [f"ResourceQuota default/team: {rule}"]
    found = {one.metadata.name: one.status for one in state.capacity.buffers}
    assert found["report-room"].replicas == pods
    lines = explain_buffer(state, ("default", "report-room"), now)
    limit = "quota team limits it to 1: requests.cpu 9, 6 used, 0 reserved by older buffers"
    assert (limit in lines) == (pods == 1)
