"""The worked example of a private cloud: its provider, over HTTP, against the platform that stands beside it."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer
from tests.clouds.fakes.fleet import Clock

from kubetide.clouds.registry import CloudContext, CloudFlags, cloud_factory
from kubetide.ports.errors import CloudError
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.testing.cloud_faults_battery import FAULT_CASES, FailingCloud
from kubetide.units.time import minutes

ROOT = Path(__file__).parents[2]
HERE, PAGE = ROOT / "examples" / "private-cloud", ROOT / "docs" / "cloud-private.md"
REFUSALS = {"Throttled": (429, "busy", "later"), "Permission": (403, "no", "not you")}


class Faults:
    """Makes the platform fail."""

    def __init__(self, platform):
        self.platform = platform

    async def run_out(self, group):
        self.platform.sold_out.add(group)

    async def refuse(self, cause):
        self.platform.refused = REFUSALS[cause]

    async def heal(self):
        self.platform.refused = None


@pytest.fixture
def racks(monkeypatch):
    """Let the example be named as a user names it."""
    monkeypatch.syspath_prepend(HERE)


def platform_at(clock, **how):
    spec = importlib.util.spec_from_file_location("rack_platform", HERE / "rack_platform.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Platform("secret", now=lambda: clock.monotonic() / 1e9, **how)


@asynccontextmanager
async def connected(platform, clock, token="secret"):
    async with TestServer(platform.app()) as server:
        environment = {"RACKS_URL": str(server.make_url("")).rstrip("/"), "RACKS_TOKEN": token}
        context = CloudContext(CloudFlags(), clock, environment=environment)
        async with cloud_factory("racks:connect")(context) as cloud:
            yield cloud


@pytest.mark.parametrize("case", [*CASES, *FAULT_CASES], ids=lambda case: case.__name__)
def test_the_example_passes_the_batteries(case, racks):
    """It does what the Cloud port promises, also while servers are sold out and calls are refused."""

    async def main():
        clock = Clock()
        platform = platform_at(clock)
        what = {"group": "large", "kept": "small", "patience": minutes(5)}
        async with connected(platform, clock) as cloud:
            if case in FAULT_CASES:
                await case(FailingCloud(cloud, clock, **what, faults=Faults(platform)))
            else:
                await case(CloudUnderTest(cloud, clock, **what))

    asyncio.run(main())


def test_a_token_that_is_not_known_is_a_matter_of_permission(racks):
    """The platform's own words are in the error."""

    async def main():
        clock = Clock()
        async with connected(platform_at(clock), clock, token="old") as cloud:
            with pytest.raises(CloudError, match="who-are-you: the token is not known") as found:
                await cloud.refresh()
            assert found.value.cause == "Permission"

    asyncio.run(main())


def test_without_an_address_it_says_what_to_set(racks):
    """Nothing is opened."""

    async def main():
        async with cloud_factory("racks:connect")(CloudContext(CloudFlags(), Clock(), environment={})):
            pass

    with pytest.raises(CloudError, match="set RACKS_URL"):
        asyncio.run(main())


def _lines(code):
    return "\n".join(line.strip() for line in code.splitlines() if line.strip())


def test_the_page_shows_the_example():
    """It is as short as the page says, and what the page shows of it stands in it."""
    source = (HERE / "racks.py").read_text(encoding="utf-8")
    assert sum(bool(line.strip()) for line in source.splitlines()) <= 100
    page = PAGE.read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert shown
    # The page shows methods as functions, with more space between them.
    assert all(_lines(block) in _lines(source) for block in shown)
