"""What the tests of ``deploy/`` share: Helm, where it is built, and what it makes of the chart."""

from __future__ import annotations

import pytest
import yaml
from tools.manifests import render
from tools.plane.build import find

BOTH = ("--set=config.controllers={horizontal,nodes}", "--set=config.cloud-provider=mine")
ACT = "--set=config.act=true"
IDLEST = "--set=options.idlestFirst=true"


@pytest.fixture(scope="session")
def helm():
    found = find("helm")
    if found is None:
        pytest.skip("helm is not built (python -m tools.plane build helm)")
    return found


@pytest.fixture(scope="session")
def rendered(helm):
    """Gives the objects of the chart with these flags."""

    def make(*flags):
        return [one for one in yaml.safe_load_all(render(helm, *flags)) if one]

    return make
