"""A controller of CronTabs: runs as many pods of each as it requests, and says how many there are.

    python controller.py --kubeconfig kubetide-out/kubeconfig

It has the form of all controllers: a pure function (``plan``) says what is to be done, from what
caches hold; around it is as little I/O as there can be. Whatever was missed, seen late or done
twice is put right by the next look, so nothing is remembered. Pods bear numbers: one that a cache
does not show yet is not made twice, as its name is taken.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import field, to_builtins

from kubetide.cluster import HttpCluster, load_kubeconfig
from kubetide.objects.base import ApiStruct, Json
from kubetide.objects.kinds import PODS, Kind
from kubetide.objects.meta import ApiObject, controller_of
from kubetide.objects.pod import Pod, is_finished
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import seconds
from kubetide.watching import Informer

LABEL = "crontab"
"""On each pod: the name of its CronTab."""

_PAUSE = seconds(1)


# ── what is read ────────────────────────────────────────────────────────────────────────────────


class CronTabSpec(ApiStruct):
    cron_spec: str = ""
    image: str = ""
    replicas: int = 1


class CronTabStatus(ApiStruct):
    replicas: int = 0
    label_selector: str = ""


class CronTab(ApiObject):
    spec: CronTabSpec = field(default_factory=CronTabSpec)
    status: CronTabStatus = field(default_factory=CronTabStatus)


CRON_TABS = Kind("stable.example.com", "v1", "CronTab", "crontabs", CronTab, subresources=("status", "scale"))


# ── what is to be done ──────────────────────────────────────────────────────────────────────────


class Plan(NamedTuple):
    """The changes that give a CronTab its desired pods, and the status that is true now."""

    create: list[Json]
    delete: list[Pod]
    status: CronTabStatus


def plan(tab: CronTab, pods: Sequence[Pod]) -> Plan:
    """Decide for one CronTab.

    Args:
        tab: What is expected.
        pods: Its pods; those that are being deleted still hold their names.
    """
    expected = [f"{tab.metadata.name}-{number}" for number in range(tab.spec.replicas)]
    taken = {pod.metadata.name for pod in pods}
    running = [pod for pod in pods if not pod.metadata.deletion_timestamp and not is_finished(pod)]
    return Plan(
        create=[_pod(tab, name) for name in expected if name not in taken],
        delete=[
            pod
            for pod in pods
            if not pod.metadata.deletion_timestamp and (pod.metadata.name not in expected or is_finished(pod))
        ],
        status=CronTabStatus(replicas=len(running), label_selector=f"{LABEL}={tab.metadata.name}"),
    )


def _pod(tab: CronTab, name: str) -> Json:
    meta = tab.metadata
    return {
        "metadata": {
            "name": name,
            "labels": {LABEL: meta.name},
            # With its owner a pod goes too, by the cluster's own garbage collection.
            "ownerReferences": [
                {
                    "apiVersion": CRON_TABS.api_version,
                    "kind": CRON_TABS.kind,
                    "name": meta.name,
                    "uid": meta.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "containers": [
                {
                    "name": "cron",
                    "image": tab.spec.image,
                    "args": [tab.spec.cron_spec],
                    "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}},
                }
            ]
        },
    }


# ── doing it ────────────────────────────────────────────────────────────────────────────────────


async def reconcile(cluster: Cluster, tab: CronTab, pods: Sequence[Pod]) -> None:
    """Do what the plan for one CronTab says. Raises the ApiError that it cannot go on with."""
    todo, home = plan(tab, pods), tab.metadata.namespace
    for body in todo.create:
        with suppress(AlreadyExists):
            await cluster.create(PODS, body, namespace=home)
    for pod in todo.delete:
        with suppress(NotFound, Conflict):  # deleted already, or another pod of that name by now
            await cluster.delete(PODS, pod.metadata.name, namespace=home, uid=pod.metadata.uid)
    if todo.status != tab.status:
        status = {"status": {"replicas": 0, **to_builtins(todo.status)}}
        await cluster.patch(CRON_TABS, tab.metadata.name, status, namespace=home, subresource="status")


async def run(cluster: Cluster, clock: Clock) -> None:
    """Look at all CronTabs whenever one of them or of their pods has changed, until cancelled."""
    tabs = Informer(cluster, CRON_TABS, clock)
    pods = Informer(cluster, PODS, clock, labels=LABEL)
    changed = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for informer in (tabs, pods):
            informer.on_change(lambda *_: changed.set())
            tasks.create_task(informer.run())
        await tabs.synced()
        await pods.synced()
        while True:
            changed.clear()
            for tab in tuple(tabs.objects.values()):
                try:
                    await reconcile(cluster, tab, _pods_of(tab, pods))
                except NotFound:
                    continue  # deleted meanwhile; the cache will say so
                except ApiError as error:
                    print(f"CronTab {tab.metadata.namespace}/{tab.metadata.name}: {error}", flush=True)
                    await clock.sleep(_PAUSE)
                    changed.set()
            await changed.wait()


def _pods_of(tab: CronTab, pods: Informer[Pod]) -> list[Pod]:
    def is_own(pod: Pod) -> bool:
        owner = controller_of(pod.metadata)
        return owner is not None and owner.uid == tab.metadata.uid

    return [pod for _, pod in sorted(pods.objects.items()) if is_own(pod)]


async def _main(clock: Clock, kubeconfig: Path) -> None:
    async with HttpCluster(load_kubeconfig(kubeconfig), clock) as cluster:
        print("keeping the pods of CronTabs; Ctrl-C ends it", flush=True)
        await run(cluster, clock)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Runs the pods of CronTabs.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        run_real(lambda clock: _main(clock, arguments.kubeconfig))
