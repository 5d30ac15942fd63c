"""A person's session with kubectl against ``kubetide up --serve``, answered as a real control plane answers it.

Played by every kubectl that ``KUBETIDE_KUBECTL`` names (paths, separated by colons), else by the one on the PATH;
skipped where there is none. The session and its expectations, recorded from a
real plane, lie in ``tests/cluster/kubectl``.
"""

from __future__ import annotations

import difflib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tests.cluster.kubectl.expected import expectation, is_recorded
from tests.cluster.kubectl.play import SCENARIO, Answer, Player, Step, load_session, minor_of


def kubectls():
    """Every kubectl that is named, which must be there; else the one on the PATH."""
    named = [path for path in os.environ.get("KUBETIDE_KUBECTL", "").split(":") if path]
    found = shutil.which("kubectl")
    return named or ([found] if found else [])


@contextmanager
def served(folder):
    """Start ``kubetide up --serve`` and return the path of its kubeconfig."""
    code = "from kubetide.cli.main import main; main()"
    out = folder / "out"
    command = [sys.executable, "-c", code, "up", str(SCENARIO), "--speed", "5", "--out", str(out), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert select.select([run.stderr], [], [], 300)[0], "nothing was said for five minutes"
            assert "kubectl --kubeconfig" in run.stderr.readline()
            yield out / "kubeconfig"
        finally:
            run.send_signal(signal.SIGINT)
            rest = run.stderr.read()
        assert (run.wait(300), rest) == (0, "")
        assert not (out / "kubeconfig").exists()


def difference(name, expected, text):
    """Return how an answer differs from its expectation, nothing where it does not."""
    lines = difflib.unified_diff(
        expected.splitlines(),
        text.splitlines(),
        f"{name}: a real plane",
        f"{name}: kubetide",
        lineterm="",
        n=2,
    )
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kubectl", kubectls() or [pytest.param("", marks=pytest.mark.skip("no kubectl on the PATH"))]
)
def test_a_session(kubectl, tmp_path):
    """Every step of the session, and a watch over all of it, is answered as a real plane answers it."""
    minor = minor_of(kubectl)
    if not is_recorded(minor):
        pytest.skip(f"nothing is recorded of kubectl 1.{minor}: see tests/cluster/kubectl/__main__.py")
    found = []
    with served(tmp_path) as config:
        assert config.stat().st_mode & 0o777 == 0o600
        player = Player(kubectl, config, tmp_path)
        with player.watching() as watched:
            for step in load_session():
                answer = player.answer(step)
                if step.matches:
                    missing = [pattern for pattern in step.matches if not re.search(pattern, answer.said)]
                    found += [f"{step.name}: no {pattern} in\n{answer.said}" for pattern in missing]
                elif minor >= step.since:
                    found.append(difference(step.name, expectation(step.name, minor), answer.text(step)))
        watch = Answer("\n".join(watched), "", 0).text(Step(name="watch", run=""))
        found.append(difference("watch", expectation("watch", minor), watch))
        found = [text for text in found if text]
        assert not found, f"{len(found)} answers differ:\n\n" + "\n\n".join(found)
