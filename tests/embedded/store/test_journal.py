from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.apiserver.store.journal import Journal, JournalError
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    NODES,
    PODS,
    REPLICA_SETS,
    Kind,
)
from kubetide.ports.errors import Expired, InternalError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import Instant, hours, parse_rfc3339

KEYS = [("default", name) for name in "abc"]
NOW = Instant(1_000)


def contents(store):
    """Everything in a store, by resource and key."""
    found = {}
    for kind in store.kinds:
        for resource in (CONFIG_MAPS, NODES):
            if kind is resource:
                for key in [*KEYS, *(("", name) for name in "abc")]:
                    revision = store.get(kind, key)
                    if revision is not None:
                        found[kind.resource, key] = revision.json
    return found


def opened(folder, **options):
    journal = Journal.open(folder, **options)
    store = Store()
    journal.attach(store, lambda: NOW)
    return journal, store


operations = st.lists(
    st.tuples(st.sampled_from([CONFIG_MAPS, NODES]), st.sampled_from("abc"), st.integers(-3, 30)),
    min_size=1,
    max_size=25,
)


def act(store, kind, name, number):
    """Write an object, or remove it if it is there and the number is negative."""
    key = ("default" if kind.namespaced else "", name)
    if number >= 0:
        body = {"metadata": {"name": name, "uid": f"{kind.plural}-{name}"}, "data": {"n": str(number)}}
        store.put(kind, key, body)
    elif store.get(kind, key) is not None:
        store.remove(kind, key)


@settings(max_examples=40, deadline=None)
@given(operations=operations, longest=st.sampled_from([3, 1000]), data=st.data())
def test_killed_at_any_byte_nothing_acknowledged_is_lost(operations, longest, data):
    """Whatever byte the process is killed at, what comes back is the state after a write: no earlier than the last acknowledged one."""
    with TemporaryDirectory() as name:
        folder, copy = Path(name, "kept"), Path(name, "copy")
        journal, store = opened(folder, longest=longest)
        chosen = data.draw(st.integers(0, len(operations) - 1))
        for operation in operations[:chosen]:
            act(store, *operation)
        # Before this write all of the files are acknowledged; after it none of its bytes need be.
        before, acknowledged = contents(store), {path: path.read_bytes() for path in folder.iterdir()}
        version = store.version
        act(store, *operations[chosen])
        after = contents(store)
        (path,) = folder.glob("state-*.jsonl")
        whole = path.read_bytes()
        copy.mkdir()
        if path in acknowledged:
            done = len(acknowledged[path])
            cut = data.draw(st.integers(done, len(whole)))
            (copy / path.name).write_bytes(whole[:cut])
        else:
            # The write led to a new generation: killed while that was written aside.
            for old, raw in acknowledged.items():
                (copy / old.name).write_bytes(raw)
            cut = data.draw(st.integers(0, len(whole)))
            (copy / path.name).with_suffix(".new").write_bytes(whole[:cut])
            done = -1
        journal.close()
        again, restored = opened(copy)
        found = contents(restored)
        assert found == (after if path in acknowledged and cut == len(whole) else before)
        assert restored.version in {version, store.version}
        assert bool(again.restored.cut) == (done < cut < len(whole) and done >= 0)
        again.close()


def test_a_torn_line_is_named_and_removed(tmp_path):
    """A torn last line is cut off, the report says how much and where, and the next start is clean."""
    journal, store = opened(tmp_path)
    act(store, NODES, "a", 1)
    act(store, NODES, "b", 1)
    journal.close()
    (path,) = tmp_path.glob("state-*.jsonl")
    path.write_bytes(path.read_bytes()[:-10])
    journal, store = opened(tmp_path)
    assert journal.restored.cut.startswith(f"{path}: cut ")
    assert journal.restored.cut.endswith(" bytes of an unfinished write after line 2")
    assert [name for name in "ab" if store.get(NODES, ("", name))] == ["a"]
    journal.close()
    journal, _ = opened(tmp_path)
    assert journal.restored.cut == ""
    assert journal.restored.starts == 2
    journal.close()


def test_no_version_is_given_twice(tmp_path):
    """A client that listed at a version without a write misses nothing after a start."""
    journal, store = opened(tmp_path)
    act(store, CONFIG_MAPS, "a", 1)
    store.close_watches(expire=True)
    listed = store.version
    journal.close()
    journal, store = opened(tmp_path)
    act(store, CONFIG_MAPS, "b", 1)
    watcher = store.watch(CONFIG_MAPS, Selection(CONFIG_MAPS), listed)
    assert [(entry.type, entry.revision.key[1]) for entry in watcher.take()] == [("ADDED", "b")]
    journal.close()


