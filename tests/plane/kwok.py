"""kwok, which plays kubelet for every node of a plane: it says that nodes are Ready, and starts and ends their pods."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import pytest
from tests.plane.running import Plane, Programs, free_ports, is_healthy
from tools.plane.build import STAGES, find

VERSION = "kwok-0.8.0"
"""What its nodes say that they run."""

_LEASE_S = 20
"""It renews the lease of each node four times as often."""


def skip_without_kwok():
    if find("kwok") is None:
        pytest.skip("not built: kwok (make control-plane)")


@contextmanager
def kwok(plane: Plane):
    """Run kwok on a plane; all nodes are its own. Raises PlaneError with the end of its log."""
    path = find("kwok")
    assert path is not None, "skip_without_kwok comes first"
    (port,) = free_ports(1)
    with ExitStack() as stack:
        programs = Programs(stack, plane.folder)
        programs.start(
            "kwok",
            (
                f"--kubeconfig={plane.kubeconfig}",
                f"--config={path.with_name(STAGES)}",
                "--manage-all-nodes=true",
                "--cidr=10.128.0.0/16",
                "--node-ip=127.0.0.1",
                f"--server-address=127.0.0.1:{port}",
                f"--node-lease-duration-seconds={_LEASE_S}",
            ),
        )
        programs.wait("kwok is healthy", lambda: is_healthy(port))
        yield
