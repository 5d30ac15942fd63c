from __future__ import annotations

import pytest

from kubetide.embedded.controllers.workloads.templates import scaled_value


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        (30, 10, 30, 30),
        (0, 10, 0, 0),
        ("0%", 10, 0, 0),
        ("25%", 4, 1, 1),
        ("25%", 10, 3, 2),
        ("25%", 1, 1, 0),
        ("25%", 0, 0, 0),
        ("50%", 3, 2, 1),
        ("99%", 100, 99, 99),
        ("1%", 101, 2, 1),
        ("100%", 7, 7, 7),
        ("200%", 3, 6, 6),
    ],
)
def test_numbers_are_unchanged_and_percentages_are_rounded(value, total, up, down):
    """A number is itself; a percentage of the total is rounded as asked, and exactly where it is whole."""
    assert scaled_value(value, total, round_up=True) == up
    assert scaled_value(value, total, round_up=False) == down


@pytest.mark.parametrize("value", ["", "%", "3", "2.5%", "-5%", "a%", "5 %"])
def test_other_texts_are_refused(value):
    """A text that is not digits and a percent sign is an error that repeats it."""
    with pytest.raises(ValueError, match="not a percentage"):
        scaled_value(value, 10, round_up=True)