def test_damage_before_whole_lines_is_refused(tmp_path):
    """A broken line that whole lines follow is no crash: nothing is dropped in silence."""
    journal, store = opened(tmp_path)
    for number in range(3):
        act(store, NODES, "a", number)
    journal.close()
    (path,) = tmp_path.glob("state-*.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b"1", b"2")
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(JournalError, match="line 3 is damaged and whole lines follow it"):
        opened(tmp_path)


def test_a_folder_has_one_user(tmp_path):
    """A second process gets an error, and the first goes on."""
    journal, store = opened(tmp_path)
    with pytest.raises(JournalError, match="another process keeps its state there"):
        opened(tmp_path)
    act(store, NODES, "a", 1)
    journal.close()
    shutil.copytree(tmp_path, tmp_path / "copy")
    opened(tmp_path / "copy")[0].close()


def test_a_write_that_cannot_be_logged_is_refused(tmp_path):
    """When the log cannot take a write, the store does not either."""
    journal, store = opened(tmp_path)
    act(store, NODES, "a", 1)
    journal.close()
    with pytest.raises(InternalError, match="closed"):
        act(store, NODES, "b", 1)
    assert store.get(NODES, ("", "b")) is None


def test_parts_and_the_time_are_persisted(tmp_path):
    """The parts that others persist beside the store come back, with the time of the last line."""
    times = iter(range(1, 100))
    journal = Journal.open(tmp_path, longest=2)
    journal.attach(Store(), lambda: Instant(next(times)))
    for number in range(9):
        journal.keep("cloud", {"machines": number})
    journal.mark_time()
    journal.close()
    journal = Journal.open(tmp_path)
    restored = journal.restored
    assert restored.parts == {"cloud": {"machines": 8}}
    assert restored.now >= 10
    journal.forget()
    assert journal.restored.is_new
    journal.close()
    journal = Journal.open(tmp_path)
    assert journal.restored.parts == {}
    journal.close()


def test_a_cluster_goes_on_where_it_was(tmp_path):
    """Versions go on, a watch from before must list again, events still expire, and garbage is taken away."""

    async def first(clock):
        journal = Journal.open(tmp_path)
        store = Store()
        journal.attach(store, clock.now)
        cluster = EmbeddedCluster(store, clock)
        await cluster.create(CONFIG_MAPS, builders.config_map("kept"), namespace="default")
        owner = await cluster.create(REPLICA_SETS, builders.replica_set("web"), namespace="default")
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner.metadata.uid}
        await cluster.create(PODS, builders.pod("web-1", owners=[reference]), namespace="default")
        event = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "web-1", "namespace": "default"},
        }
        await cluster.create(EVENTS, event, namespace="default")
        # As if the process had ended between the removal of the owner and that of its pod.
        store.remove(REPLICA_SETS, ("default", "web"))
        journal.close()
        return store.version

    async def second(clock, version):
        journal = Journal.open(tmp_path)
        store = Store()
        journal.attach(store, clock.now)
        assert store.version == version
        cluster = EmbeddedCluster(store, clock, seed=1)
        assert (await cluster.get(CONFIG_MAPS, "kept", namespace="default")).metadata.uid
        assert list((await cluster.list(PODS)).items) == []
        with pytest.raises(Expired):
            async for _ in cluster.watch(CONFIG_MAPS, resource_version=str(version - 1)):
                raise AssertionError("a watch from before the start gave something")
        await clock.sleep(hours(1))
        event = {"metadata": {"name": "f"}, "involvedObject": {"namespace": "default"}}
        await cluster.create(EVENTS, event, namespace="default")
        assert [each.metadata.name for each in (await cluster.list(EVENTS)).items] == ["f"]
        journal.close()

    start = parse_rfc3339("2026-03-02T00:00:00Z")
    version = run_virtual(first, start=start)
    run_virtual(lambda clock: second(clock, version), start=start)


def test_custom_resources_come_back(tmp_path):
    """Objects of a defined kind are there again once their definition is."""
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }
    widgets = Kind("example.com", "v1", "Widget", "widgets", dict)

    async def body(clock, first):
        journal = Journal.open(tmp_path)
        store = Store()
        journal.attach(store, clock.now)
        cluster = EmbeddedCluster(store, clock)
        if first:
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
            await cluster.create(widgets, {"metadata": {"name": "w"}, "size": 3}, namespace="default")
        found = [each["size"] for each in (await cluster.list(widgets)).items]
        journal.close()
        return found

    start = parse_rfc3339("2026-03-02T00:00:00Z")
    assert run_virtual(lambda clock: body(clock, first=True), start=start) == [3]
    assert run_virtual(lambda clock: body(clock, first=False), start=start) == [3]
