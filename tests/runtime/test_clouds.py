"""The cloud of a process: what its settings say of node groups is read before anything is opened."""

from __future__ import annotations

import pytest

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.nodes.settings import Settings
from kubetide.runtime.clouds import open_cloud
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339


@pytest.mark.parametrize("provider", ["aws", "azure", "gce", "alicloud", "tencentcloud", "labels"])
def test_groups_that_cannot_be_read_are_named_with_the_flag_and_the_form(provider):
    """Each provider with groups by name refuses a value without bounds before it asks for credentials."""

    async def main(clock):
        run = RunSettings(cloud_provider=provider, nodes=("workers", "5:1"))
        async with open_cloud(run, Settings(), clock):
            pytest.fail("it was opened")

    with pytest.raises(
        CloudConfigError, match=r"--nodes=workers: .*; give MIN:MAX:.*; --nodes=5:1: "
    ) as found:
        run_virtual(main, start=parse_rfc3339("2026-03-02T00:00:00Z"))
    assert "\n" not in str(found.value)
