"""The documentation's walkthroughs of HPAs on a real control plane: ours as a process, and upstream's own controller.

Both do all walks, one controller after the other on one plane; what is to be seen after each step must be the same.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from click.testing import CliRunner
from tests.plane.hpa_walk import TIMES, Scene, Walk, kubectl
from tests.plane.hpa_walks import WALKS, without_metrics
from tests.plane.running import Programs
from tests.plane.towns import ACCOUNT, ROOMY, ROOT, cron_tabs, kubetide_run, requests_of, town

from kubetide.cli.main import cli
from kubetide.objects.kinds import HPAS
from kubetide.runtime.timing.clock import run_real

pytestmark = pytest.mark.slow


class Seen(NamedTuple):
    """The results of all walks with one controller.

    Attributes:
        walks: The scenes of each.
        home: The namespace they were done in.
        folder: Of what the process left behind.
    """

    walks: dict[str, dict[str, Scene]]
    home: str
    folder: Path


@asynccontextmanager
async def upstream(place):
    """Kube-controller-manager with its HPA controller and no other."""
    with ExitStack() as stack:
        Programs(stack, place.folder).start(
            "kube-controller-manager",
            (
                f"--kubeconfig={place.plane.kubeconfig}",
                "--controllers=horizontal-pod-autoscaler-controller",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                *TIMES,
            ),
        )
        yield
        await check_left_alone(place)


async def check_left_alone(place):
    """Beside upstream's controller ours names some of its HPAs, counts the others, and writes nothing but its lease and who holds it."""
    names = [hpa.metadata.name for hpa in (await place.cluster.list(HPAS, namespace=place.home)).items]
    assert len(names) == 11
    flags = ("--act", "--controllers=horizontal", *TIMES, "--leader-elect-retry-period=500ms")
    async with kubetide_run(place, "newcomer", *flags, name="newcomer") as newcomer:
        for name in sorted(names)[:3]:
            text = f"HPA {place.home}/{name} is left alone: kube-controller-manager writes its status"
            await place.until(text, lambda text=text: newcomer.said(text))
        await place.until("the others", lambda: newcomer.said("the same holds for 8 more HPAs"))
        begun = len(writes_of(place.plane, "newcomer"))
        await place.until(
            "it has gone on for a while", lambda: len(writes_of(place.plane, "newcomer")) > begun + 4
        )
    written = {(write.resource, write.namespace) for write in writes_of(place.plane, "newcomer")}
    assert written == {("leases", "kube-system"), ("events", "kube-system")}


def writes_of(plane, user):
    return [one for one in requests_of(plane, user) if one.verb not in {"get", "list", "watch"}]


@asynccontextmanager
async def ours(place):
    """``kubetide run`` as a person starts it, with the shipped roles."""
    acting = kubetide_run(place, ACCOUNT, "--act", "--controllers=horizontal", *TIMES)
    async with shipped_roles(place.plane, place.folder), acting:
        yield


@asynccontextmanager
async def shipped_roles(plane, folder):
    """Grant what ``deploy/manifests`` grants to the one who acts, and what docs/deploying.md says of custom kinds."""
    shipped = yaml.safe_load_all((ROOT / "deploy/manifests/acting.yaml").read_text())
    roles = [one for one in shipped if one and "Role" in one["kind"]]
    [horizontal] = [
        one
        for one in roles
        if one["kind"] == "ClusterRole" and one["metadata"]["name"] == "kubetide-horizontal"
    ]
    horizontal["rules"].append(
        {"apiGroups": ["stable.example.com"], "resources": ["crontabs"], "verbs": ["list", "watch"]}
    )
    file = folder / "roles.yaml"
    file.write_text(yaml.safe_dump_all(roles))
    await kubectl(plane, "apply", "-f", str(file))
    try:
        yield
    finally:
        await kubectl(plane, "delete", "--wait=false", "-f", str(file))


