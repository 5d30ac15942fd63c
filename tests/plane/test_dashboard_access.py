"""Access to a dashboard, as kube-apiserver decides; and a real cluster has no playground."""

from __future__ import annotations

import subprocess

import pytest
from click.testing import CliRunner
from tests.web.reviewing import ASKING, LOOKING, PATHS, allowed_paths, grant, statuses, take_away
from tools.plane.build import find

from kubetide.cli.main import cli
from kubetide.cluster import Connection, HttpCluster
from kubetide.objects.kinds import Kind
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import milliseconds, seconds

pytestmark = pytest.mark.slow

ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts", dict)


def test_accounts_look_by_their_tokens(quiet_plane, tmp_path):
    """A ServiceAccount with the right sees pages by its token, one without does not, nor does a made-up token."""

    def token_of(account):
        command = [find("kubectl"), "--kubeconfig", quiet_plane.kubeconfig, "create", "token", account]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def subject(account):
        return {"kind": "ServiceAccount", "name": account, "namespace": "default"}

    async def main(clock):
        async with HttpCluster(quiet_plane.connection, clock) as admin:
            for name in ("ui", "looker", "stranger"):
                await admin.create(ACCOUNTS, {"metadata": {"name": name}}, namespace="default")
            await grant(admin, "kubetide-ui", ASKING, subject("ui"))
            await grant(admin, "kubetide-ui-viewer", LOOKING, subject("looker"))
            own = Connection(quiet_plane.url, token_of("ui"), quiet_plane.connection.authority)
            tokens = [token_of("looker"), token_of("stranger"), token_of("looker")[:-4] + "AAAA", ""]
            # The authorizer reads the roles through caches of its own.
            deadline = clock.monotonic() + seconds(60)
            try:
                while True:
                    found = await statuses(tmp_path, own, clock, tokens)
                    if [status for status, _ in found] == [200, 403, 401, 401]:
                        break
                    assert clock.monotonic() < deadline, found
                    await clock.sleep(milliseconds(200))
                assert "system:serviceaccount:default:stranger may not look" in found[1][1]
            finally:
                for name in ("kubetide-ui", "kubetide-ui-viewer"):
                    await take_away(admin, name)
                for name in ("ui", "looker", "stranger"):
                    await admin.delete(ACCOUNTS, name, namespace="default")

    run_real(main)


def test_reviews_of_paths(quiet_plane):
    """The facts that the embedded server's own test checks."""

    async def main(clock):
        async with HttpCluster(quiet_plane.connection, clock) as admin:
            group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "lookers"}
            await grant(admin, "lookers", LOOKING, group)
            deadline = clock.monotonic() + seconds(60)
            try:
                while (found := await allowed_paths(admin)) != [one[3] for one in PATHS]:
                    assert clock.monotonic() < deadline, found
                    await clock.sleep(milliseconds(200))
            finally:
                await take_away(admin, "lookers")

    run_real(main)


@pytest.mark.parametrize("words", [("load", "web", "5"), ("fault", "stock-out"), ("fault", "clear")])
def test_a_real_cluster_has_no_playground(quiet_plane, words):
    """Load and faults are the embedded cluster's; another one is reported by its version and asked nothing more."""
    result = CliRunner().invoke(cli, [*words, "--kubeconfig", str(quiet_plane.kubeconfig)])
    assert result.exit_code != 0
    assert "is Kubernetes v1." in str(result.exception)
    assert "embedded cluster of `kubetide up --serve` only" in str(result.exception)
