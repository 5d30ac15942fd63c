from __future__ import annotations

import pytest

from kubetide.embedded.controllers.scheduling.scheduling_queue import SchedulingQueue
from kubetide.objects.pod import Pod, PodSpec
from kubetide.scheduling import classify_unbound
from kubetide.units.time import after, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
CLASS = classify_unbound(Pod())


def pod_of(priority=0):
    return Pod(spec=PodSpec(priority=priority))


def filled(*priorities):
    queue = SchedulingQueue()
    for number, priority in enumerate(priorities):
        queue.add(("shop", f"p{number}"), pod_of(priority), CLASS, START)
    return queue


def test_a_pod_that_nothing_helps_is_tried_again_after_five_minutes():
    """Without any event a refused pod comes back after 5 minutes and not before."""
    queue = filled(0)
    queue.failed(queue.pop(START), START)
    assert queue.pop(after(START, minutes(5) - 1)) is None
    due = queue.next_due()
    assert due == after(START, minutes(5))
    assert queue.pop(due).key == ("shop", "p0")


def put_back(queue, how, attempts):
    """Try a pod, put it back as it was refused (``failed``) or had an error (``retry``), a minute apart; return the last time."""
    now = START
    for number in range(attempts):
        if number:
            now = after(now, minutes(1))
            queue.wake(CLASS, now)
        how(queue.pop(now), now)
    return now


PAUSES = pytest.mark.parametrize(("attempts", "pause"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (9, 10)])


@PAUSES
def test_how_long_a_pod_waits_after_errors(attempts, pause):
    """The pause is 1 s, doubled with each error up to 10 s; it ends at a whole second, and nothing shortens it."""
    queue = filled(0)
    now = put_back(queue, queue.retry, attempts)
    due = after(now, seconds(pause + 1))
    queue.wake(CLASS, now)
    assert queue.pop(after(due, -1)) is None
    assert queue.next_due() == due
    assert queue.pop(due).key == ("shop", "p0")


@PAUSES
def test_a_refused_pod_waits_for_its_pause_only_while_others_are_active(attempts, pause):
    """An event brings it back at once, behind all that do not back off; when the second of its pause is over, by its rank."""
    queue = filled(0)
    now = put_back(queue, queue.failed, attempts)
    queue.wake(CLASS, now)
    other = after(now, seconds(pause))
    queue.add(("shop", "new"), pod_of(), CLASS, other)
    assert [queue.pop(other).key[1], queue.pop(other).key[1]] == ["new", "p0"]
    assert queue.pop(other) is None
    assert queue.next_due() is None


def test_a_refusal_ends_a_row_of_errors():
    """Errors and refusals are counted apart: after five errors and a first refusal the pause is a second."""
    queue = filled(0)
    now = after(put_back(queue, queue.retry, 5), minutes(1))
    queue.failed(queue.pop(now), now)
    later = after(now, seconds(2))
    queue.add(("shop", "new"), pod_of(), CLASS, later)
    queue.wake(CLASS, later)
    assert queue.pop(later).key == ("shop", "p0")


def test_pods_that_back_off_are_ordered_by_the_second_of_their_end():
    """Within it the higher priority comes first, and of equals the one that has waited longest."""
    queue = filled(0, 0, 5, 0)
    popped = [queue.pop(START) for _ in range(4)]
    assert [entry.key[1] for entry in popped] == ["p2", "p0", "p1", "p3"]
    for entry, late_ms in zip(popped, (900, 200, 100, 1000), strict=True):
        queue.failed(entry, after(START, late_ms * seconds(1) // 1000))
    now = after(START, seconds(1))
    queue.wake(CLASS, now)
    assert [queue.pop(now).key[1] for _ in range(4)] == ["p2", "p1", "p0", "p3"]


def test_an_event_after_the_pause_wakes_at_once():
    """Pods whose back-off is over when something may help them are tried in order of priority."""
    queue = filled(0, 5, 0)
    while (entry := queue.pop(START)) is not None:
        queue.failed(entry, START)
    late = after(START, minutes(1))
    queue.wake(CLASS, late)
    assert [queue.pop(late).key[1] for _ in range(3)] == ["p1", "p0", "p2"]
    assert queue.pop(late) is None


def test_a_pod_that_was_refused_and_then_failed_backs_off_by_its_error():
    """Where the refusal itself cannot be written, no event brings the pod back before its time."""
    queue = filled(0)
    entry = queue.pop(START)
    queue.failed(entry, START)
    queue.retry(entry, START)
    assert queue.unschedulable_classes() == []
    queue.wake(CLASS, START)
    assert queue.pop(START) is None
    assert queue.next_due() == after(START, seconds(2))


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
