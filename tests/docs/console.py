"""Commands of a page, run as a reader would run them, in order and in one folder.

- A fence ```` ```console ```` has commands after ``$`` and what they print. They are run; where no output is shown
  under a command, none is compared. A line with only ``…`` matches any lines, ``…`` within a line for any text.
- A fence ```` ```console title="On your cluster" ```` needs a cluster: its commands are parsed, with their flags.
- A fence with ``title="name.yaml"`` is a file, written where the commands look for it.
"""

from __future__ import annotations

import copy
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import yaml

from kubetide.cli.main import cli
from kubetide.cli.run import configuration
from kubetide.runtime.configuration.vpa_flags import vpa_config
from kubetide.runtime.upstream import understand

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ON_A_CLUSTER = "On your cluster"
OTHERS = {"kubectl", "docker", "git", "make"}
"""Programs of a cluster's people that are not checked further."""


class Command(NamedTuple):
    text: str
    shown: str
    """Its output as the page has it; empty where none is shown."""


def blocks(page):
    """Return language, title and body of each fence of a page."""
    return FENCE.findall(page)


def commands(body):
    """Return the commands of a block with the output that is shown under each."""
    parts = re.split(r"^\$ ", body, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a block begins with a command, not with {parts[0]!r}"
    found = []
    for part in parts[1:]:
        text, _, shown = re.sub(r"\\\n", "\\\\\0", part).partition("\n")
        found.append(Command(text.replace("\0", "\n"), shown.replace("\0", "\n")))
    return found


def pattern(shown):
    """Return what the output must match."""
    lines = []
    for line in shown.rstrip().splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(".*?".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ ]*\n")
    return re.compile("".join(lines))


class Played:
    """The output and files of the first commands of pages: many pages begin with the same run."""

    def __init__(self, folder):
        self.folder = folder
        self.first: dict[str, tuple[str, Path]] = {}

    def page(self, page, folder):
        """Run the commands of a page in a folder; return what is not as it is shown, as texts."""
        folder.mkdir()
        wrong, ran = [], 0
        for language, title, body in blocks(page):
            if language != "console" and title:
                (folder / title).write_text(body, encoding="utf-8")
            if language != "console" or title:
                continue
            for command in commands(body):
                printed = self._first(command.text, folder) if ran == 0 else run(command.text, folder)
                ran += 1
                if command.shown.strip() and not pattern(command.shown).fullmatch(printed.rstrip() + "\n"):
                    wrong.append(f"$ {command.text}\n{printed}")
        return wrong

    def _first(self, text, folder):
        if text in self.first and not any(folder.iterdir()):
            printed, left = self.first[text]
            shutil.copytree(left, folder, dirs_exist_ok=True)
            return printed
        is_bare = not any(folder.iterdir())
        printed = run(text, folder)
        if is_bare:
            left = self.folder / f"first-{len(self.first)}"
            shutil.copytree(folder, left)
            self.first[text] = printed, left
        return printed


def run(text, folder):
    """Return what a command line prints; it must end with status 0."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "HOME": str(folder),
        "KUBECONFIG": str(folder / "none"),
        "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
    }
    script = f'kubetide() {{ {shlex.quote(sys.executable)} -m kubetide "$@"; }}\n{text}'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {text}\n{done.stdout}"
    return done.stdout


def check_on_cluster(body):
    """Parse each command that needs a cluster. Raises what its program would say of a wrong one."""
    for command in commands(body):
        words = shlex.split(command.text.replace("\\\n", " "), comments=True)
        assert "|" not in words, "one program a line"
        program, *arguments = words
        if words[:2] == ["kubectl", "kubetide"]:
            program, arguments = "kubetide", words[2:]
        if "--" in words:  # what kubectl runs in a pod
            inside = words[words.index("--") + 1 :]
            assert inside[:3] == ["python", "-m", "kubetide"], inside
            parse(cli, inside[3:])
        if program == "kubetide":
            parse(cli, arguments)
        elif program == "helm":
            check_helm(arguments)
        else:
            assert program in OTHERS, program
        for word in words:
            if word.startswith(("deploy/", "examples/")):
                assert (ROOT / word).exists(), word


def parse(command, arguments, parent=None):
    """Parse arguments as the command does, down to sub-commands and settings, and run nothing."""
    if isinstance(command, click.Group):
        context = click.Context(command, parent=parent)
        _, chosen, rest = command.resolve_command(context, list(arguments))
        parse(chosen, rest, context)
        return
    context = _without_files(command).make_context(command.name, list(arguments), parent=parent)
    settings = context.params.get("arguments") or ()
    if command.name == "cluster-autoscaler":
        understand(context.args)
    elif command.name in {"run", "check"}:
        configuration(None, context.args)
    elif command.name == "serve" and "provider" in context.params:
        configuration(None, [*context.args, f"--cloud-provider={context.params['provider']}"])
    elif command.name.startswith("vpa-"):
        vpa_config(command.name, context.args, {})
    elif settings and settings[0].startswith("-"):
        configuration(None, list(settings))
    else:
        assert not context.args, context.args


def _without_files(command):
    """Return the command, for which a page's files need not be there."""
    command = copy.copy(command)
    command.params = [copy.copy(param) for param in command.params]
    for param in command.params:
        if isinstance(param.type, click.Path):
            param.type = click.Path()
    return command


_LINE = re.compile(r"^(?:\$ )?(?:kubectl )?kubetide (.*)$", re.MULTILINE)


def mentioned(page):
    """Return the arguments of all kubetide commands in the blocks of any page, but those that show an error."""
    found = []
    fenced = re.findall(r"^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"(?:^    \S.*\n)+", page, re.MULTILINE)
    for body in (*fenced, *(re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in indented)):
        text = body.replace("\\\n", " ")
        for line in _LINE.finditer(text):
            if not text[line.end() :].startswith("\nkubetide: "):
                words = shlex.split(line[1], comments=True)
                ends = [at for at, word in enumerate(words) if word in {"|", "&", "&&", ";", "...", "…"}]
                found.append(words[: min(ends, default=None)])
    return found


def check_helm(arguments):
    """Hold every ``--set`` against the values of the chart."""
    values = yaml.safe_load((ROOT / "deploy" / "chart" / "values.yaml").read_text(encoding="utf-8"))
    schema = yaml.safe_load((ROOT / "deploy" / "chart" / "values.schema.json").read_text(encoding="utf-8"))
    assert arguments[0] in {"install", "upgrade", "uninstall", "template"}
    settings = []
    for flag, value in itertools.pairwise(arguments):
        if flag != "--set":
            continue
        key, _, given = value.partition("=")
        first, *inner = key.split(".")
        assert first in schema["properties"], value
        if first == "config":
            settings.append(f"--{inner[0]}={given.strip('{}')}")
        else:
            assert not inner or inner[0] in values[first], value
    configuration(None, settings)
