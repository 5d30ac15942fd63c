"""Writes from several clients, watches all the time, and a server that stops and starts in between.

What is asked of a run: every stream of a watch, folded, comes to the final state; versions grow
strictly; nothing that was acknowledged is lost, and what was not acknowledged happened or did not.
"""

from __future__ import annotations

import asyncio
import errno
import json
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.served import _AUTHORITY, ADMIN, TOKEN

from kubetide.cluster import Connection, HttpCluster
from kubetide.embedded.apiserver.http import ApiServer, Identities
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.apiserver.store.journal import Journal
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.errors import ApiError, Expired, NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.units.time import milliseconds, minutes

PATH = "/api/v1/namespaces/default/configmaps"
DELETED = None
LOST = (ApiError, aiohttp.ClientError, asyncio.TimeoutError, ConnectionError, OSError)
DEADLINE_S = 15
PATIENCE = minutes(2)


class Plant:
    """The server of a test, which can be stopped and started; its state is persisted in a folder."""

    def __init__(self, clock, folder):
        self.clock, self.folder, self.port = clock, folder, 0
        self.server = self.cluster = self.journal = None

    async def start(self):
        self.journal = Journal.open(self.folder)
        store = Store(history=40)
        self.journal.attach(store, self.clock.now)
        self.cluster = EmbeddedCluster(store, self.clock, seed=1)
        self.server = ApiServer(
            self.cluster.rest,
            self.clock,
            identities=Identities({TOKEN: ADMIN}),
            tls=_AUTHORITY.server_context(["127.0.0.1"]),
        )
        await self.listen()
        self.port = int(self.server.url.rpartition(":")[2])

    async def listen(self):
        """Begin to listen, after a stop where it did before: others may have got that port for a connection."""
        in_vain = self.clock.monotonic() + PATIENCE
        while True:
            try:
                await self.server.start(port=self.port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or self.clock.monotonic() > in_vain:
                    raise
                await self.clock.sleep(milliseconds(20))
            else:
                return

    async def stop(self):
        await self.server.stop()
        self.journal.close()

    async def disturb(self, how):
        if how == "restart":
            await self.stop()
            await self.start()
        elif how == "drop":
            self.cluster.drop_watches()
        elif how == "expire":
            self.cluster.expire_watches()
        else:  # every connection breaks
            await self.server.stop()
            await self.listen()

    @property
    def connection(self):
        return Connection(f"https://127.0.0.1:{self.port}", TOKEN, _AUTHORITY.certificate.decode())


class ViaPort:
    """Writes as the Cluster port does."""

    def __init__(self, client):
        self.client = client

    async def do(self, verb, name, number):
        body = body_of(name, number)
        if verb == "create":
            read = await self.client.create(CONFIG_MAPS, body, namespace="default")
        elif verb in {"patch", "apply"}:
            read = await self.client.patch(CONFIG_MAPS, name, body, namespace="default")
        elif verb == "replace":
            read = await self.client.replace(CONFIG_MAPS, body, namespace="default")
        else:
            await self.client.delete(CONFIG_MAPS, name, namespace="default")
            return None
        return int(read.metadata.resource_version)


class Raw:
    """Writes as any client of the API does."""

    def __init__(self, session, plant):
        self.session, self.plant = session, plant

    async def do(self, verb, name, number):
        method, path, kind = {
            "create": ("POST", PATH, "application/json"),
            "patch": ("PATCH", f"{PATH}/{name}", "application/merge-patch+json"),
            "apply": ("PATCH", f"{PATH}/{name}?fieldManager=raw&force=1", "application/apply-patch+yaml"),
            "replace": ("PUT", f"{PATH}/{name}", "application/json"),
            "delete": ("DELETE", f"{PATH}/{name}", "application/json"),
        }[verb]
        body = {} if verb == "delete" else body_of(name, number)
        url = self.plant.connection.url + path
        async with self.session.request(
            method, url, data=json.dumps(body), headers={"Content-Type": kind}
        ) as answer:
            read = await answer.json()
            if answer.status == 404:
                raise NotFound(read["message"])
            if answer.status >= 400:
                raise ApiError(read["message"])
        return None if verb == "delete" else int(read["metadata"]["resourceVersion"])


def body_of(name, number):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"color": "red" if number % 2 else "blue"}},
        "data": {"n": str(number)},
    }


class Writer:
    """Carries out operations on names of its own, and records their possible results."""

    def __init__(self, door, names):
        self.door = door
        self.may_be = {name: {DELETED} for name in names}
        self.versions = []

    async def run(self, operations, clock):
        for number, (verb, index) in enumerate(operations):
            name = list(self.may_be)[index]
            after = DELETED if verb == "delete" else str(number)
            before = self.may_be[name]
            try:
                version = await asyncio.wait_for(self.door.do(verb, name, number), DEADLINE_S)
            except LOST:
                # Refused, or nobody knows: a request that was sent again may find its own work done.
                self.may_be[name] = before | {after}
                await clock.sleep(milliseconds(5))
                continue
            self.may_be[name] = {after}
            if version is not None:
                self.versions.append((version, name, after))


