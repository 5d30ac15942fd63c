"""`kubetide top` on a terminal of its own: of records, of a run that goes on, and of a cluster that is served."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from rich.console import Console
from tests.simulate.worlds import MANIFEST, small

from kubetide.cli.main import cli
from kubetide.cli.screens.top_text import screen_text, trend_text
from kubetide.cli.screens.top_view import drawn
from kubetide.loop import Table
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import read_records
from kubetide.simulate.answers.run_screen import Fact, RecordsTop, Said, Screen, by_need
from kubetide.simulate.answers.status import ALL_WELL
from kubetide.simulate.run import run_simulation

PATIENCE_S = 60
MOST_LOOKS = 200
"""The program writes again and again: what does not come in so many pieces does not come."""

# Where the tests were started by nohup, what they start would ignore SIGHUP.
HANGS_UP = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"
PROGRAM = [sys.executable, "-c", f"{HANGS_UP}; from kubetide.cli.main import main; main()"]
ENTERED, LEFT = "\x1b[?1049h", "\x1b[?1049l"


class Terminal:
    """The output of a program on a terminal of 110 by 40."""

    def __init__(self, command, term="xterm"):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 110, 0, 0))
        environment = {**os.environ, "TERM": term, "LANG": "C.UTF-8", "PYTHONUTF8": "1"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [*PROGRAM, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.text = ""

    def read_until(self, *words, raw=""):
        """Read on until all words, and the sequence ``raw``, are printed; return what was written since the last call."""
        since, looks = len(self.text), 0
        while raw not in self.text or not all(word in plain(self.text[since:]) for word in words):
            looks += 1
            assert looks < MOST_LOOKS, (words, plain(self.text[since:])[-5_000:])
            assert select.select([self._master], [], [], PATIENCE_S)[0], (words, plain(self.text[since:]))
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:  # the other end is closed
                data = b""
            assert data, (words, plain(self.text[since:]))
            self.text += data.decode(errors="replace")
        return plain(self.text[since:])

    def end(self, number=signal.SIGINT):
        """Press Ctrl-C, or send another signal; returns the exit status and what was written then."""
        since = len(self.text)
        self.process.send_signal(number)
        killer = threading.Timer(PATIENCE_S, self.process.kill)
        killer.start()
        try:
            while data := os.read(self._master, 1 << 16):
                self.text += data.decode(errors="replace")
        except OSError:
            pass
        killer.cancel()
        os.close(self._master)
        return self.process.wait(), self.text[since:]


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@contextmanager
def terminal(*command, term="xterm"):
    one = Terminal(command, term)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    run_simulation(small(), base=out, out=out, seed=3, warn=pytest.fail)
    return out


def test_one_screen_for_scripts(folder):
    """`--once` prints facts, tables and decisions as plain text."""
    result = CliRunner().invoke(cli, ["top", "--once", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert "ended  2026-03-02T00:19:50Z" in result.output.splitlines()[0]
    assert re.match(r"nodes ready 1  pods \d+  waiting 0  cost/h 0\.096", result.output.splitlines()[1])
    assert "default/web  Deployment/default/web" in result.output
    assert "scaled from" in result.output
    assert "\x1b" not in result.output


def test_a_folder_without_records_is_reported(tmp_path):
    """Nothing is drawn for a folder without records."""
    result = CliRunner().invoke(cli, ["top", "--once", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "no records under" in str(result.exception)


def test_it_takes_the_terminal_and_gives_it_back(folder):
    """The whole screen, until Ctrl-C; then the terminal is as it was, and the exit status 0."""
    with terminal("top", "--out", str(folder)) as one:
        text = one.read_until("Ctrl-C ends it", "default/web", "general", "Last decisions", "scaled from")
        assert ENTERED in one.text
        assert "nodes ready 1" in text
        status, rest = one.end()
    assert (status, LEFT in rest) == (0, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_gives_the_terminal_back_whatever_ends_it(folder, number):
    """`timeout 60 kubetide top` leaves no screen without a cursor behind."""
    with terminal("top", "--out", str(folder)) as one:
        one.read_until("Last decisions", "scaled from")
        status, rest = one.end(number)
    assert (status, LEFT in rest) == (0, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_live_run_gives_the_terminal_back_from_its_first_moment(tmp_path, number):
    """The screen is taken while the run is still being set up, and is given back if it ends then."""
    with terminal("up", "playground", "--no-ui", "--out", str(tmp_path)) as one:
        one.read_until(raw=ENTERED)
        status, rest = one.end(number)
    assert (status in {0, 130}, LEFT in one.text + rest) == (True, True)


def test_a_terminal_that_cannot_clear_itself_gets_plain_pages(folder):
    """TERM=dumb means that escape sequences would be printed as they are."""
    with terminal("top", "--out", str(folder), term="dumb") as one:
        one.read_until("last decisions", "scaled from")
        one.end()
    assert "\x1b" not in one.text


def test_it_follows_a_run(folder, tmp_path):
    """Records that are written while it runs appear."""
    writer = RecordWriter(tmp_path, warn=pytest.fail)
    writer.start()
    first, *rest = list(read_records(folder, "horizontal"))
    writer.write(first)
    with terminal("top", "--out", str(tmp_path)) as one:
        one.read_until(time_of(first))
        for record in rest:
            writer.write(record)
        one.read_until("00:19:45", "scaled from")
        assert one.end()[0] == 0
    writer.close()


def time_of(record):
    seconds = record.now // 10**9 % 86_400
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


@pytest.mark.slow
def test_a_cluster_is_watched(tmp_path):
    """A cluster behind a kubeconfig: HPAs, nodes, pods and events, without a record of ours being read."""
    (tmp_path / "web.yaml").write_text(MANIFEST)
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    out = tmp_path / "out"
    up = [
        *PROGRAM,
        "up",
        str(tmp_path / "scenario.yaml"),
        "--speed",
        "20",
        "--until",
        "6h",
        "--out",
        str(out),
    ]
    with subprocess.Popen(
        [*up, "--serve", "--no-ui"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            assert select.select([run.stderr], [], [], PATIENCE_S)[0]
            while "kubectl --kubeconfig" not in run.stderr.readline():
                assert run.poll() is None
            config = str(out / "kubeconfig")
            once = subprocess.run(
                [*PROGRAM, "top", "--once", "--kubeconfig", config],
                capture_output=True,
                text=True,
                check=True,
            )
            assert re.search(r"nodes ready 3  of 3  closed 0  pods \d+  waiting \d+", once.stdout), (
                once.stdout
            )
            with terminal("top", "--kubeconfig", config) as one:
                one.read_until("default/web", "general", "SuccessfulRescale")
                assert one.end()[0] == 0
        finally:
            run.terminate()
            run.communicate(timeout=PATIENCE_S)


SCENARIO = """
name: served
duration: 24h
nodeGroups:
- {name: general, instanceType: m5.large, min: 1, max: 4, initial: 3}
services:
- {deployment: web, cpuSecondsPerRequest: 0.01, load: {daily: {low: 40, peak: 200, peakAt: "00:30"}}}
manifests: [web.yaml]
"""


def test_what_needs_attention_comes_first():
    """HPAs that are on their way, then those that are held back, then the others by name."""
    columns = ("hpa", "current", "desired", "limited by")
    rows = (("a", 1, 1, ""), ("b", 2, 2, "at its maximum"), ("c", 1, 3, ""), ("d", 1, 1, ""))
    assert [row[0] for row in by_need(Table("hpas", columns, rows)).rows] == ["c", "b", "a", "d"]


def test_names_cannot_speak_to_the_terminal():
    """Control characters are shown as text anywhere and never sent."""
    wild = "x\x1b[2J\nevil"
    table = Table("hpas", ("hpa",), ((wild,),))
    text = screen_text(
        Screen(wild, "live", "", (Fact("pods", "1"),), (table,), (Said("", wild, (wild,)),), (wild,))
    )
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.startswith("evil")]


def test_that_all_is_well_is_not_shown_as_a_warning():
    """What a person must look at is red; that there is nothing is not."""
    for note, colour in ((ALL_WELL, "32"), ("1 pod waits for a node.", "31")):
        console = Console(
            force_terminal=True, color_system="standard", width=80, height=20, file=io.StringIO()
        )
        console.print(drawn(Screen("run", "live", "", (), (), (), (note,)), 20))
        assert f"\x1b[{colour}m {note}" in console.file.getvalue()


def test_a_trend_is_as_high_as_its_greatest():
    """A block a value; unknown ones are blank, and a flat zero is flat."""
    assert trend_text((0, 4, None, 8)) == "▁▅ █"
    assert trend_text((0, 0)) == "▁▁"
    assert trend_text(()) == ""


def test_it_is_made_anew_only_where_something_came(folder):
    """The same records give the very same screen."""
    top = RecordsTop(folder)
    assert top.screen().tables is top.screen().tables
    facts = {fact.label: fact for fact in top.screen().facts}
    assert len(facts["pods"].trend) == 12
    assert facts["nodes ready"].value == "1"
