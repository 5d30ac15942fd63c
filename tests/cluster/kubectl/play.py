"""Plays the session of ``session.yaml`` with a kubectl against any control plane."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.cluster.kubectl.normal import normal

HERE = Path(__file__).parent
FILES = HERE / "files"
SCENARIO = HERE / "scenario.yaml"
WATCH = "get configmaps --watch --field-selector metadata.name!=kube-root-ca.crt --output-watch-events -o custom-columns=TYPE:.type,NAME:.object.metadata.name,DATA:.object.data"
"""Left running over the whole session."""
_LAST = "end-of-session"
"""The object that the watch is to show at the end, so that nothing before it is missed."""

_PATIENCE_S = 300
_STEP_TIMEOUT_S = 90


@dataclass(frozen=True)
class Step:
    """One command line and how its answer is compared; the members are described in ``session.yaml``."""

    name: str
    run: str
    until: str = ""
    lines: str = ""
    unlike: tuple[dict[str, str], ...] = ()
    mask: tuple[dict[str, str], ...] = ()
    matches: tuple[str, ...] = ()
    editor: str = ""
    since: int = 0

    def compared(self, text: str) -> str:
        """Return the part of a normalised answer that is compared."""
        for rule in self.mask:
            text = re.sub(rule["text"], rule["by"], text)
        lines = [
            line
            for line in text.splitlines()
            if not any(re.search(rule["line"], line) for rule in self.unlike)
        ]
        if self.lines == "last":
            lines = lines[-1:]
        elif self.lines == "sorted":
            lines = sorted(lines)
        elif self.lines == "set":
            lines = sorted(set(lines))
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class Answer:
    """The result of a command: its two outputs, normalised, and its exit code."""

    said: str
    errors: str
    code: int

    def text(self, step: Step) -> str:
        """Return it as an expectation is written."""
        parts = [f"$ kubectl {step.run}\n", step.compared(self.said)]
        if self.errors:
            parts += ["--- stderr\n", step.compared(self.errors)]
        if self.code:
            parts.append(f"--- exit {self.code}\n")
        return "".join(parts)


def load_session() -> list[Step]:
    """Read the steps."""
    document = yaml.safe_load((HERE / "session.yaml").read_text(encoding="utf-8"))
    return [
        Step(**{key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()})
        for raw in document
    ]


def minor_of(kubectl: str) -> int:
    """Return the minor version of a kubectl: 36 for 1.36.2."""
    run = subprocess.run(
        [kubectl, "version", "--client", "-o", "json"], capture_output=True, text=True, check=True
    )
    return int(json.loads(run.stdout)["clientVersion"]["minor"].rstrip("+"))


class Player:
    """Types steps into one kubectl."""

    def __init__(self, kubectl: str, config: Path, home: Path) -> None:
        self._kubectl = kubectl
        self._environment = {"KUBECONFIG": str(config), "HOME": str(home), "PATH": os.environ["PATH"]}
        names = self._run(["get", "nodes", "-o", "name"])[0].split()
        self._nodes: dict[str, str] = {}
        for name in sorted(name.removeprefix("node/") for name in names):
            group = name.rpartition("-")[0]
            number = sum(called.startswith(f"{group}-") for called in self._nodes.values()) + 1
            self._nodes[name] = f"{group}-{number}"

    def answer(self, step: Step) -> Answer:
        """Type one step, again and again until it says what it waits for. Raises TimeoutError where it never does."""
        by_name = {called: name for name, called in self._nodes.items()}
        words = [
            re.sub(r"NODE:([\w-]+)", lambda found: by_name[found[1]], word).replace("FILES", str(FILES))
            for word in shlex.split(step.run)
        ]
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            said, errors, code = self._run(words, editor=step.editor)
            is_there = "(NotFound)" not in errors
            if not (step.until and is_there) or re.search(step.until, said):
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"{step.name}: never said {step.until}, but: {said}")
            time.sleep(0.1)
        return Answer(self._normal(said), self._normal(errors), code)

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Leave the watch running; the list has its lines afterwards."""
        lines: list[str] = []
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
            words = [self._kubectl, *shlex.split(WATCH)]
            with subprocess.Popen(
                words, stdout=file.fileno(), stderr=subprocess.DEVNULL, env=self._environment
            ) as run:
                try:
                    yield lines
                    self._run(["create", "configmap", _LAST])
                    deadline = time.monotonic() + _PATIENCE_S
                    while _LAST not in Path(file.name).read_text("utf-8") and time.monotonic() < deadline:
                        time.sleep(0.1)
                finally:
                    run.terminate()
            said = self._normal(Path(file.name).read_text("utf-8"))
        lines += [line for line in said.splitlines() if _LAST not in line]

    def _normal(self, text: str) -> str:
        return normal(text, self._nodes, str(FILES))

    def _run(self, words: list[str], *, editor: str = "") -> tuple[str, str, int]:
        environment = self._environment | ({"KUBE_EDITOR": editor} if editor else {})
        run = subprocess.run(
            [self._kubectl, *words],
            capture_output=True,
            text=True,
            env=environment,
            timeout=_STEP_TIMEOUT_S,
            check=False,
        )
        return run.stdout, run.stderr, run.returncode
