"""The Dockerfile, carried out without an engine: each stage runs in a folder of its own as its root."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import kubetide

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "Dockerfile"
HANDED_ON = re.compile(r"PIP_.*|SSL_.*|.*_proxy|.*_PROXY|REQUESTS_CA_BUNDLE|TMPDIR|LANG")
"""How this machine reaches an index; nothing else of the environment is seen inside."""


class Instruction(NamedTuple):
    word: str
    text: str


def instructions():
    """Return the instructions, continued lines joined."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [Instruction(*line.split(maxsplit=1)) for line in lines]


def inside(text, root):
    """Put the absolute paths in a text below a stage's root."""
    return re.sub(r"(?<![^\s=:])/(?=\w|$)", lambda _: f"{root}/", text)


class Stage:
    """A stage being built: its root, variables and working folder."""

    def __init__(self, root, programs):
        self.root, self.workdir = root, root
        root.mkdir()
        handed_on = {name: value for name, value in os.environ.items() if HANDED_ON.fullmatch(name)}
        self.env = {**handed_on, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(root / "root")}
        self.user, self.entrypoint, self.command = "", [], []

    def do(self, instruction, stages):
        word, text = instruction
        match word:
            case "WORKDIR":
                self.workdir = Path(inside(text, self.root))
                self.workdir.mkdir(parents=True, exist_ok=True)
            case "ENV":
                pairs = (part.partition("=") for part in shlex.split(text))
                self.env |= {name: inside(value, self.root) for name, _, value in pairs}
            case "COPY":
                self._copy(text, stages)
            case "RUN":
                self.run(["bash", "-euc", inside(text, self.root)])
            case "USER":
                self.user = text
            case "ENTRYPOINT":
                self.entrypoint = json.loads(text)
            case "CMD":
                self.command = json.loads(text)
            case _:
                pytest.fail(f"what does {word} do? Teach it to this test")

    def _copy(self, text, stages):
        *sources, target = text.split()
        base = ROOT
        if sources[0].startswith("--from="):
            base = stages[sources.pop(0).removeprefix("--from=")].root
        to = Path(inside(target, self.root)) if target.startswith("/") else self.workdir / target
        for source in sources:
            found = base / source.removeprefix("/")
            if found.is_dir():
                skip = shutil.ignore_patterns("__pycache__") if base == ROOT else None
                shutil.copytree(found, to, ignore=skip, dirs_exist_ok=True)
            else:
                into = to / found.name if target.endswith("/") else to
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, into)

    def run(self, command):
        run = subprocess.run(
            command, cwd=self.workdir, env=self.env, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The last stage, built."""
    python = Path(sys.base_prefix) / "bin" / "python3"
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} has no pip, which the image is built with")
    folder = tmp_path_factory.mktemp("image")
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python").write_text(f'#!/bin/sh\nexec {python} -s "$@"\n')
    (programs / "python").chmod(0o755)
    stages, stage = {}, None
    for number, instruction in enumerate(instructions()):
        if instruction.word == "ARG":
            assert stage is None, "an argument of a stage would have to be put in"
        elif instruction.word == "FROM":
            name = instruction.text.partition(" AS ")[2] or str(number)
            stage = stages[name] = Stage(folder / name, programs)
        else:
            stage.do(instruction, stages)
    return stage


def files(root):
    return {path: path.lstat().st_mtime_ns for path in root.rglob("*")}


@pytest.mark.slow
def test_the_image_runs_kubetide(image):
    """The last stage answers with its own libraries alone, and writes nothing to its root."""
    before = files(image.root)
    assert image.run([*image.entrypoint, "--version"]).split()[-1] == kubetide.__version__
    helped = image.run([*image.entrypoint, *image.command, "--help"])
    assert "Run the loops on the cluster of your kubeconfig" in helped
    code = "import kubetide, aiohttp, numpy; print(kubetide.__file__, aiohttp.__file__, numpy.__file__)"
    for place in image.run(["python", "-c", code]).split():
        assert Path(place).is_relative_to(image.root)
    image.run(["python", "-c", "import azure.identity, boto3, google.auth.transport.requests, grpc"])
    # What a Deployment of upstream's starts: by its path from the working folder, and from the root.
    assert "kubetide cluster-autoscaler" in image.run(["./cluster-autoscaler", "--help"])
    for name in ("recommender", "updater", "admission-controller"):
        assert f"kubetide vpa-{name}" in image.run([image.root / name, "--help"])
    # The loops are loaded, and end with the sentence that says what is missing.
    run = subprocess.run(
        [*image.entrypoint, *image.command, f"--out={image.root.parent}/out"],
        cwd=image.workdir,
        env=image.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("kubetide: ")
    assert "Traceback" not in run.stderr
    assert files(image.root) == before


def test_what_is_copied_is_handed_to_the_build():
    """The ignore file lets through exactly what the Dockerfile copies from the repository."""
    ignored, *lines = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    copied = [one.text.split()[:-1] for one in instructions() if one.word == "COPY"]
    names = {name for sources in copied if not sources[0].startswith("--from=") for name in sources}
    assert ignored == "*"
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == names
    assert all((ROOT / name).exists() for name in names)


@pytest.mark.slow
def test_the_image_is_small_and_nobodys(image):
    """It has no user of the machine, no compiler, no pip and no build tool, as the chart's security context requires."""
    assert image.user == "65532:65532"
    names = {path.name.lower() for path in (image.root / "opt" / "kubetide").iterdir()}
    assert not any(name.startswith(("pip", "setuptools", "flit", "wheel")) for name in names)
    size = sum(path.lstat().st_size for path in image.root.rglob("*") if path.is_file())
    assert size < 220 * 1024 * 1024
