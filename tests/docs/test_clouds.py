"""The page of clouds is true: its policy is of the calls that are made, and its example passes the battery."""

from __future__ import annotations

import json
import re

import pytest
from tests.docs.tables import DOCS, rows, section

from kubetide.clouds.aws.api import CHANGES, CREATING, DIAGNOSING, SERVICES
from kubetide.clouds.aws.errors import cause_of_code
from kubetide.clouds.registry import CloudContext, CloudFlags, cloud_factory
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.units.time import minutes, parse_rfc3339

PAGE = (DOCS / "clouds.md").read_text(encoding="utf-8")
MEANINGS = {
    "out of capacity": "OutOfCapacity",
    "quota": "Quota",
    "throttled": "Throttled",
    "permission": "Permission",
}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_policy_is_of_exactly_the_calls():
    """The policy allows the calls that the provider makes, changes apart from reads; creation needs those of a sentence."""
    reads, changes = (one["Action"] for one in json.loads(blocks("json")[0])["Statement"])
    permissions = {name: f"{service}:{name}" for name, service in SERVICES.items()}
    assert sorted(changes) == sorted(permissions[name] for name in CHANGES)
    assert sorted(reads) == sorted(
        permissions[name] for name in SERVICES.keys() - CHANGES - CREATING - DIAGNOSING
    )
    more = section(PAGE, "### Rights").split("--node-autoprovisioning-enabled")[1]
    assert {permissions[name] for name in CREATING | DIAGNOSING} <= set(
        re.findall(r"`([a-z0-9]+:\w+)`", more)
    )


def test_errors_mean_what_the_page_says():
    """Each code of the table has the cause in its row."""
    table = rows(section(PAGE, "### When machines do not come"))
    reported = {
        code: MEANINGS[row[1]]
        for row in table
        if row[1] in MEANINGS
        for code in re.findall(r"`([A-Za-z]+)`", row[0])
    }
    assert len(reported) == 11
    assert {code: cause_of_code(code) for code in reported} == reported


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_example_passes_the_battery(case, tmp_path, monkeypatch):
    """The provider that the page shows does what the Cloud port promises, loaded as module:function."""
    source = blocks("python")[0]
    assert len(source.splitlines()) <= 85
    name = f"shelf_{case.__name__}"
    (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    async def main(clock):
        context = CloudContext(CloudFlags(nodes=("0:3:empty", "1:2:kept")), clock)
        async with cloud_factory(f"{name}:connect")(context) as cloud:
            await case(CloudUnderTest(cloud, clock, group="empty", kept="kept", patience=minutes(5)))

    run_virtual(main, start=parse_rfc3339("2026-03-02T00:00:00Z"))
