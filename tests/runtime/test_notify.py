"""Decisions sent to a webhook: what is sent, how often, and that no loop ever waits for it."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from click.testing import CliRunner
from tests.cli.test_run import QUICK, line_with, running, story
from tests.runtime.series.reading import read
from tests.tasks import stop

from kubetide.cli.main import cli
from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.horizontal.reasons import VOCABULARY
from kubetide.ports.errors import KubetideError
from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.notify import Notifier, decisions_of, encoded
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import Listener
from kubetide.units.exposition import Registry
from kubetide.units.time import Instant, after, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T12:00:00Z")
SOURCE = "https://cluster.example.com:6443"


class Clock:
    """A clock that a test moves; a sleeper wakes at once, and the length of its sleep is recorded."""

    def __init__(self):
        self.at = START
        self.slept = []

    def now(self):
        return self.at

    async def sleep(self, duration):
        self.slept.append(duration)
        await asyncio.sleep(0)


def rescaled(name="web", *, code="Rescaled", at=START, before=2, to=4):
    fields = {"current": before, "desired": to}
    why = Reason("Tolerated", f"default/{name}", {"metric": "cpu"})
    return Record("horizontal", 7, Instant(at), reasons=(Reason(code, f"default/{name}", fields), why))


@asynccontextmanager
async def webhook(answers=()):
    """Serves a webhook that gives these answers and then 200; gives its address and what it was sent."""
    got, waiting = [], list(answers)

    async def take(request):
        got.append((request.headers["Content-Type"], json.loads(await request.read())))
        status = waiting.pop(0) if waiting else 200
        if status == "hang":
            await asyncio.sleep(3600)
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_post("/hook", take)
    listener = Listener(app, grace_s=0.1)
    await listener.listen("127.0.0.1")
    try:
        yield f"http://{listener.authority}/hook", got
    finally:
        await listener.close()


class Bench:
    def __init__(self, url, form="cloudevents", reasons=()):
        self.clock, self.registry, self.warned = Clock(), Registry(), []
        self.notifier = Notifier(
            url,
            form,
            reasons,
            source=SOURCE,
            clock=self.clock,
            registry=self.registry,
            warn=self.warned.append,
        )

    def count(self, outcome):
        found = read(self.registry, "kubetide_notifications_")
        return sum(value for name, value in found.items() if outcome in str(name))

    @asynccontextmanager
    async def sending(self):
        task = asyncio.create_task(self.notifier.run())
        try:
            yield self
        finally:
            await stop(task)

    async def done(self, count):
        async with asyncio.timeout(60):
            while self.count("sent") + self.count("failed") < count:  # noqa: ASYNC110  a counter announces nothing
                await asyncio.sleep(0.01)


def played(main, *, answers=(), **options):
    async def run(_clock):
        async with webhook(answers) as (url, got), Bench(url, **options).sending() as bench:
            return await main(bench, got)

    return run_real(run)


def test_a_cloud_event_has_all_that_the_standard_requires():
    """Required attributes of CloudEvents 1.0, and why in the data."""

    async def main(bench, got):
        bench.notifier.hear(rescaled())
        await bench.done(1)
        return got

    ((kind, event),) = played(main)
    assert kind == "application/cloudevents+json"
    assert {key: event[key] for key in event if key != "data"} == {
        "specversion": "1.0",
        "id": f"{START}-horizontal-7-0-0",
        "source": SOURCE,
        "type": "dev.kubetide.decision.Rescaled",
        "subject": "horizontal/default/web",
        "time": "2026-03-02T12:00:00Z",
        "datacontenttype": "application/json",
    }
    assert event["data"]["object"] == "default/web"
    assert event["data"]["text"] == VOCABULARY.text(rescaled().reasons[0])
    assert event["data"]["why"]


def test_slack_sees_no_links_and_no_control_characters():
    """A name that looks like a mention is text; an escape sequence is shown, not sent."""
    record = rescaled("<!channel>&\x1b[31m")
    (decision,) = decisions_of(record, VOCABULARY, ())
    text = json.loads(encoded(decision, "slack", source=SOURCE))["text"]
    assert "&lt;!channel&gt;&amp;" in text
    assert "<" not in text
    assert "\x1b" not in text
    assert text.startswith("*horizontal* ")


def test_advice_is_reported_only_by_name():
    """By default what did something; with reasons exactly those."""
    advice = rescaled(code="RescaleAdvised")
    assert decisions_of(advice, VOCABULARY, ()) == []
    assert [one.reason for one in decisions_of(advice, VOCABULARY, {"RescaleAdvised"})] == ["RescaleAdvised"]
    assert decisions_of(rescaled(), VOCABULARY, {"RescaleAdvised"}) == []


def test_a_burst_is_cut_and_said_to_be():
    """Twenty go at once; the next says how many were left out, and comes when there is budget again."""

    async def main(bench, got):
        for number in range(50):
            bench.notifier.hear(rescaled(f"web-{number}"))
        assert bench.count("left_out") == 30
        bench.clock.at = after(START, seconds(3))
        bench.notifier.hear(rescaled("late", at=bench.clock.at))
        bench.notifier.hear(rescaled("later", at=bench.clock.at))
        await bench.done(21)
        return got, bench.count("left_out")

    got, left_out = played(main)
    assert len(got) == 21
    assert [event["data"].get("leftOut", 0) for _, event in got] == [0] * 20 + [30]
    assert left_out == 31


def test_the_same_is_not_said_again_for_ten_minutes():
    """Advice comes anew in each tick; another number is another decision."""

    async def main(bench, got):
        for minute, to in ((0, 4), (1, 4), (5, 5), (9, 4), (11, 4)):
            bench.clock.at = after(START, minutes(minute))
            bench.notifier.hear(rescaled(at=bench.clock.at, to=to))
        await bench.done(3)
        return [event["time"][14:16] for _, event in got]

    assert played(main) == ["00", "05", "11"]


@pytest.mark.parametrize(
    ("answers", "requests", "outcome"),
    [
        ([500, 429], 3, "sent"),
        ([503] * 4, 4, "failed"),
        ([404], 1, "failed"),
        ([302], 1, "failed"),
    ],
)
def test_what_fails_is_tried_again_where_that_may_help(answers, requests, outcome):
    """A server in trouble is asked again, after longer and longer; one that refuses or sends elsewhere is not."""

    async def main(bench, got):
        bench.notifier.hear(rescaled())
        await bench.done(1)
        return len(got), bench.count(outcome), bench.warned, bench.clock.slept

    count, counted, warned, slept = played(main, answers=answers)
    assert (count, counted) == (requests, 1)
    assert len(slept) == requests
    assert len(warned) == (outcome == "failed")
    assert not [text for text in warned if "hook" in text.replace("webhook", "")]


def test_a_webhook_that_hangs_holds_up_nobody():
    """While one request waits for its answer, a thousand decisions are taken at once; the queue has an end."""

    async def main(bench, got):
        bench.notifier.hear(rescaled())
        async with asyncio.timeout(60):
            while not got:  # noqa: ASYNC110  a list announces nothing
                await asyncio.sleep(0.01)
        for number in range(1000):
            bench.clock.at = after(START, seconds(3 * number))
            bench.notifier.hear(rescaled(f"web-{number}", at=bench.clock.at))
        return len(got), bench.count("left_out")

    assert played(main, answers=["hang"]) == (1, 900)


def test_nobody_there_is_one_warning():
    """A port without a listener: tried, given up, reported once, without the address."""

    async def main(_clock):
        async with webhook() as (url, _):
            pass
        async with Bench(url).sending() as bench:
            for name in ("a", "b"):
                bench.notifier.hear(rescaled(name))
            await bench.done(2)
            return bench.count("failed"), bench.warned

    failed, warned = run_real(main)
    assert failed == 2
    assert len(warned) == 1
    assert "127.0.0.1" not in warned[0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"notify-url": "hooks.example.com/x"}, "is no address of a webhook; write https://HOST/PATH"),
        ({"notify-url": "ftp://hooks.example.com"}, "is no address of a webhook"),
        ({"notify-reasons": "Rescaled"}, "notify-reasons is for notify-url"),
        ({"notify-url": "https://a/b", "notify-reasons": "Rescald"}, "did you mean Rescaled?"),
        ({"notify-url": "https://a/b", "notify-reasons": "Increased"}, "is no decision of these controllers"),
    ],
)
def test_wrong_settings_are_reported(settings, words):
    """Before anything is connected to, and without showing an address."""
    with pytest.raises(KubetideError, match="notify-") as found:
        make_config([("--", settings)])
    assert words in str(found.value)
    assert "hooks.example.com" not in str(found.value)


def test_config_check_does_not_show_the_address():
    """It may hold a secret."""
    said = (
        CliRunner().invoke(cli, ["config", "check", "--notify-url=https://hooks.example.com/secret"]).output
    )
    assert "notify-url" in said
    assert "secret" not in said


def test_a_run_posts_its_advice(tmp_path):
    """`kubetide run` posts the decision that a flag names, while it goes on."""

    async def main(cluster, config):
        del cluster
        async with webhook() as (url, got):
            flags = (QUICK, f"--notify-url={url}", "--notify-format=slack", "--notify-reasons=RescaleAdvised")
            async with running(config, tmp_path / "out", *flags) as process:
                await line_with(process, "would be scaled from 2 to 4")
                async with asyncio.timeout(120):
                    while not got:  # noqa: ASYNC110  a list announces nothing
                        await asyncio.sleep(0.05)
            (reported,) = got
            assert reported[1]["text"].startswith("*horizontal* default/web: would be scaled from 2 to 4\n• ")

    story(main, tmp_path)
