"""Disruption budgets: counts and shares, by reason and by time."""

from __future__ import annotations

import pytest

from kubetide.nodes.consolidation.budgets import allowed, parse_budgets
from kubetide.nodes.settings import Settings
from kubetide.units.time import parse_rfc3339

MONDAY_NOON = parse_rfc3339("2026-03-02T12:00:00Z")
MONDAY_NIGHT = parse_rfc3339("2026-03-02T20:00:00Z")
WINDOW = 'nodes=0 reasons=Underutilized schedule="0 9 * * 1-5" duration=8h; nodes=20%'


@pytest.mark.parametrize(
    ("text", "reason", "disrupted", "now", "left"),
    [
        ("nodes=10%", "Underutilized", 0, MONDAY_NOON, 3),
        ("nodes=10%", "Underutilized", 2, MONDAY_NOON, 1),
        ("nodes=2", "Empty", 5, MONDAY_NOON, 0),
        ("nodes=3 reasons=Underutilized", "Underutilized", 1, MONDAY_NOON, 2),
        ("nodes=1 reasons=Empty", "Underutilized", 0, MONDAY_NOON, None),
        ("", "Empty", 0, MONDAY_NOON, None),
        ("nodes=5; nodes=2", "Empty", 0, MONDAY_NOON, 2),
        (WINDOW, "Underutilized", 0, MONDAY_NOON, 0),
        (WINDOW, "Empty", 0, MONDAY_NOON, 5),
        (WINDOW, "Underutilized", 0, MONDAY_NIGHT, 5),
    ],
)
def test_the_strictest_budget_that_holds_counts(text, reason, disrupted, now, left):
    """A share is rounded up, one with a schedule holds for its duration, one for other reasons says nothing."""
    assert allowed(parse_budgets(text), reason, nodes=25, disrupted=disrupted, now=now) == left


def test_a_window_ends_with_its_duration():
    """From the activation on, the end left out."""
    begin, end = parse_rfc3339("2026-03-02T09:00:00Z"), parse_rfc3339("2026-03-02T17:00:00Z")
    window = parse_budgets(WINDOW)[0]
    assert [window.holds(at) for at in (begin - 1, begin, end - 1, end)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10%", "no field '10%'"),
        ("nodes=110%", "nodes must be a count or a share from 0% to 100%"),
        ("reasons=Empty", "nodes must be a count"),
        ("nodes=0 nodes=100", "a field is given twice"),
        ("nodes=1 reasons=Drifted", "no reason 'Drifted', there are Empty and Underutilized"),
        ("nodes=1 schedule=@daily", "schedule and duration go together"),
        ('nodes=1 schedule="0 25 * * *" duration=1h', "25"),
        ("nodes=1 schedule=@daily duration=0s", "duration must be longer than 0"),
        ('nodes=1 schedule="0', "No closing quotation"),
    ],
)
def test_what_cannot_be_read_is_named_with_the_flag(text, why):
    """So that a typing error ends the start, and not the protection."""
    with pytest.raises(ValueError, match="--consolidation-budgets: budget") as found:
        Settings(consolidation_budgets=text)
    assert why in str(found.value)
