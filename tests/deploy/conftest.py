"""What the tests of ``deploy/`` share: Helm, where it is built, and what it makes of the chart."""

from __future__ import annotations

import pytest
import yaml
from tools.manifests import render

BOTH = ("--set=config.controllers={horizontal,nodes}", "--set=config.cloud-provider=mine")
ALL = (
    "--set=config.controllers={horizontal,nodes,recommender,updater,admission}",
    "--set=config.cloud-provider=mine",
)
ACT = "--set=config.act=true"
IDLEST = "--set=options.idlestFirst=true"
UI = "--set=ui.enabled=true"
CAPACITY = "--set=options.capacityApis=true"
NOMINATE = "--set=options.nominatePods=true"
DEFINITIONS = "--set=vpaDefinitions.enabled=true"
DRY_RUN = "--set=options.dryRunPods=true"


@pytest.fixture(scope="session")
def rendered(helm):
    """The objects of the chart with these flags."""

    def make(*flags):
        return [one for one in yaml.safe_load_all(render(helm, *flags)) if one]

    return make
