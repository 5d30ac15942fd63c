"""What the program says of a right that its account lacks: the role of the chart that grants it."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner
from tests.cli.test_run import QUICK, Busy, a_busy_deployment, line_with, running
from tests.cluster.served import ADMIN, TOKEN, served
from tests.deploy.conftest import ACT
from tests.deploy.requests import ACCOUNT, account_of, granted_by

from kubetide.cli.main import cli
from kubetide.embedded.apiserver.http import Identities, User
from kubetide.embedded.apiserver.http.access import Wish
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.loop import BUILT_IN
from kubetide.objects.kinds import HPAS
from kubetide.ports.errors import Forbidden
from kubetide.runtime.permissions import roles, with_hint
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import milliseconds


def test_the_program_says_what_it_lacks(rendered, tmp_path):
    """`kubetide run` with an account that may not read pods names the role, and goes on."""
    granted = {one for one in granted_by(rendered()) if one.resource != "pods"}

    async def main(clock):
        identities = Identities({TOKEN: ADMIN, "account": account_of(granted, set())})
        async with served(clock, identities=identities) as (_, server, connection):
            config = tmp_path / "kubeconfig"
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(server.url, token="account", authority=authority))
            async with running(config, tmp_path / "out", QUICK, "--log-format=json") as process:
                line = await line_with(process, "cannot read pods: pods is forbidden: User ")
                assert "; ClusterRole kubetide-horizontal of deploy/ grants it" in line

    run_real(main)


def test_refused_metrics_name_the_role_beside_upstream_s_words(rendered, tmp_path):
    """In the log once and in `explain`; the HPA's condition says what upstream's would."""
    granted = {one for one in granted_by(rendered(ACT)) if one.group != "metrics.k8s.io"}
    out, hint = tmp_path / "out", "; ClusterRole kubetide-horizontal of deploy/ grants it"

    async def main(clock):
        identities = Identities({TOKEN: ADMIN, "account": account_of(granted, set())})
        metrics = Busy(clock, ["web-0", "web-1"])
        async with served(clock, metrics=metrics, identities=identities) as (cluster, server, connection):
            config = tmp_path / "kubeconfig"
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(server.url, token="account", authority=authority))
            await a_busy_deployment(cluster, clock)
            async with running(
                config, out, QUICK, "--act", "--adopt-hpas-after=0s", "--log-format=json"
            ) as process:
                line = json.loads(await line_with(process, "cannot read resource metrics: "))["message"]
                assert "pods.metrics.k8s.io is forbidden: User " in line
                assert hint in line
                async with asyncio.timeout(300):
                    while not (active := await scaling_active(cluster)):
                        await clock.sleep(milliseconds(50))
            assert "pods.metrics.k8s.io is forbidden: User " in active.message
            assert "deploy/" not in active.message
        result = CliRunner().invoke(cli, ["explain", "hpa", "web", f"--out={out}"])
        assert result.exit_code == 0, result.output
        answer, metric = (one for one in result.output.splitlines() if hint in one)
        assert "pods.metrics.k8s.io is forbidden" in answer
        assert "pods.metrics.k8s.io is forbidden" in metric

    run_real(main)


async def scaling_active(cluster):
    status = (await cluster.get(HPAS, "web", namespace="default")).status
    return next((one for one in status.conditions or () if one.type == "ScalingActive"), None)


@pytest.mark.parametrize("role", roles(), ids=lambda role: f"{role.kind}-{role.name}")
def test_a_refusal_names_the_role(role):
    """For all that a role grants, the words in which RBAC refuses it lead back to that role."""
    controllers = tuple(name for name in BUILT_IN if name in role.name)
    for grant in role.grants:
        group = grant.group.replace("*", "apps")
        for resource in grant.resources:
            named = resource.replace("*/scale", "statefulsets/scale").replace("*", "pods/requests")
            for verb in grant.verbs:
                with pytest.raises(Forbidden) as refused:
                    User(ACCOUNT).require(Wish(verb, group, named, "default"))
                reported = str(refused.value)
                where = f" with {grant.value}=true" if grant.value else ""
                hint = f"; {role.kind} {role.name} of deploy/ grants it{where}"
                assert with_hint(reported, controllers) == f"{reported}{hint}"


def test_other_errors_stay_as_they_are():
    """An error that no role of ours would fix gets no hint, nor does one that another loop's role would fix."""
    for verb, group, resource in (("get", "", "secrets"), ("list", "batch", "jobs")):
        with pytest.raises(Forbidden) as refused:
            User(ACCOUNT).require(Wish(verb, group, resource))
        assert with_hint(str(refused.value), ("horizontal",)) == str(refused.value)
    assert with_hint("connection refused", ("horizontal", "nodes")) == "connection refused"
