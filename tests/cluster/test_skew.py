"""How far a server's clock is from ours: bounds that hold whatever the network does."""

from __future__ import annotations

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.answering import Skewed, asking, config_map
from tests.cluster.served import served

from kubetide.cluster import HttpCluster
from kubetide.cluster.skew import Skew, read_date, skew_of
from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import Duration, Instant, minutes, parse_rfc3339, seconds

NOON = parse_rfc3339("2026-03-02T12:00:00Z")
_TIMES = st.integers(0, seconds(20))


@given(st.integers(-minutes(600), minutes(600)), st.integers(0, seconds(3)), _TIMES, _TIMES)
def test_what_is_called_skew_is_skew(ahead, offset, there, back):
    """Never more than the clocks really differ, never the other way; less by the time under way and a second at most."""
    sent = Instant(NOON + offset)
    stamped = Instant((sent + there - ahead) // seconds(1) * seconds(1))
    found = skew_of(stamped, sent, Instant(sent + there + back))
    assert abs(found) <= abs(ahead)
    assert found * ahead >= 0
    assert abs(ahead - found) <= there + back + seconds(1)


@given(st.text() | st.sampled_from(["Mon, 02 Mar 2026 12:00:00 GMT", "Mon, 02 Mar 99999 12:00:00 GMT", "0"]))
def test_the_header_may_hold_any_text(text):
    """A date is read or not; nothing is raised."""
    found = read_date(text)
    assert found is None or text


def test_the_three_forms_of_a_date():
    """RFC 9110's own form, and what older servers send."""
    for text in (
        "Mon, 02 Mar 2026 12:00:00 GMT",
        "Monday, 02-Mar-26 12:00:00 GMT",
        "Mon Mar  2 12:00:00 2026",
    ):
        assert read_date(text) == NOON, text


@pytest.mark.parametrize("ahead", [minutes(-7), Duration(0), minutes(7)])
def test_a_client_knows_its_skew(ahead):
    """By the answers of an API server; the time by the server's clock follows from it."""

    async def main(clock):
        async with (
            served(clock) as (_, _, connection),
            HttpCluster(connection, Skewed(clock, ahead)) as client,
        ):
            await client.list(PODS)
            assert abs(client.skew.ahead - ahead) <= seconds(6)
            assert bool(client.skew.ahead) == bool(ahead)
            assert abs(client.skew.server_now() - clock.now()) <= seconds(6)

    run_real(main)


def test_answers_without_a_date_change_nothing():
    """Without a date, with one that cannot be read, or after too long a time."""

    async def main(clock):
        async def handler(_request):
            headers = {"Date": dates.pop(0)}
            return web.json_response(config_map(), headers=headers)

        dates = ["Mon, 02 Mar 2026 12:00:00 GMT", "", "yesterday"]
        async with asking(handler, clock) as client:
            found = []
            for _ in range(3):
                await client.get(CONFIG_MAPS, "a", namespace="default")
                found.append(client.skew.ahead)
        assert found[0] != 0
        assert found == [found[0]] * 3

    run_real(main)


def test_an_answer_that_took_long_is_passed_over():
    """Its bounds would make a real skew look like none."""

    class Fixed:
        def now(self):
            return NOON

    skew = Skew(Fixed())
    skew.note("Mon, 02 Mar 2026 11:50:00 GMT", seconds(1))
    assert skew.ahead == minutes(10) - seconds(2)
    skew.note("Mon, 02 Mar 2026 12:00:00 GMT", seconds(6))
    assert skew.ahead == minutes(10) - seconds(2)
    skew.note("Mon, 02 Mar 2026 12:00:00 GMT", seconds(5))
    assert skew.ahead == 0
