"""The CronTab example: a custom kind with a controller of its own beside a run, scaled by hand and by an HPA."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.cluster import HttpCluster, load_kubeconfig
from kubetide.objects.kinds import PODS, Kind
from kubetide.objects.pod import Pod
from kubetide.runtime.timing.clock import run_real
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.testing.cluster_cases.ground import eventually, goes

EXAMPLE = Path(__file__).parents[2] / "examples" / "crontab"
CRON_TABS = Kind("stable.example.com", "v1", "CronTab", "crontabs", dict)
SHIPPED = "my-new-cron-object"
UP = [
    sys.executable,
    "-c",
    "from kubetide.cli.main import main; main()",
    "up",
    str(EXAMPLE / "scenario.yaml"),
]


def controller():
    """The example's program as a module."""
    spec = importlib.util.spec_from_file_location("crontab_controller", EXAMPLE / "controller.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its annotations are looked up there
    spec.loader.exec_module(module)
    return module


CONTROLLER = controller()


@contextmanager
def running(command, *signs, **popen):
    """A process that has said each sign, a line each, on the stream that is a pipe; interrupted, it must end well."""
    with subprocess.Popen(command, text=True, **popen) as process:
        pipe = process.stderr or process.stdout
        try:
            for sign in signs:
                assert select.select([pipe], [], [], 60)[0], "nothing was said for a minute"
                assert sign in pipe.readline()
            yield
        finally:
            process.send_signal(signal.SIGINT)
            # Else a process that does not end would be waited for without end.
            killer = threading.Timer(60, process.kill)
            killer.start()
            rest = pipe.read()
            killer.cancel()
        assert (process.wait(30), rest) == (0, "")


@contextmanager
def run_with_controller(folder):
    """The scenario, served, and the controller beside it; gives the path of the kubeconfig."""
    out = folder / "out"
    up = [*UP, "--speed", "30", "--until", "6h", "--out", str(out), "--serve"]
    config = out / "kubeconfig"
    beside = [sys.executable, str(EXAMPLE / "controller.py"), "--kubeconfig", str(config)]
    with (
        running(
            up,
            "CronTab: 1 of a custom kind",
            "kubectl --kubeconfig",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ),
        running(beside, "keeping the pods", stdout=subprocess.PIPE),
    ):
        yield config


async def kubectl(config, *words):
    """The output of kubectl, None where there is none."""
    program = shutil.which("kubectl")
    if program is None:
        return None
    environment = {"PATH": os.environ["PATH"], "HOME": str(config.parent), "KUBECONFIG": str(config)}
    process = await asyncio.create_subprocess_exec(program, *words, env=environment, stdout=subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()


async def scale(cluster, config, name, replicas):
    """Scale as a person does, by kubectl where there is one."""
    said = await kubectl(config, "scale", f"crontab/{name}", f"--replicas={replicas}")
    if said is None:
        await cluster.replace_scale(CRON_TABS, name, replicas, namespace="default")
    else:
        assert said == f"crontab.stable.example.com/{name} scaled\n"


@pytest.mark.slow
def test_a_custom_kind_is_run_scaled_and_autoscaled(tmp_path):
    """Pods appear with a CronTab, follow kubectl scale and the HPA, and go with it."""

    async def story(clock):
        async with HttpCluster(load_kubeconfig(config), clock) as cluster:

            async def ready_pods(name):
                found = await cluster.list(PODS, namespace="default", labels=f"crontab={name}")
                return [
                    pod.metadata.name
                    for pod in found.items
                    if any(
                        one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ()
                    )
                    and not pod.metadata.deletion_timestamp
                ]

            async def comes_to(name, replicas):
                async def there():
                    tab = await cluster.get(CRON_TABS, name, namespace="default")
                    names = [f"{name}-{number}" for number in range(replicas)]
                    return await ready_pods(name) == names and tab["status"]["replicas"] == replicas

                await eventually(clock, f"{name} has {replicas} pods", there)

            spec = {"cronSpec": "* * * * */5", "image": "img", "replicas": 2}
            await cluster.create(
                CRON_TABS, {"metadata": {"name": "by-hand"}, "spec": spec}, namespace="default"
            )
            await comes_to("by-hand", 2)
            await scale(cluster, config, "by-hand", 3)
            await comes_to("by-hand", 3)
            found = await cluster.get_scale(CRON_TABS, "by-hand", namespace="default")
            assert (found.spec.replicas, found.status.replicas) == (3, 3)
            assert found.status.selector == "crontab=by-hand"
            await scale(cluster, config, "by-hand", 1)
            await comes_to("by-hand", 1)

            said = await kubectl(config, "explain", "crontab.spec.replicas")
            assert said is None or "How many pods there are to be." in said

            said = await kubectl(config, "get", "all")
            assert said is None or f"crontab.stable.example.com/{SHIPPED} " in said

            async def scaled_up():
                return (await cluster.get(CRON_TABS, SHIPPED, namespace="default"))["spec"]["replicas"] >= 4

            await eventually(clock, "the HPA scales up", scaled_up)
            tab = await cluster.get(CRON_TABS, SHIPPED, namespace="default")
            await comes_to(SHIPPED, tab["spec"]["replicas"])

            for name in ("by-hand", SHIPPED):
                await cluster.delete(CRON_TABS, name, namespace="default")
                await goes(cluster, clock, PODS, f"{name}-0", "default")
                assert await ready_pods(name) == []

    with run_with_controller(tmp_path) as config:
        run_real(story)


def test_the_scenario_is_read():
    """The example has no mistakes, and its objects follow their definition."""
    assert load_scenario(EXAMPLE / "scenario.yaml").services[0].title == "cron-work"


def pod(number, *, deleting=False, phase="Running"):
    meta = {"name": f"tab-{number}", "namespace": "default", "uid": f"uid-{number}"}
    if deleting:
        meta["deletionTimestamp"] = "2026-03-02T00:00:00Z"
    return msgspec.convert({"metadata": meta, "status": {"phase": phase}}, Pod)


PODS_OF_A_TAB = st.lists(
    st.builds(
        pod,
        st.integers(0, 6),
        deleting=st.booleans(),
        phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    ),
    unique_by=lambda one: one.metadata.name,
)


@given(st.integers(0, 5), PODS_OF_A_TAB)
def test_a_plan_reaches_the_desired_pods(replicas, pods):
    """A plan, once carried out, leaves desired pods alone, uses no name twice, and leaves nothing to do."""
    tab = msgspec.convert(
        {"metadata": {"name": "tab", "namespace": "default", "uid": "u"}, "spec": {"replicas": replicas}},
        CONTROLLER.CronTab,
    )
    todo = CONTROLLER.plan(tab, pods)
    made = [body["metadata"]["name"] for body in todo.create]
    assert not {*made} & {one.metadata.name for one in pods}
    # Pods whose deletion was requested disappear in time; created pods come up.
    left = [one for one in pods if not one.metadata.deletion_timestamp and one not in todo.delete]
    assert len(left) <= todo.status.replicas
    after = [*left, *(pod(name.removeprefix("tab-")) for name in made)]
    again = CONTROLLER.plan(tab, after)
    names = {one.metadata.name for one in after} | {body["metadata"]["name"] for body in again.create}
    assert names == {f"tab-{number}" for number in range(replicas)}
    assert again.delete == []
