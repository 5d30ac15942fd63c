from __future__ import annotations

import pytest

from kubetide.embedded.controllers.scheduling.scheduling_queue import SchedulingQueue
from kubetide.objects.pod import Pod
from kubetide.scheduling import classify_unbound
from kubetide.units.time import after, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
CLASS = classify_unbound(Pod())


def filled(*priorities):
    queue = SchedulingQueue()
    for number, priority in enumerate(priorities):
        queue.add(("shop", f"p{number}"), f"uid-{number}", priority, CLASS)
    return queue


def test_a_pod_that_nothing_helps_is_tried_again_after_five_minutes():
    """Without any event a refused pod comes back after 5 minutes and not before."""
    queue = filled(0)
    queue.failed(queue.pop(START), START)
    assert queue.pop(after(START, minutes(5) - 1)) is None
    due = queue.next_due()
    assert due == after(START, minutes(5))
    assert queue.pop(due).key == ("shop", "p0")


@pytest.mark.parametrize(("attempts", "pause"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (9, 10)])
def test_how_long_a_pod_waits_after_its_failures(attempts, pause):
    """The pause after a failure is 1 s, doubled with each one up to 10 s."""
    queue, now = filled(0), START
    for number in range(attempts):
        entry = queue.pop(now)
        queue.failed(entry, now)
        if number < attempts - 1:
            now = after(now, minutes(1))
            queue.wake(CLASS, now)
    queue.wake(CLASS, now)
    assert queue.next_due() == after(now, seconds(pause))


def test_an_event_after_the_pause_wakes_at_once():
    """Pods whose back-off is over when something may help them are tried in order of priority."""
    queue = filled(0, 5, 0)
    while (entry := queue.pop(START)) is not None:
        queue.failed(entry, START)
    late = after(START, minutes(1))
    queue.wake(CLASS, late)
    assert [queue.pop(late).key[1] for _ in range(3)] == ["p1", "p0", "p2"]
    assert queue.pop(late) is None


def test_a_removed_pod_is_never_given():
    """A pod that is removed while it waits, in whatever state, does not come back."""
    queue = filled(0, 0, 0)
    first = queue.pop(START)
    queue.failed(first, START)
    second = queue.pop(START)
    queue.retry(second, START)
    for number in range(3):
        queue.remove(("shop", f"p{number}"))
    queue.failed(first, START)
    assert queue.pop(after(START, minutes(10))) is None
    assert queue.next_due() is None
    assert len(queue) == 0
