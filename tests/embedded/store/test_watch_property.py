"""Whatever is written, every watch adds up to the state that a list gives."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import PODS
from kubetide.ports.errors import ApiError, Expired
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T08:00:00Z")

NAMESPACES = ("default", "kube-system")
WATCHES = (
    {},
    {"namespace": "default"},
    {"labels": "app=a"},
    {"labels": "app!=a,tier"},
    {"fields": "spec.nodeName=n1"},
    {"fields": "status.phase!=Running"},
    {"namespace": "default", "labels": "app in (a,b)", "fields": "spec.nodeName!="},
)

names = st.sampled_from(["p1", "p2", "p3"])
spaces = st.sampled_from(NAMESPACES)
labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from([None, "a", "b"]), min_size=1)
writes = st.one_of(
    st.tuples(st.just("create"), spaces, names, labels),
    st.tuples(st.just("label"), spaces, names, labels),
    st.tuples(st.just("phase"), spaces, names, st.sampled_from(["Pending", "Running", "Failed"])),
    st.tuples(st.just("bind"), spaces, names, st.sampled_from(["n1", "n2"])),
    st.tuples(st.just("delete"), spaces, names, st.sampled_from([None, 0])),
    st.tuples(st.just("finalizers"), spaces, names, st.sampled_from([[], ["test/a"]])),
    st.tuples(st.just("pause"), spaces, names, st.none()),
    st.tuples(st.sampled_from(["drop", "expire"]), spaces, names, st.none()),
)


async def write(cluster, clock, op, namespace, name, value):
    if op == "create":
        body = builders.pod(name, labels={key: item for key, item in value.items() if item})
        await cluster.create(PODS, body, namespace=namespace)
    elif op == "label":
        await cluster.patch(PODS, name, {"metadata": {"labels": value}}, namespace=namespace)
    elif op == "phase":
        patch = {"status": {"phase": value}}
        await cluster.patch(PODS, name, patch, namespace=namespace, subresource="status")
    elif op == "bind":
        await cluster.bind(namespace=namespace, pod=name, node=value)
    elif op == "delete":
        await cluster.delete(PODS, name, namespace=namespace, grace_period_s=value)
    elif op == "finalizers":
        await cluster.patch(PODS, name, {"metadata": {"finalizers": value}}, namespace=namespace)
    elif op == "drop":
        cluster.drop_watches()
    elif op == "expire":
        cluster.expire_watches()
    else:
        await clock.sleep(seconds(1))


class Follower:
    """Builds a state by list and watch alone, and checks each event against it."""

    def __init__(self, cluster, where):
        self.cluster, self.where = cluster, where
        self.state = {}

    async def run(self):
        version = ""
        while True:
            if not version:
                listing = await self.cluster.list(PODS, **self.where)
                self.state = {(pod.metadata.namespace, pod.metadata.name): pod for pod in listing.items}
                version = listing.resource_version
            try:
                async for batch in self.cluster.watch(PODS, resource_version=version, **self.where):
                    for event in batch:
                        assert int(event.resource_version) >= int(version), "versions go forward"
                        version = event.resource_version
                        self.take(event)
            except Expired:
                version = ""

    def take(self, event):
        key = (event.namespace, event.name)
        if event.type == "BOOKMARK":
            return
        assert (key in self.state) is (event.type != "ADDED"), event
        if event.type == "DELETED":
            del self.state[key]
        else:
            assert self.state.get(key) != event.object, "an event is a change"
            self.state[key] = event.object


@settings(max_examples=40, deadline=None)
@given(st.lists(writes, min_size=30, max_size=80))
def test_every_watch_adds_up_to_the_state(ops):
    """Lists plus watches, with any selectors, dropped and expired at will, end as what a list gives."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(history=10), clock, seed=1)
        followers = [Follower(cluster, where) for where in WATCHES]
        tasks = [asyncio.ensure_future(follower.run()) for follower in followers]
        for op in ops:
            with suppress(ApiError):  # refusals are part of life
                await write(cluster, clock, *op)
        await clock.sleep(seconds(1))
        for follower in followers:
            listing = await cluster.list(PODS, **follower.where)
            assert [follower.state[key] for key in sorted(follower.state)] == list(listing.items), (
                follower.where
            )
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended), ended

    run_virtual(main, start=START)


@settings(max_examples=40, deadline=None)
@given(st.lists(writes, min_size=30, max_size=80))
def test_indexes_agree_with_a_scan(ops):
    """Lists by namespace and by node, which use indexes, agree with the list of everything."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        for op in ops:
            with suppress(ApiError):
                await write(cluster, clock, *op)
        everything = (await cluster.list(PODS)).items
        keys = [(pod.metadata.namespace, pod.metadata.name) for pod in everything]
        assert keys == sorted(keys)
        for namespace in NAMESPACES:
            found = (await cluster.list(PODS, namespace=namespace)).items
            assert list(found) == [pod for pod in everything if pod.metadata.namespace == namespace]
        for node in ("n1", "n2"):
            found = (await cluster.list(PODS, fields=f"spec.nodeName={node}")).items
            assert list(found) == [pod for pod in everything if pod.spec.node_name == node]

    run_virtual(main, start=START)


@settings(max_examples=30, deadline=None)
@given(st.lists(writes, min_size=30, max_size=80))
def test_no_write_changes_an_earlier_revision(ops):
    """Revisions share structure, so what a reader was given must stay as it was whatever is written later."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        given_out = []

        for op in ops:
            with suppress(ApiError):
                await write(cluster, clock, *op)
            for revision in (await cluster.list(PODS.untyped)).items:
                given_out.append((revision, json.dumps(revision)))  # noqa: PERF401  two things are recorded of each
        for revision, text in given_out:
            assert json.dumps(revision) == text

    run_virtual(main, start=START)
