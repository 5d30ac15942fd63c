"""The script that prepares a new machine waits for other package managers."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
APT_GET = ROOT / ".ci" / "apt-get"
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 735 (apt)"


@pytest.mark.parametrize(
    ("answers", "calls", "status"),
    [([""], 1, 0), ([LOCKED, LOCKED, ""], 3, 0), (["E: Unable to locate package chromium"], 1, 1)],
    ids=["free", "locked", "another error"],
)
def test_apt_get_waits_for_a_lock_and_for_nothing_else(tmp_path, answers, calls, status):
    """When another process holds the lock apt-get is called again; any other failure ends at once, with its message."""
    for number, answer in enumerate(answers, 1):
        (tmp_path / f"answer-{number}").write_text(answer)
    program = tmp_path / "apt-get"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {tmp_path}/calls\n'
        f"said=$(cat {tmp_path}/answer-$(wc -l < {tmp_path}/calls))\n"
        'echo "$said" >&2; [ -z "$said" ]\n'
    )
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\nexec "$@"\n')
    for path in (program, sudo):
        path.chmod(0o755)
    run = subprocess.run(
        [APT_GET, "update", "-qq"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBETIDE_LOCK_PAUSE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    made = (tmp_path / "calls").read_text().splitlines()
    assert (run.returncode, len(made)) == (status, calls)
    assert made[0] == "-o DPkg::Lock::Timeout=600 update -qq"
    assert run.stderr.strip() == (answers[-1] if status else "")


def test_nothing_that_can_be_required_is_skipped():
    """The script sets each variable by which tests may not be skipped, and docs/testing.md names it."""
    asked = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r'environ\.get\("(KUBETIDE_REQUIRE_\w+)"', path.read_text(encoding="utf-8"))
    }
    assert len(asked) >= 6
    for page in (".ci/run", "docs/testing.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert {name for name in asked if f"{name}=1" not in text} == set(), page
