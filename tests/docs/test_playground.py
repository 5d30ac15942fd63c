"""`kubetide load` and `kubetide fault` on a run that is served, and the lesson of docs/playground.md, line by line."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubetide.cli.common.playing import PlaygroundError
from kubetide.cli.main import cli
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig

PAGE = Path(__file__).parents[2] / "docs" / "playground.md"
KUBETIDE = [sys.executable, "-c", "from kubetide.cli.main import main; main()"]
PATIENCE_S = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder beside which the playground runs, thirty times as fast as real time."""
    folder = tmp_path_factory.mktemp("playground")
    command = [*KUBETIDE, "up", "playground", "--serve", "--no-ui", "--speed", "30"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        (folder / "out.log").open("wb") as log,
        subprocess.Popen(
            command, stdout=log, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
        ) as run,
    ):
        try:
            assert select.select([run.stderr], [], [], 60)[0], "nothing was said for a minute"
            assert "serving https://" in run.stderr.readline()
            yield folder
        finally:
            run.send_signal(signal.SIGINT)
            try:
                said = run.communicate(timeout=60)[1]
            except subprocess.TimeoutExpired:
                run.kill()
                raise
        assert (run.returncode, said) == (0, "")


def ask(folder, monkeypatch, *words):
    """Return what a command says, run beside the playground."""
    monkeypatch.chdir(folder)
    return CliRunner().invoke(cli, words)


def until(folder, monkeypatch, holds):
    """Wait until the load and the decisions are as asked; return the services' rows."""
    end = time.monotonic() + PATIENCE_S
    while True:
        rows = json.loads(ask(folder, monkeypatch, "load", "-o", "json").output)["loads"]
        found = {one["service"]: one for one in rows}
        if holds(found, (folder / "out.log").read_text()):
            return found
        assert time.monotonic() < end, (found, (folder / "out.log").read_text()[-2000:])
        time.sleep(0.2)


@pytest.mark.slow
def test_the_lesson(folder, monkeypatch):
    """Every command of the page runs in its order; replicas follow the load, the stock-out shows, all comes down."""
    page = PAGE.read_text(encoding="utf-8")
    lesson = page[page.index("## The lesson") : page.index("## What is recorded")]
    commands = re.findall(r"^\$ kubetide (.+)$", lesson, re.MULTILINE)
    assert len(commands) > 12
    until(folder, monkeypatch, lambda rows, log: rows["default/web"]["ready"] == 2)
    for command in commands:
        if "explain hpa" in command:
            until(folder, monkeypatch, lambda rows, log: "default/web: scaled" in log)
        elif "explain nodegroup" in command and "stock-out" in (folder / "out.log").read_text():
            until(folder, monkeypatch, lambda rows, log: "InsufficientInstanceCapacity" in log)
        elif "explain nodegroup" in command:
            until(folder, monkeypatch, lambda rows, log: "was increased" in log)
        result = ask(folder, monkeypatch, *command.split())
        assert result.exit_code == 0, (command, result.output, result.exception)
        if command == "load web 400":
            assert re.search(r"^web .* set to 400 ", result.output, re.MULTILINE)
            grown = until(folder, monkeypatch, lambda rows, log: rows["default/web"]["replicas"] >= 10)
            assert grown["default/web"]["requestsPerSecond"] == 400
        if command == "fault stock-out general":
            assert "stock-out  node group general" in result.output
        if command == "explain load web":
            assert "Its load is the scenario's." in result.output
            assert "load of default/web set to 400 requests/s" in result.output
    until(folder, monkeypatch, lambda rows, log: rows["default/web"]["replicas"] <= 4)
    if shutil.which("kubectl"):
        for command in re.findall(r"^\$ kubectl (.+/kubetide/.+)$", page, re.MULTILINE):
            subprocess.run(["kubectl", *command.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    assert ask(folder, monkeypatch, "replay").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("load", "wbe", "5"), "did you mean web?"),
        (("load", "web", "-5"), "No such option"),
        (("load", "web", "nan"), "is no load"),
        (("load", "web", "1e12"), "not between 0 and"),
        (("load", "web"), "web 500, or web --reset"),
        (("load", "web", "5", "--reset"), "not both"),
        (("load", "--reset"), "which service"),
        (("fault", "stok-out"), "did you mean stock-out?"),
        (("fault", "stock-out", "genral"), "did you mean general?"),
        (("fault", "stock-out", "general", "web"), "too much"),
        (("fault", "clear", "boot-failure"), "no such fault is on"),
        (("fault", "api-error", "--for", "ever"), "not a duration"),
    ],
)
def test_slips_are_reported(folder, monkeypatch, words, said):
    """A misspelt name or a bad number is refused with what would be right."""
    result = ask(folder, monkeypatch, *words)
    assert result.exit_code != 0
    assert said in result.output + str(result.exception)


def test_without_a_run_the_way_to_one_is_reported(tmp_path, monkeypatch):
    """Where no run is served the command says how to start one; where it has ended, that it does not answer."""
    result = ask(tmp_path, monkeypatch, "load")
    assert isinstance(result.exception, PlaygroundError)
    assert "kubetide up playground --serve" in str(result.exception)
    write_kubeconfig(tmp_path / "gone", kubeconfig("http://127.0.0.1:9", token="x" * 20))
    result = ask(tmp_path, monkeypatch, "fault", "--kubeconfig", "gone")
    assert isinstance(result.exception, PlaygroundError)
