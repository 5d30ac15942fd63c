"""The plane that tests run on: who may do what there, and that nothing of it outlives its owner."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kubetide.cluster import HttpCluster, load_kubeconfig
from kubetide.objects.kinds import NAMESPACES, PODS
from kubetide.ports.errors import Forbidden
from kubetide.runtime.timing.clock import run_real

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

OWNER = """
import sys
from pathlib import Path
from tests.plane.running import running_plane
with running_plane(Path(sys.argv[1]), controllers=False):
    print("up", flush=True)
    sys.stdin.read()
"""


def programs_of(folder):
    """Numbers of the processes that were started with a path below the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:  # it has just ended
            continue
        if f"={folder}/".encode() in words:
            found.append(int(entry.parent.name))
    return found


def test_identities(quiet_plane):
    """The kubeconfig is the administrator's; others may do what roles allow them, which is nothing at first."""

    async def run(clock):
        assert load_kubeconfig(quiet_plane.kubeconfig) == quiet_plane.connection
        certified = quiet_plane.connection_of("eve", "system:masters")
        for connection in (quiet_plane.connection, certified):
            async with HttpCluster(connection, clock) as client:
                assert (await client.get(NAMESPACES, "default")).metadata.name == "default"
        for connection, name in ((quiet_plane.viewer, "viewer"), (quiet_plane.connection_of("eve"), "eve")):
            async with HttpCluster(connection, clock) as client:
                with pytest.raises(Forbidden, match=f'User "{name}" cannot list resource "pods"'):
                    await client.list(PODS)

    run_real(run)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_program_outlives_its_owner(how, quiet_plane, tmp_path):
    """etcd and kube-apiserver end with the process that started them, also if that is killed."""
    assert programs_of(quiet_plane.folder)
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, text=True
    ) as owner:
        assert owner.stdout.readline() == "up\n"
        assert len(programs_of(tmp_path / "plane-0")) == 2
        owner.send_signal(how)
        owner.wait(30)
    deadline = time.monotonic() + 60
    while left := programs_of(tmp_path / "plane-0"):
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.05)
