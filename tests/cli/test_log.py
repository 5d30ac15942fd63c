"""The log lines of a run's decisions, and how often they come."""

from __future__ import annotations

import errno
import io
import json
from contextlib import redirect_stderr, redirect_stdout

import pytest

from kubetide.cli.common.log import ConsoleLog, JsonLog
from kubetide.explain.records import Record
from kubetide.horizontal.reasons import VOCABULARY
from kubetide.runtime.recording.records import NullRecorder
from kubetide.units.time import Instant, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T08:00:00Z")
SECOND = seconds(1)


def lines(capsys, *said, log=ConsoleLog):
    """The printed lines of these reasons: ``(time, code, fields)``."""
    recorder = log().recording(NullRecorder())
    for at, code, fields in said:
        reason = VOCABULARY.reason(code, "default/web", **fields)
        recorder.write(Record("horizontal", 1, Instant(START + at), reasons=(reason,)))
    return capsys.readouterr().out.splitlines()


def steps(code, *pairs, **more):
    """One reason a second."""
    return [
        (at * SECOND, code, {"current": old, "desired": new, **more}) for at, (old, new) in enumerate(pairs)
    ]


class FullDisk(io.StringIO):
    """A file that takes nothing."""

    def write(self, _text):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("log", [ConsoleLog, JsonLog])
def test_a_log_that_cannot_be_written_stops_nothing(log):
    """Where the log's disk is full, lines are lost, and the loops go on."""
    with redirect_stdout(FullDisk()), redirect_stderr(FullDisk()):
        one = log()
        one.tell("all well")
        one.warn("look here")
        reason = VOCABULARY.reason("Rescaled", "default/web", current=1, desired=2)
        one.recording(NullRecorder()).write(Record("horizontal", 1, START, reasons=(reason,)))


def test_everything_that_was_done_is_said(capsys):
    """Steps of one size after each other, and the same step once more, are all lines of their own."""
    printed = lines(capsys, *steps("Rescaled", (1, 4), (4, 7), (7, 4), (4, 7)))
    assert [line.split(": ", 1)[1] for line in printed] == [
        "scaled from 1 to 4",
        "scaled from 4 to 7",
        "scaled from 7 to 4",
        "scaled from 4 to 7",
    ]


@pytest.mark.parametrize(("code", "more"), [("RescaleAdvised", {}), ("RescaleRefused", {"error": "no"})])
def test_what_nothing_came_of_is_said_every_ten_minutes(capsys, code, more):
    """Advice and refusals repeat in each tick; a different one is printed at once."""
    same = steps(code, (1, 4), (1, 4), (1, 4), **more)
    later = [(minutes(10), code, {"current": 1, "desired": 4, **more})]
    other = steps(code, (4, 7), **more)
    assert len(lines(capsys, *same)) == 1
    assert len(lines(capsys, *same, *other)) == 2
    assert len(lines(capsys, *same, *later)) == 2


def test_machines_get_the_same(capsys):
    """A JSON object a line, with the time of the decision."""
    (line, _) = lines(capsys, *steps("Rescaled", (1, 4), (4, 7)), log=JsonLog)
    assert json.loads(line) == {
        "time": "2026-03-02T08:00:00Z",
        "level": "info",
        "message": "default/web: scaled from 1 to 4",
        "loop": "horizontal",
        "subject": "default/web",
        "why": [],
    }