def seen_with(controller, plane, folder):
    """Do all walks side by side, and the one without metrics at the end."""

    async def run(clock):
        async with town(plane, clock, folder, ROOMY) as place, cron_tabs(place):
            walks = {name: Walk(place) for name in WALKS}
            async with controller(place):
                async with asyncio.TaskGroup() as together:
                    for name, walk in walks.items():
                        together.create_task(WALKS[name](walk))
                last = walks["without metrics"] = Walk(place)
                await without_metrics(last)
            return Seen({name: walk.scenes for name, walk in walks.items()}, place.home, folder)

    return run_real(run)


DESCRIBED = """\
Name:  php-apache
Namespace:  HOME
Labels:  <none>
Annotations:  <none>
Reference:  Deployment/php-apache
Metrics:  ( current / target )
  resource cpu on pods  (as a percentage of request):  47% (94m) / 50%
Min replicas:  1
Max replicas:  10
Deployment pods:  7 current / 7 desired
Conditions:
  Type  Status  Reason  Message
  ----  ------  ------  -------
  AbleToScale  True  ReadyForNewScale  recommended size matches current size
  ScalingActive  True  ValidMetricFound  the HPA was able to successfully calculate a replica count from \
cpu resource utilization (percentage of request)
  ScalingLimited  False  DesiredWithinRange  the desired count is within the acceptable range
  ScaledToZero  False  NotScaledToZero  the HPA controller did not scale the workload to zero
Events:
  Type  Reason  Age  From  Message
  ----  ------  ----  ----  -------
  Normal  SuccessfulRescale  horizontal-pod-autoscaler  New size: 4; reason: \
cpu resource utilization (percentage of request) above target
  Normal  SuccessfulRescale  horizontal-pod-autoscaler  New size: 7; reason: \
cpu resource utilization (percentage of request) above target"""


def test_both_controllers_come_to_the_same(audited, tmp_path_factory):
    """After each step: replicas, values, conditions and events, in the API's words and in kubectl's.

    One test, as the walks take most of a minute and every check is about the same ones.
    """
    seen = seen_with(ours, audited, tmp_path_factory.mktemp("ours"))
    expected = seen_with(upstream, audited, tmp_path_factory.mktemp("upstream"))
    assert steps_of(seen) == steps_of(expected)
    for walk, scenes in seen.walks.items():
        for step, scene in scenes.items():
            assert lines_of(scene) == lines_of(expected.walks[walk][step]), (walk, step)
    assert seen.walks["php-apache"]["under load"].described == DESCRIBED
    check_requests(audited)
    check_explanation(seen)
    # What was recorded beside a real control plane replays byte for byte.
    assert "decided again, all bytes equal" in kubetide("replay", seen.folder / "kubetide")


def steps_of(seen):
    return {walk: list(scenes) for walk, scenes in seen.walks.items()}


def lines_of(scene):
    """Return text whose differences can be read."""
    return json.dumps(scene._asdict(), indent=1).replace("\\n", "\n").splitlines()


def check_requests(plane):
    """With what ``deploy/manifests`` grants, no request was forbidden."""
    asked = requests_of(plane, ACCOUNT)
    resources = {request.resource for request in asked}
    assert {"deployments/scale", "crontabs/scale", "horizontalpodautoscalers/status"} <= resources
    assert [request for request in asked if request.code == 403] == []


def check_explanation(seen):
    """Each change of the walk with the values behind it."""
    reported = kubetide(
        "explain", "hpa", "php-apache", "--namespace", seen.home, "--out", seen.folder / "kubetide"
    )
    for line in (
        f"{seen.home}/php-apache: scaled from 1 to 4",
        f"{seen.home}/php-apache: scaled from 4 to 7",
        f"{seen.home}/php-apache: scaled from 3 to 6",
        "packets-per-second of the pods: 2700 of 1k: ratio 2.7 x 1 pod = 2.7, so 3 replicas",
        "requests-per-second of Ingress main-route: 1k of 10k: ratio 0.1 x 10 pods = 1, so 1 replica",
        "is held at 10 (TooManyReplicas)",
        "too few metrics for a decision; the number of replicas stays",
    ):
        assert line in reported


def kubetide(*arguments):
    done = CliRunner().invoke(cli, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.output
