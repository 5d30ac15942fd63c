"""Flags of ``kubetide handover`` that do not fit."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from kubetide.cli.main import cli


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # A probe without time to answer finds nobody, and two controllers would scale.
        (("--to", "kubetide", "--sync-period", "0"), "0 is too short"),
        (("--to", "kubetide", "--sync-period", "-15s"), "-15s is too short"),
        (("--to", "others", "--wait=-10m"), "-10m is too short"),
        (("--to", "others", "--wait", "soon"), "'soon' is no duration"),
        (("--wait", "10m"), "--wait goes with --to"),
        (("--to", "others", "--force"), "--force goes with --to kubetide"),
        (("--force",), "--force goes with --to kubetide"),
        (("--to", "kubetide", "--probe"), "--to kubetide probes by itself"),
        (("--to", "kubetide", "--output", "json"), "--output is for showing HPAs"),
    ],
)
def test_flags_that_have_no_effect_are_refused(words, said):
    """Nothing is moved by a command that means something else."""
    result = CliRunner().invoke(cli, ["handover", *words, "--kubeconfig", "none-there"])
    assert result.exit_code == 2
    assert said in result.output
