"""The parts that providers share: configuration files, options, cached answers, limits."""

from __future__ import annotations

import asyncio

import pytest
from tests.clouds.fakes.fleet import Clock

from kubetide.clouds.common.ini import CloudConfigError, read_ini
from kubetide.clouds.common.options import IGNORE_DAEMON_SETS, SCALE_DOWN_UNNEEDED, read_options
from kubetide.clouds.common.placeholders import split_placeholders
from kubetide.clouds.common.remembered import Remembered
from kubetide.clouds.common.tokens import Renewed, Until
from kubetide.clouds.registry import CloudNotFound, cloud_factory
from kubetide.ports.errors import CloudError
from kubetide.ports.limits import UNLIMITED, ResourceLimits
from kubetide.units.time import Instant, after, minutes


def test_an_ini_file_as_git_writes_it():
    """Sections with parts, comments, quotes, escapes, keys without value, and lines that go on."""
    text = '; c\n[Global]\nZone = a # c\n[ServiceOverride "1"]\nurl = "http://x;y" ; c\nflag\nlong = a\\\nb\n'
    found = [(one.section, one.part, one.key, one.value) for one in read_ini(text) if one.key]
    assert found == [
        ("global", None, "zone", "a"),
        ("serviceoverride", "1", "url", "http://x;y"),
        ("serviceoverride", "1", "flag", None),
        ("serviceoverride", "1", "long", "ab"),
    ]


@pytest.mark.parametrize(
    "text", ["key = 1", "[a]\n= 1", '[a]\nb = "x', "[a]\nb = \\q", "[a\n", "[a]\nb = c\\"]
)
def test_a_broken_ini_file_names_the_line(text):
    """An unreadable line is refused with its number."""
    with pytest.raises(CloudConfigError, match=r"line [12]"):
        read_ini(text)


def test_a_bad_option_leaves_the_flag_and_warns():
    """One value that cannot be read leaves the others in force."""
    raw = {SCALE_DOWN_UNNEEDED: "1d", IGNORE_DAEMON_SETS: "T", "other": "x"}
    found = read_options(raw, (SCALE_DOWN_UNNEEDED, IGNORE_DAEMON_SETS))
    assert found.options.ignore_daemonsets_utilization is True
    assert found.options.scale_down_unneeded_time is None
    assert len(found.warnings) == 1
    assert "scaledownunneededtime" in found.warnings[0]


def test_keys_serve_to_their_end_when_no_new_ones_can_be_had():
    """They are made anew five minutes before; who makes them may fail until then."""
    clock = Clock()
    answers = iter([10, CloudError("throttled"), CloudError("gone"), 20])

    async def make():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return Until(answer, after(clock.now(), minutes(answer)))

    async def main():
        keys = Renewed(make, clock)
        assert await keys() == 10
        await clock.sleep(minutes(6))
        assert await keys() == 10
        await clock.sleep(minutes(4))
        with pytest.raises(CloudError, match="gone"):
            await keys()
        assert await keys() == 20

    asyncio.run(main())


def test_an_old_answer_serves_when_asking_fails():
    """An answer serves until its end, then a failure leaves it in place and a new one replaces it."""
    answers = iter([1, CloudError("throttled"), 2])
    remembered = Remembered(minutes(20), (minutes(2), minutes(10)))

    async def ask():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def main():
        found = [
            await remembered.get("key", Instant(int(at)), ask)
            for at in (0, minutes(9), minutes(21), minutes(21))
        ]
        assert found == [1, 1, 1, 2]

    asyncio.run(main())


def test_limits_of_a_cloud():
    """A maximum of 0 is a limit, a minimum of 0 is none."""
    limits = ResourceLimits(minimum={"cpu": 0, "memory": 5}, maximum={"cpu": 0})
    assert str(limits) == f"{{cpu : 0 - 0}}, {{memory : 5 - {UNLIMITED}}}"


def test_an_unknown_provider_is_named_with_those_there_are():
    """The error of a misspelt provider lists the providers."""
    with pytest.raises(CloudNotFound, match=r"there is no 'awz'; there are .*aws.*externalgrpc"):
        cloud_factory("awz")
    with pytest.raises(CloudNotFound, match="cannot be loaded"):
        cloud_factory("no_such_module:factory")


def test_orders_that_are_withdrawn_are_parted_from_machines():
    """Each counts once; one of another group is an error."""
    ids = ["r.m1", "r.placeholder-web-0", "r.m1", "r.placeholder-web-1"]
    name_of = {one: one.removeprefix("r.") for one in ids}.__getitem__
    assert split_placeholders("web", ids, name_of) == (["r.m1"], ["placeholder-web-0", "placeholder-web-1"])
    with pytest.raises(CloudError, match="placeholder-web-0, placeholder-web-1: not all are orders of shop"):
        split_placeholders("shop", ids, name_of)
