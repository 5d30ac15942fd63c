"""What a release publishes: a wheel that an installer installs, its SBOM, and the workflow that builds them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from tools.release import LOCK, ROOT, problems_of, sbom, version

import kubetide

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))


def step(job, name):
    [found] = [one for one in WORKFLOW["jobs"][job]["steps"] if one.get("name") == name]
    return found["run"]


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """What the workflow's own step builds, in a copy of the sources that is a repository with one commit."""
    root = tmp_path_factory.mktemp("release") / "source"
    for name in ("src", "tools", "deploy", "requirements"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, root / name)
    changes = root / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace("## [Unreleased]", f"## [{version()}] - 2026-03-02", 1))
    (root / ".venv" / "dev" / "bin").mkdir(parents=True)
    python = root / ".venv" / "dev" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_REF_NAME": f"v{version()}",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    commit = "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one --date=2026-03-02T00:00:00Z"
    built = []
    for run in ("first", "second"):
        script = f"{commit if run == 'first' else ':'}\n{step('build', 'Build')}\nmv dist {run}"
        done = subprocess.run(
            ["bash", "-euc", script], cwd=root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        built.append({path.name: path.read_bytes() for path in (root / run).iterdir()})
        for path in (root / "src").rglob("*"):
            os.utime(path, (2_000_000_000, 2_000_000_000))
    assert built[0] == built[1], "the same sources and the same date give the same bytes"
    return root / "first"


@pytest.mark.slow
def test_checksums_and_contents(dist):
    """Each file has its checksum; the wheel has the package alone, with what is no Python in it."""
    sums = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    names = {path.name for path in dist.iterdir()} - {"SHA256SUMS"}
    stem = f"kubetide-{version()}"
    assert names == set(sums) == {f"{stem}-py3-none-any.whl", f"{stem}.tar.gz", f"{stem}.cdx.json"}
    assert all(hashlib.sha256((dist / name).read_bytes()).hexdigest() == sums[name] for name in names)
    with zipfile.ZipFile(dist / f"{stem}-py3-none-any.whl") as wheel:
        inside = set(wheel.namelist())
    assert {name.split("/")[0] for name in inside} == {"kubetide", f"{stem}.dist-info"}
    package = Path(kubetide.__file__).parent
    there = {
        f"kubetide/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there <= inside


@pytest.mark.slow
def test_the_wheel_installs_and_its_commands_work(dist, tmp_path):
    """As pipx does it: into an environment of its own, with both commands; what it needs is lent from this one."""
    python = Path(sys.base_prefix) / "bin" / "python3"
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} has no pip")
    home = tmp_path / "home"
    subprocess.run([python, "-m", "venv", "--without-pip", home], check=True)
    [wheel] = dist.glob("*.whl")
    install = [
        python, "-m", "pip", "--python", home / "bin" / "python", "install", "--quiet", "--no-deps", "--no-index", wheel,
    ]  # fmt: skip
    subprocess.run(install, check=True, capture_output=True)
    [lib] = home.glob("lib/python*/site-packages")
    # Behind its own packages, and without the .pth by which this environment finds the sources.
    (lib / "zz-lent.pth").write_text(str(Path(importlib.metadata.distribution("numpy").locate_file(""))))

    def said(*command):
        done = subprocess.run(
            command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said(home / "bin" / "kubetide", "--version").split()[-1] == version()
    place = said(home / "bin" / "python", "-c", "import kubetide; print(kubetide.__file__)").strip()
    assert Path(place).is_relative_to(home)
    assert "web-shop" in said(home / "bin" / "kubetide", "examples")
    assert "pending pod-minutes" in said(
        home / "bin" / "kubetide", "simulate", "from-zero-wrong-catalogue", "--out", "run"
    )
    assert "No group takes it." in said(
        home / "bin" / "kubectl-kubetide", "explain", "pod", "report-jdhbntzrrk-nbzvb", "--at", "00:10", "--out", "run"
    )  # fmt: skip


def test_the_sbom_names_each_package_of_the_lock():
    """As CycloneDX 1.6: name, version, package URL, and the hashes of the files that pip accepts."""
    lock = LOCK.read_text(encoding="utf-8")
    reported = json.loads(json.dumps(sbom(lock, version(), b"wheel")))
    assert (reported["bomFormat"], reported["specVersion"]) == ("CycloneDX", "1.6")
    pins = re.findall(r"^([\w.-]+)==([^ \\]+)", lock, re.MULTILINE)
    assert [(one["name"], one["version"]) for one in reported["components"]] == pins
    hashes = [
        hash_["content"] for one in reported["components"] for hash_ in one["externalReferences"][0]["hashes"]
    ]
    assert hashes == re.findall(r"sha256:(\w+)", lock)
    references = [one["bom-ref"] for one in reported["components"]]
    assert len(set(references)) == len(references)
    assert reported["dependencies"][0]["dependsOn"] == references
    markers = {
        one["name"]: one["properties"][0]["value"] for one in reported["components"] if "properties" in one
    }
    assert markers["typing-extensions"] == "python_full_version < '3.13'"
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.match(r"[\w-]+", one)[0] for one in needed} <= {one["name"] for one in reported["components"]}


def test_a_tag_that_does_not_fit_is_refused():
    """Each place that still has another version is named with the line that it should have."""
    texts = {
        "pyproject.toml": 'version = "1.2.0"\n',
        "Chart.yaml": "version: 1.2.0\nappVersion: 1.1.0\n",
        "CHANGELOG.md": "## [Unreleased]\n",
    }
    assert list(problems_of("v1.2.0", texts)) == [
        "Chart.yaml has no line `appVersion: 1.2.0`, as the tag v1.2.0 requires",
        "CHANGELOG.md has no line `## [1.2.0]`, as the tag v1.2.0 requires",
    ]


def test_the_workflow_gives_each_job_only_the_rights_it_needs():
    """Nothing may be written by default; jobs wait for the tests; the image is handed on by its digest."""
    assert WORKFLOW["permissions"] == {"contents": "read"}
    jobs = WORKFLOW["jobs"]
    assert all("build" in jobs[name].get("needs", []) for name in jobs if name != "build")
    assert "permissions" not in jobs["build"]
    assert step("build", "Test") == ".ci/run"
    assert (ROOT / ".ci" / "run").exists()
    assert "@$DIGEST" in step("publish", "Release")
    assert jobs["image"]["outputs"]["digest"] == "${{ steps.push.outputs.digest }}"