class Watch:
    """Follows a watch from a list on, however often it is ended."""

    def __init__(self, plant, client, **selection):
        self.plant, self.client, self.selection = plant, client, selection
        self.state = {}
        self.lists = 0

    async def run(self, clock):
        version = ""
        while True:
            with suppress(*LOST):
                if not version:
                    found = await self.client.list(CONFIG_MAPS, namespace="default", **self.selection)
                    self.state = {
                        one.metadata.name: int(one.metadata.resource_version) for one in found.items
                    }
                    version = found.resource_version
                    self.lists += 1
                try:
                    async for batch in self.client.watch(
                        CONFIG_MAPS, resource_version=version, namespace="default", **self.selection
                    ):
                        for event in batch:
                            version = self._take(event, version)
                except Expired:
                    version = ""
            await clock.sleep(milliseconds(5))

    def _take(self, event, version):
        assert int(event.resource_version) >= int(version), "versions go back"
        if event.type == "BOOKMARK":
            return event.resource_version
        assert int(event.resource_version) > int(version), "an event is sent twice"
        if event.type == "DELETED":
            assert event.name in self.state
            del self.state[event.name]
        else:
            assert (event.type == "ADDED") == (event.name not in self.state)
            self.state[event.name] = int(event.resource_version)
        return event.resource_version


verbs = st.sampled_from(["create", "create", "patch", "patch", "replace", "apply", "delete"])
plans = st.lists(st.tuples(verbs, st.integers(0, 2)), min_size=5, max_size=30)
disturbances = st.lists(
    st.tuples(st.sampled_from(["restart", "drop", "cut", "expire", "restart"]), st.integers(0, 30)),
    min_size=1,
    max_size=4,
)
SELECTIONS = ({}, {"labels": "color=red"}, {"fields": "metadata.name=w1-0"}, {"labels": "color!=red"})


@settings(max_examples=12)
@given(st.lists(plans, min_size=3, max_size=3), disturbances)
def test_what_was_acknowledged_stays_and_watches_come_to_the_same(plans, disturbances):
    """Whatever stops in between, streams fold to the final state and no acknowledged write is lost."""

    async def main(clock):
        with TemporaryDirectory() as folder:
            async with world(clock, Path(folder)) as (plant, doors, client):
                writers = [
                    Writer(door, [f"w{number}-{name}" for name in range(3)])
                    for number, door in enumerate(doors)
                ]
                watches = [Watch(plant, client, **selection) for selection in SELECTIONS]
                watching = [asyncio.ensure_future(watch.run(clock)) for watch in watches]
                writing = [
                    asyncio.ensure_future(writer.run(plan, clock))
                    for writer, plan in zip(writers, plans, strict=True)
                ]
                for how, pause in disturbances:
                    await clock.sleep(milliseconds(pause))
                    await plant.disturb(how)
                await asyncio.gather(*writing)
                finals = [
                    await client.list(CONFIG_MAPS, namespace="default", **selection)
                    for selection in SELECTIONS
                ]
                for watch, final in zip(watches, finals, strict=True):
                    there = {one.metadata.name: int(one.metadata.resource_version) for one in final.items}
                    in_vain = clock.monotonic() + PATIENCE
                    while watch.state != there and not any(task.done() for task in watching):
                        if clock.monotonic() > in_vain:
                            break
                        await clock.sleep(milliseconds(10))
                    assert [task.exception() for task in watching if task.done()] == []
                    assert watch.state == there
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
                check(writers, finals[0])

    run_real(main)


def check(writers, final):
    there = {one.metadata.name: one for one in final.items}
    reported = {}
    for writer in writers:
        assert writer.versions == sorted(writer.versions), "versions go back"
        for version, name, data in writer.versions:
            assert reported.setdefault(version, (name, data)) == (name, data), "two writes of one version"
        for name, may_be in writer.may_be.items():
            found = there.get(name)
            assert (DELETED if found is None else found.data["n"]) in may_be
            last = max((version for version, whose, _ in writer.versions if whose == name), default=0)
            assert found is None or int(found.metadata.resource_version) >= last


@asynccontextmanager
async def world(clock, folder):
    """A server over the folder, three doors to write through, and a client to read with."""
    plant = Plant(clock, folder)
    await plant.start()
    connector = make_connector(ssl=plant.connection.tls())
    headers = {"Authorization": f"Bearer {TOKEN}", "User-Agent": "raw/1"}
    async with (
        HttpCluster(plant.connection, clock) as one,
        HttpCluster(plant.connection, clock, seed=2) as two,
        aiohttp.ClientSession(connector=connector, headers=headers) as session,
    ):
        try:
            yield plant, (ViaPort(one), ViaPort(two), Raw(session, plant)), one
        finally:
            await plant.stop()
