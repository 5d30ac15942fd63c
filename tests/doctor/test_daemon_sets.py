"""What the doctor says of DaemonSets that are too large for nodes."""

from __future__ import annotations

from tests.doctor.findings import found
from tests.nodes.frozen import daemon_set, group, node, pod, template


def test_a_daemon_set_that_fills_new_nodes():
    """It is named once, with the groups that get no new node; where it fits it is no finding."""
    groups = (group("g"), group("h", made=template(cpu="64")), group("i", made=template(cpu="2")))
    small = daemon_set("small", cpu="1500m")
    (one,) = found("daemon-sets", groups=groups, daemon_sets=(daemon_set("agent", cpu="5"), small))
    assert (one.object, one.severity) == ("DaemonSet kube-system/agent", "critical")
    assert one.seen == (
        "its pod asks for 5 cpu: with it the pods of DaemonSets do not fit on a new node of groups g (4), i (2)"
    )
    assert found("daemon-sets", groups=groups, daemon_sets=(small,)) == []


def test_pods_of_a_daemon_set_that_wait_on_their_nodes():
    """No node is bought for them, so nobody else says that they wait."""
    pods = [pod(f"agent-{at}", of="agent", kind="DaemonSet") for at in range(3)]
    for count, said in (
        (1, "1 of its pods waits for capacity on its node"),
        (3, "3 of its pods wait for capacity on their nodes"),
    ):
        (one,) = found(
            "daemon-sets", groups=(group("g", nodes=["n1"]),), nodes=(node("n1"),), pods=tuple(pods[:count])
        )
        assert (one.object, one.seen) == ("DaemonSet default/agent", said)
