"""The answers that the session with kubectl expects of the embedded cluster are still those of a real control plane."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.kubectl.expected import is_recorded
from tests.cluster.kubectl.play import minor_of
from tests.conftest import skip_without_plane
from tools.plane.build import find

# They can only change with the version of Kubernetes, or with the session.
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def test_a_real_plane_answers_as_recorded():
    """Every answer of the session comes out the same on a fresh plane whose nodes and pods live."""
    skip_without_plane()
    kubectl = str(find("kubectl"))
    assert is_recorded(minor_of(kubectl))
    check = [sys.executable, "-m", "tests.cluster.kubectl", "check", "--kubectl", kubectl]
    run = subprocess.run(
        check, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=580
    )
    assert run.returncode == 0, run.stdout + run.stderr
