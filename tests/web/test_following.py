"""The dashboard while records are written: a new run, events of growth, and records that are read as they grow."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import partial

import aiohttp
import msgspec
import pytest
from tests.web.asking import ALL_DECISIONS, HEADERS, serving, write_records

from kubetide.runtime.recording.folder import claimed
from kubetide.runtime.recording.record_tail import RecordTail
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import RecordError, read_records
from kubetide.runtime.timing.clock import run_real
from kubetide.web import server
from kubetide.web.history import History
from kubetide.web.server import API


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(lambda run, _: run[:5], id="shorter"),
        pytest.param(
            lambda run, later: [*run[:300], *later[300:400]], id="other records behind the same ones"
        ),
        pytest.param(lambda _, later: later, id="of another day, and longer"),
        pytest.param(lambda run, _: [one for one in run if one.loop == "nodes"], id="without a loop"),
    ],
)
def test_a_new_run_takes_the_place_of_the_old_one(folder, tmp_path, new):
    """When another run writes anew to a folder, nothing of the earlier run is reported; runs are counted."""
    of_both = (read_records(folder, loop) for loop in ("horizontal", "nodes"))
    run = sorted((one for loop in of_both for one in loop), key=lambda one: (one.now, one.loop, one.tick))
    write_records(tmp_path, run[:400])
    followed = History(tmp_path)
    assert followed.span().run == 1
    write_records(
        tmp_path, new(run, [msgspec.structs.replace(one, now=one.now + 86_400 * 10**9) for one in run])
    )
    fresh = History(tmp_path)
    assert followed.span() == msgspec.structs.replace(fresh.span(), run=2)
    assert followed.span().run == 2, "one that is seen again is the same"
    assert followed.decisions(**ALL_DECISIONS) == fresh.decisions(**ALL_DECISIONS)
    assert followed.status("") == fresh.status("")


@contextmanager
def growing(folder, out):
    """Write the first record of a run; yield a function that writes the second."""
    first, second, *_ = read_records(folder, "nodes")
    writer = RecordWriter(out, warn=pytest.fail)
    writer.start()
    writer.write(first)
    yield partial(writer.write, second)
    writer.close()


def test_a_run_that_has_decided_nothing_yet_is_no_wrong_folder(tmp_path):
    """While it warms up the page says what it waits for; of a folder without a run it says that there is none."""
    with pytest.raises(RecordError, match="no records under"):
        History(tmp_path).span()
    with claimed(tmp_path), pytest.raises(RecordError, match="has begun, and no loop has decided yet"):
        History(tmp_path).span()


def test_growth_is_reported(folder, tmp_path):
    """A listener gets a line at once, and an event when something is recorded."""

    async def main(clock):
        async with (
            serving(History(tmp_path), clock) as authority,
            aiohttp.ClientSession(headers=HEADERS) as session,
            session.get(f"http://{authority}{API}/events") as answer,
        ):
            first = await answer.content.readuntil(b"\n\n")
            grow()
            return first, await answer.content.readuntil(b"\n\n")

    with growing(folder, tmp_path) as grow:
        assert run_real(main) == (b": here\n\n", b"event: grown\ndata: {}\n\n")


def test_listeners_that_never_read_delay_nobody(folder, tmp_path, monkeypatch):
    """With as many silent listeners as there may be, one more is refused, questions are answered, and readers get events."""
    monkeypatch.setattr(server, "MOST_STREAMS", 60)

    async def main(clock):
        async with serving(History(tmp_path), clock) as authority:
            host, _, port = authority.rpartition(":")
            request = f"GET {API}/events HTTP/1.1\r\nHost: {authority}\r\n"
            request += "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
            silent = [await asyncio.open_connection(host, int(port), limit=1) for _ in range(59)]
            for _, sender in silent:
                sender.write(f"{request}\r\n".encode())
                await sender.drain()
            url = f"http://{authority}{API}"
            async with (
                aiohttp.ClientSession(headers=HEADERS) as session,
                session.get(f"{url}/events") as reader,
            ):
                received = [await reader.content.readuntil(b"\n\n")]
                async with session.get(f"{url}/events") as one_more:
                    refused = one_more.status
                async with session.get(f"{url}/span") as answer:
                    answered = answer.status
                grow()
                received.append(await reader.content.readuntil(b"\n\n"))
            for _, sender in silent:
                sender.close()
            return refused, answered, received

    with growing(folder, tmp_path) as grow:
        assert run_real(main) == (503, 200, [b": here\n\n", b"event: grown\ndata: {}\n\n"])


def test_a_tail_reads_each_record_once(folder, tmp_path):
    """Whatever is written between two looks, half a line too, each record is seen once and whole."""
    whole = list(read_records(folder, "horizontal"))
    text = next((folder / "records").glob("horizontal-*.jsonl")).read_bytes()
    target = tmp_path / "records" / "horizontal-0001.jsonl"
    target.parent.mkdir()
    tail, found = RecordTail(tmp_path, "horizontal"), []
    with target.open("wb") as file:
        for start in range(0, len(text), 7919):
            file.write(text[start : start + 7919])
            file.flush()
            found += tail.read()
    assert found == whole
    assert list(tail.read()) == []
    target.write_bytes(text.splitlines(keepends=True)[0] + b"no record\n")
    with pytest.raises(RecordError, match=r"horizontal-0001\.jsonl byte"):
        list(RecordTail(tmp_path, "horizontal").read())
