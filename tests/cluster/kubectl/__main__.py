"""Records the expectations of the session from a real control plane, or checks them there.

    python -m tests.cluster.kubectl record --kubectl PATH
    python -m tests.cluster.kubectl check --kubectl PATH

Starts a plane of its own (``make control-plane`` builds the programs), with every controller and without
kubelets and a metrics API. Its nodes are those of ``scenario.yaml``, made and animated by the embedded
cloud and kubelets through the Cluster port. ``--kubeconfig`` takes another plane, which must be fresh.
Record with the newest kubectl first: those of other versions record only answers that differ, in
``expected/1.<minor>/``.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.cluster.kubectl.expected import NEWEST, expectation, folder_of
from tests.cluster.kubectl.play import SCENARIO, Answer, Player, Step, load_session, minor_of
from tests.plane.running import running_plane

from kubetide.cluster import HttpCluster, load_kubeconfig
from kubetide.embedded.cloud import EmbeddedCloud
from kubetide.embedded.kubelet import KubeletPool, PodTimes
from kubetide.objects.kinds import DEPLOYMENTS, NODES, PODS
from kubetide.runtime.timing.clock import run_real
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.machines import between, catalogue_of, groups_of
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.units.time import seconds
from kubetide.watching import Informer

Take = Callable[[Step, Answer], None]


def main() -> None:
    """Read the command line, and record or check."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.kubectl")
    parser.add_argument("do", choices=["record", "check"])
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--kubectl", default="kubectl")
    asked = parser.parse_args()
    minor = minor_of(asked.kubectl)
    with ExitStack() as stack:
        config = asked.kubeconfig
        if config is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            flags = tuple(f"--{name}={value}" for name, value in load_scenario(SCENARIO).flags.items())
            config = stack.enter_context(running_plane(home, autoscaler=True, manager_flags=flags)).kubeconfig
        if asked.do == "check":
            differing: list[str] = []
            _on_plane(config, asked.kubectl, lambda step, answer: _check(minor, step, answer, differing))
            sys.exit(f"{len(differing)} answers differ: {', '.join(differing)}" if differing else 0)
        _prepare(minor)
        _on_plane(config, asked.kubectl, lambda step, answer: _record(minor, step, answer))


def _on_plane(config: Path, kubectl: str, take: Take) -> None:
    """Type the session, with nodes and pods that live."""
    scenario = load_scenario(SCENARIO)

    async def live(clock):
        async with HttpCluster(load_kubeconfig(config), clock) as cluster, asyncio.TaskGroup() as group:
            pods, nodes = Informer(cluster, PODS, clock), Informer(cluster, NODES, clock)
            tasks = [group.create_task(informer.run()) for informer in (pods, nodes)]
            for informer in (pods, nodes):
                await informer.synced()
            cloud = EmbeddedCloud(
                cluster, clock, seed=1, groups=groups_of(scenario), catalogue=catalogue_of(scenario)
            )
            await cloud.start()
            said = scenario.pods
            times = PodTimes(
                pull=between(said.image_pull),
                start=between(said.start),
                ready=between(said.ready),
                stop=between(said.stop),
            )
            kubelets = KubeletPool(
                cluster, clock, seed=1, times=times, pods=pods, nodes=nodes, lease_renewal=seconds(10)
            )
            tasks += [group.create_task(cloud.run()), group.create_task(kubelets.run())]
            for _, json in manifests_of(scenario, SCENARIO.parent, skipped=[]):
                await cluster.create(DEPLOYMENTS, json, namespace="default")
            await asyncio.to_thread(_type, config, kubectl, take)
            for task in tasks:
                task.cancel()

    run_real(live)


def _type(config: Path, kubectl: str, take: Take) -> None:
    with tempfile.TemporaryDirectory() as home:
        player = Player(kubectl, config, Path(home))
        with player.watching() as watched:
            for step in load_session():
                if not step.matches:
                    take(step, player.answer(step))
        take(Step(name="watch", run=""), Answer("\n".join(watched), "", 0))


def _prepare(minor: int) -> None:
    """Create the folder and delete recordings of steps that no longer exist."""
    folder = folder_of(minor)
    if minor != NEWEST:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    known = {step.name for step in load_session() if not step.matches} | {"watch"}
    for path in folder.glob("*.txt"):
        if path.stem not in known:
            path.unlink()


def _record(minor: int, step: Step, answer: Answer) -> None:
    if minor < step.since:
        return
    text = answer.text(step)
    if minor == NEWEST or expectation(step.name, NEWEST) != text:
        (folder_of(minor) / f"{step.name}.txt").write_text(text, encoding="utf-8")
    print(text, flush=True)


def _check(minor: int, step: Step, answer: Answer, differing: list[str]) -> None:
    if minor < step.since:
        return
    expected, text = expectation(step.name, minor).splitlines(), answer.text(step).splitlines()
    if text != expected:
        differing.append(step.name)
        print("\n".join(difflib.unified_diff(expected, text, "recorded", step.name, lineterm="")), flush=True)


if __name__ == "__main__":
    main()
