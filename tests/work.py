"""Work as a count, so that tests of its growth do not depend on the machine."""

import sys


def calls_of(work):
    """Return the number of Python functions that the work calls."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
