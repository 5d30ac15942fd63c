"""Completion in bash, zsh and fish, and the plugin of kubectl: each driven by the real program where it is installed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from tests.simulate.worlds import small
from tools.plane.build import find

from kubetide.cli.main import cli
from kubetide.simulate.run import run_simulation

ROOT = Path(__file__).parents[2]

BASH = """
source <(kubetide completion bash)
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_kubetide_completion kubetide
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ : }}
compadd() {{ print -l -- $completions }}
_describe() {{ print -l -- $completions_with_descriptions }}
source <(kubetide completion zsh)
words=({words}); CURRENT=${{#words}}
_kubetide_completion
"""
FISH = """
kubetide completion fish | source
complete -C {line}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the records of a run and, on the PATH, `kubetide` and the plugin."""
    folder = tmp_path_factory.mktemp("shells")
    run_simulation(small(duration="1m"), base=folder, out=folder / "kubetide-out", seed=1, warn=pytest.fail)
    programs = folder / "bin"
    programs.mkdir()
    for name in ("kubetide", "kubectl-kubetide"):
        code = f"import sys; sys.argv[0] = {name!r}; from kubetide.cli.main import main; main()"
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n')
        program.chmod(0o755)
    return folder


def run(place, *command):
    environment = {**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}", "HOME": str(place)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=place, env=environment
    )


def offered(place, shell, line):
    """Return what the shell offers at the end of the line."""
    path = os.environ.get(f"KUBETIDE_{shell.upper()}") or shutil.which(shell)
    if path is None:
        pytest.skip(f"not there: {shell} (KUBETIDE_{shell.upper()})")
    words = " ".join(shlex.quote(word) for word in line.split(" "))
    if shell == "bash":
        found = run(place, path, "--norc", "-c", BASH.format(words=words))
    elif shell == "zsh":
        found = run(place, path, "-f", "-c", ZSH.format(words=words))
    else:
        found = run(place, path, "--no-config", "-c", FISH.format(line=shlex.quote(line)))
    assert "Traceback" not in found.stderr, found.stderr
    return {one.split("\t")[0].split(":")[0] for one in found.stdout.split("\n") if one}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "some"), [("kubetide expl", {"explain"}), ("kubetide explain hpa default/", {"default/web"})]
)
def test_a_shell_offers_what_fits(place, shell, line, some):
    """Commands, and names of objects in the records of the present folder; nothing else."""
    assert offered(place, shell, line) == some


@pytest.mark.parametrize(
    ("words", "begun", "some"),
    [
        (["explain"], "node", {"node", "nodegroup"}),
        (["explain"], "depl", {"deployment"}),
        (["explain", "po"], "default/web-", set()),
        (["explain", "hpa"], "w", {"web"}),
        (["explain", "deploy"], "default/", {"default/web"}),
        (["explain", "nothing"], "", set()),
        (["run"], "--scale-down-unneeded", {"--scale-down-unneeded-time="}),
        (["config", "check"], "--kube-api-q", {"--kube-api-qps="}),
        (["simulate"], "web", {"web-shop"}),
        (["explain"], "--name", {"--namespace"}),
    ],
)
def test_what_is_offered(place, monkeypatch, words, begun, some):
    """Kinds, objects by short names too, workloads, settings of a run, shipped scenarios, flags."""
    monkeypatch.chdir(place)
    found = ShellComplete(cli, {}, "kubetide", "_KUBETIDE_COMPLETE").get_completions(words, begun)
    values = {item.value for item in found}
    assert all(value.startswith(begun) for value in values)
    assert values >= some if words == ["explain", "po"] else values == some


def test_without_records_nothing_is_offered(tmp_path, place):
    """TAB in a folder without a run says nothing and breaks nothing."""
    (tmp_path / "bin").symlink_to(place / "bin")
    assert offered(tmp_path, "bash", "kubetide explain hpa w") == set()


def test_kubectl_finds_the_plugin(place):
    """`kubectl kubetide explain` answers, and the help page says how it was called."""
    kubectl = find("kubectl") or shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not there (python -m tools.plane build kubectl)")
    said = run(place, kubectl, "kubetide", "explain", "deploy/web")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("hpa default/web at ")
    assert run(place, kubectl, "kubetide", "--help").stdout.startswith("Usage: kubectl kubetide ")


def test_the_plugin_is_installed_with_the_package():
    """Both names are scripts of the package."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts["kubectl-kubetide"] == scripts["kubetide"]
