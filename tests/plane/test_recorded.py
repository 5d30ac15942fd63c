"""The recorded answers of kube-apiserver are still its answers."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from tests.bad_input.record import ANSWERS, answers
from tests.conftest import skip_without_plane
from tests.plane.running import ADMIN_TOKEN, running_plane

pytestmark = pytest.mark.slow

# An object that is quoted in a message has the version and the times of its run.
_OF_THE_RUN = re.compile(r'(?<=resourceVersion)[\\":]+\d+|\d{4}-\d\d-\d\dT[\d:]+Z')


def lasting(answer):
    return _OF_THE_RUN.sub("", json.dumps(answer, sort_keys=True))


def test_answers_to_bad_requests(tmp_path):
    """A fresh API server gives the recorded answer to each bad request."""
    skip_without_plane()
    with running_plane(tmp_path, controllers=False) as plane:
        found = asyncio.run(answers(plane.url, ADMIN_TOKEN, plane.connection.tls()))
    recorded = json.loads(ANSWERS.read_text())
    differing = [name for name in found if lasting(found[name]) != lasting(recorded.get(name))]
    assert differing == []
    assert found.keys() == recorded.keys()
