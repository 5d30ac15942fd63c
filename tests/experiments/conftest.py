"""A small scenario as a file."""

from __future__ import annotations

import json

import msgspec
import pytest
import yaml
from tests.simulate.worlds import small

from kubetide.experiments.changes import without_nulls


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.yaml"
    path.write_text(yaml.safe_dump(without_nulls(json.loads(msgspec.json.encode(small(duration="10m"))))))
    return path
