"""The embedded cluster does what a real control plane does, when it does it."""

from __future__ import annotations

import pytest
from tests.timelines.catalogue import TIMELINES
from tests.timelines.comparing import FOLDER, differences, read, recording_of
from tests.timelines.known import KNOWN, unexplained, unused
from tests.timelines.observer import Noted
from tests.timelines.stages import play_embedded


def differences_of(name):
    return list(differences(read(name), play_embedded(TIMELINES[name]), TIMELINES[name].slack_s))


@pytest.mark.parametrize("name", TIMELINES)
def test_it_is_as_recorded(name):
    """Each fact comes when it was recorded, and no other; but for what is known."""
    assert unexplained(name, differences_of(name)) == []


def test_what_is_known_still_differs():
    """No entry outlives the difference that it explains."""
    found = [f"{name}: {one}" for name in TIMELINES for one in differences_of(name)]
    assert unused(found) == []
    assert all(known.reason for known in KNOWN)


def test_each_recording_is_played():
    """No recording is left of a timeline that is gone."""
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(TIMELINES)


def test_a_timeline_is_played_twice_the_same_way():
    """Virtual time, and names and ties by a seed: the same facts at the same times."""
    timeline = TIMELINES["drain"]
    assert play_embedded(timeline) == play_embedded(timeline)


RUNS = (
    [Noted(0.0, "Pod a created"), Noted(1.0, "Pod a gone"), Noted(2.0, "Pod b gone")],
    [Noted(0.1, "Pod a created"), Noted(1.2, "Pod a gone"), Noted(2.1, "Pod b gone"), Noted(3, "Pod c gone")],
)


@pytest.mark.parametrize(
    ("played", "found"),
    [
        (RUNS[0], []),
        (RUNS[1], []),
        ([*RUNS[0], Noted(4, "Pod c gone")], ["Pod c gone: at 4.00 s, recorded between 3.00 and 3.00 s"]),
        (RUNS[0][:2], ["Pod b gone: does not come, recorded at 2.00 s"]),
        ([*RUNS[0], Noted(2, "Pod d gone")], ["Pod d gone: at 2.00 s, never recorded"]),
        (
            [RUNS[0][0], Noted(1.75, "Pod b gone"), Noted(1.76, "Pod a gone")],
            [
                "Pod a gone: at 1.76 s, recorded between 1.00 and 1.20 s",
                "Pod a gone: comes after 'Pod b gone', recorded before it",
            ],
        ),
    ],
)
def test_what_differs_is_named(played, found):
    """A fact that is missing, new, early, late or out of order."""
    assert list(differences(recording_of(RUNS), played)) == found
