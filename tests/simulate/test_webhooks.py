"""Admission webhooks in runs: called live, and never in virtual time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

import pytest
from msgspec.structs import replace
from tests.cluster.hook_server import configuration, hook_server, webhook
from tests.simulate.worlds import MANIFEST, small

from kubetide.objects.kinds import MUTATING_WEBHOOKS, PODS
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_real, run_virtual
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.notices import notices_of
from kubetide.simulate.scenarios.scenario import start_of
from kubetide.simulate.world import World
from kubetide.units.time import after, milliseconds, minutes

SCENARIO = """
name: hooked
start: 2026-03-02T00:00:00Z
duration: 1h
warmUp: 1m
nodeGroups:
- {name: general, instanceType: m5.large, min: 1, max: 4, initial: 1}
services:
- {deployment: web, cpuSecondsPerRequest: 0.01, load: {daily: {low: 1, peak: 1}}}
"""
COMMAND = "from kubetide.cli.main import main; main()"


def hooked(client_config):
    """Return a manifest of a configuration that asks one webhook about new pods."""
    body = configuration(
        "hooks",
        webhook(client_config, "pods", operations=["CREATE"], failurePolicy="Ignore", timeoutSeconds=30),
    )
    return json.dumps({"apiVersion": MUTATING_WEBHOOKS.api_version, "kind": MUTATING_WEBHOOKS.kind, **body})


@pytest.mark.slow
def test_up_calls_webhooks(tmp_path):
    """`kubetide up`, without --serve too, asks a webhook about the pods of a Deployment."""

    async def main(clock):
        async with hook_server() as hooks:
            (tmp_path / "objects.yaml").write_text(
                f"{hooked(hooks.client_config('annotate'))}\n---\n{MANIFEST}"
            )
            (tmp_path / "scenario.yaml").write_text(SCENARIO + "manifests: [objects.yaml]\n")
            run = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", COMMAND, "up", str(tmp_path / "scenario.yaml")),
                # In real time, so that a machine that is busy makes no call too late; ended when both have come.
                *("--speed", "1", "--until", "1h", "--out", str(tmp_path / "out")),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            ended = asyncio.ensure_future(run.communicate())
            try:
                async with asyncio.timeout(300):
                    while len(hooks.requests("annotate")) < 2 and not ended.done():
                        await clock.sleep(milliseconds(50))
                    if not ended.done():
                        run.send_signal(signal.SIGINT)
                    said, _ = await ended
            finally:
                if run.returncode is None:
                    run.kill()
            assert run.returncode == 0, said.decode()
            asked = hooks.requests("annotate")
            owners = {request["object"]["metadata"]["ownerReferences"][0]["kind"] for request in asked}
            assert (len(asked), owners) == (2, {"ReplicaSet"})

    run_real(main)


def test_a_run_in_virtual_time_leaves_webhooks_out(tmp_path):
    """A simulation says which it leaves out; what a webhook behind a Service would need is in no run."""
    by_url, by_service = (
        replace(small(), manifests=(f"{hooked(client)}\n---\n{MANIFEST}",))
        for client in ({"url": "https://127.0.0.1:1/x"}, {"service": {"namespace": "a", "name": "b"}})
    )
    manifests = manifests_of(by_url, tmp_path)
    assert notices_of(manifests, calls_webhooks=True) == ()

    async def main(clock, scenario):
        end = after(start_of(scenario), minutes(1))
        world = World(scenario, clock, base=tmp_path, end=end, seed=1, recorder=NullRecorder())
        await world.run()
        assert (await world.cluster.list(MUTATING_WEBHOOKS)).items == []
        assert (await world.cluster.list(PODS)).items
        return world.timeline.notices

    start = start_of(by_url)
    [notice] = run_virtual(lambda clock: main(clock, by_url), start=start)
    assert notice == (
        "MutatingWebhookConfiguration hooks: left out; webhooks answer in real time, so only `kubetide up` calls them"
    )
    [notice] = run_virtual(lambda clock: main(clock, by_service), start=start)
    assert notice == "MutatingWebhookConfiguration: 1 skipped; nothing that scales reads the kind"
