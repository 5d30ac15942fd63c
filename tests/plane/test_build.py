"""Programs that were built once are found again, with any Go that will do; a shell script plays Go here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.plane.build import STAGES, TARGETS, BuildError, build, find

GO = """#!/bin/sh
echo "$@" >> {log}
[ "$1" = list ] && echo {module} && exit
[ "$1" = version ] && echo "go version go{version} linux/amd64" && exit
for word in "$@"; do case "$word" in */) out=$word;; esac; done
for word in "$@"; do touch "$out/$(basename "$word" | sed s/^v3$/server/)"; done
exit {code}
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """An empty cache and an empty PATH, but for what Go's fake needs; gives a way to put Go there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("basename", "sed", "touch"):
        (programs / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(programs))
    log = tmp_path / "log"

    def put_go(version, code=0):
        command = programs / "go"
        command.write_text(GO.format(log=log, version=version, code=code, module=tmp_path / "module"))
        command.chmod(0o755)

    put_go.runs = lambda: [line for line in log.read_text().splitlines() if line.startswith("build")]
    return put_go


def test_what_is_there_is_not_built_again(machine):
    """The second build runs no compiler, and another target builds only what the first has not."""
    machine("1.26.8")
    (kubectl,) = build("kubectl")
    assert build("kubectl") == [kubectl]
    assert len(machine.runs()) == 1
    paths = build("control-plane")
    assert [path.name for path in paths] == list(TARGETS["control-plane"])
    assert all(path.exists() for path in paths)
    assert "cmd/kubectl" not in machine.runs()[1]


def test_the_newest_build_is_found(machine):
    """Each version of Go has a folder of its own, and finding needs no Go."""
    assert find("kubectl") is None
    for version in ("1.26.10", "1.26.9"):
        machine(version)
        build("kubectl")
    assert find("kubectl").parent.name.endswith("-go1.26.10")


def test_the_folder_of_kubebuilder_comes_first(machine, tmp_path, monkeypatch):
    """KUBEBUILDER_ASSETS gives what it holds; the rest comes from the cache."""
    machine("1.26.8")
    paths = {path.name: path for path in build("control-plane")}
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert find("etcd") == tmp_path / "etcd"
    assert find("kube-scheduler") == paths["kube-scheduler"]


def test_a_build_that_fails_leaves_nothing(machine):
    """An error of the compiler is an error here, and nothing half made is found later."""
    machine("1.26.8", code=2)
    with pytest.raises(BuildError, match="go build failed"):
        build("kubectl")
    assert find("kubectl") is None


def test_kwok_comes_with_its_stages(machine, tmp_path):
    """The stages that kwok's module brings lie beside it in one file; a module without them is no kwok."""
    machine("1.26.8")
    stages = tmp_path / "module" / "kustomize" / "stage"
    with pytest.raises(BuildError, match="has kwok moved them"):
        build("kwok")
    assert find("kwok") is None
    for name in (
        "node/fast/node-initialize",
        "pod/fast/pod-ready",
        "pod/fast/kustomization",
        "pod/chaos/bad",
    ):
        file = stages / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"name: {name}")
    (kwok,) = build("kwok")
    joined = kwok.with_name(STAGES).read_text()
    assert joined == "name: node/fast/node-initialize\n---\nname: pod/fast/pod-ready"
    assert find("kwok") == kwok


def test_no_go_says_what_to_do(machine, monkeypatch):
    """An old Go is not used; where pip can bring none, the message names both ways out."""
    machine("1.25.4")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    command = [sys.executable, "-m", "tools.plane", "build", "kubectl"]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert run.returncode == 1
    assert "is 1.25.4, which is too old" in run.stderr
    assert "put Go on the PATH, or run this with a Python that has pip and an index" in run.stderr
    assert run.stdout == ""
