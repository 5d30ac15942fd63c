"""Windows in which pods may be changed, and most evictions within a minute: options beyond upstream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.vertical.making import NOW, oom, pod, state, vpa, workloads

from kubetide.units.time import Instant, after, minutes, parse_rfc3339, seconds
from kubetide.vertical.updater.decide import decide
from kubetide.vertical.updater.reasons import explain_pod
from kubetide.vertical.updater.rules.windows import ANNOTATION, WindowsError, read_windows
from kubetide.vertical.updater.settings import Settings


@pytest.mark.parametrize(
    ("text", "at", "holds"),
    [
        ("01:00-05:00", "2026-03-02T01:00:00Z", True),
        ("01:00-05:00", "2026-03-02T05:00:00Z", False),
        ("Mon-Fri 01:00-05:00", "2026-03-01T02:00:00Z", False),
        ("Fri-Mon 01:00-05:00", "2026-03-01T02:00:00Z", True),
        ("Sun 22:00-04:00", "2026-03-02T03:59:00Z", True),
        ("Sun 22:00-04:00", "2026-03-01T03:59:00Z", False),
        ("Tue 01:00-02:00; Sat,Mon 00:00-24:00", "2026-03-02T23:59:00Z", True),
        ("Mon 01:00-05:00 America/New_York", "2026-03-02T06:30:00Z", True),
        ("Mon 01:00-05:00 America/New_York", "2026-03-02T03:00:00Z", False),
    ],
)
def test_windows_of_the_week(text, at, holds):
    """Days, several parts, past midnight, and in a time zone."""
    assert read_windows(text).hold(parse_rfc3339(at)) is holds


@given(
    days=st.sets(st.integers(0, 6), min_size=1),
    begin=st.integers(0, 1439),
    length=st.integers(1, 1439),
    at=st.integers(0, 10080),
)
def test_a_window_holds_for_its_length_on_each_of_its_days(days, begin, length, at):
    """As counted minute by minute of the week."""
    end = begin + length
    names = ",".join(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][day] for day in sorted(days))
    closes = end if end <= 1440 else end - 1440
    text = f"{names} {begin // 60:02}:{begin % 60:02}-{closes // 60:02}:{closes % 60:02}"
    minutes_of_week = {(day * 1440 + minute) % 10080 for day in days for minute in range(begin, end)}
    monday = parse_rfc3339("2026-03-02T00:00:00Z")
    assert read_windows(text).hold(after(monday, minutes(at))) is (at % 10080 in minutes_of_week)


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "25:00-26:00",
        "01:00-01:00",
        "Mon-Fun 01:00-02:00",
        "Mon Tue 01:00-02:00",
        ";",
        "01:00-02:00 Nowhere/At",
    ],
)
def test_windows_that_cannot_be_read_are_reported(text):
    """As a flag they end the start with its name."""
    with pytest.raises(WindowsError):
        read_windows(text)
    with pytest.raises(ValueError, match="update-windows: "):
        Settings(update_windows=text)


def run(pods, vpas, now=NOW, **options):
    found = state(pods, vpas, **options)
    commands, result = decide(found, now)
    return found, [command.pod[1] for command in commands], result


def test_pods_wait_for_their_window_but_not_after_a_kill():
    """The annotation of a VPA comes before the flag; a pod that was killed for its memory is changed at once."""
    pods = [pod(f"web-{number}") for number in range(3)]
    closed, open_ = "Sat 01:00-02:00", "Mon 08:00-09:00"
    assert len(run(pods, [vpa()])[1]) == 1
    _, evicted, result = run(pods, [vpa()], update_windows=closed)
    assert evicted == []
    assert "outside of the windows" in "\n".join(explain_pod(result.reasons, "default/web-0"))
    marked = _annotated(vpa(), open_)
    assert len(run(pods, [marked], update_windows=closed)[1]) == 1
    assert run(pods, [_annotated(vpa(), closed)])[1] == []
    killed = pod("web-9", containerStatuses=oom(lasted=minutes(1), since=minutes(1)))
    assert run([*pods, killed], [vpa()], update_windows=closed)[1] == ["web-9"]


def test_an_annotation_that_cannot_be_read_leaves_pods_as_they_are():
    """The intention is unknown, so nothing is changed, and the reason says why."""
    _, evicted, result = run([pod("web-0"), pod("web-1")], [_annotated(vpa(), "at night")])
    assert evicted == []
    assert "UpdateWindowsUnreadable" in {reason.code for reason in result.reasons}


def _annotated(one, text):
    return replace(one, metadata=replace(one.metadata, annotations={ANNOTATION: text}))


@given(
    most=st.integers(0, 4),
    of_namespace=st.integers(0, 4),
    gaps=st.lists(st.integers(0, 50), min_size=1, max_size=12),
)
def test_no_minute_has_more_evictions_than_allowed(most, of_namespace, gaps):
    """Whatever the loops' pace; a limit of 0 holds nothing back, and the limits do not stop evictions for ever."""
    pods = [pod(f"web-{number}") for number in range(12)]
    found = state(
        pods,
        [vpa()],
        views=workloads(12),
        eviction_tolerance=1.0,
        max_evictions_per_minute=most,
        max_namespace_evictions_per_minute=of_namespace,
    )
    now, times = Instant(NOW - seconds(5)), []
    for gap in gaps:
        now = after(now, seconds(gap))
        commands, _ = decide(found, now)
        times += [now] * len(commands)
    limit = min([one for one in (most, of_namespace) if one] or [12 * len(gaps)])
    for at in times:
        assert sum(0 <= at - other < minutes(1) for other in times) <= limit
    assert len(times) >= min(limit, 12)
