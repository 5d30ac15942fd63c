"""Which failed requests are sent again, and after what pause: decided purely.

A request is repeated only when that cannot do anything twice: the server says that it did not take it on
(429), it never left (no connection), or it reads. Source of the numbers: client-go v1.36 (rest/with_retry:
at most 10 repeats, and only where the server says Retry-After); that it repeats any verb after a 5xx is
not followed. What breaks without such a word is tried 3 times more here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from kubetide.ports.errors import ApiError
from kubetide.units.time import Duration, milliseconds, seconds

_MOST_AS_ASKED = 10
_MOST_UNTOLD = 3
_FIRST_PAUSE = milliseconds(250)
_TRANSIENT = frozenset({502, 503, 504})


Stage = Literal["answered", "unsent", "refused", "broken"]


class Failure(NamedTuple):
    """How a request failed.

    Attributes:
        stage: ``answered`` by the server with ``code``; ``unsent``, as there was no connection;
            ``refused``, a connection that would not get better; ``broken`` off in the middle.
    """

    error: ApiError
    stage: Stage
    code: int = 0


def pause_before_repeat(method: str, failure: Failure, repeats: int, draw: float) -> Duration | None:
    """Return the pause before the request is sent again, None to give up.

    Args:
        method: The HTTP method; GET alone reads.
        failure: The last failure.
        repeats: How often it was repeated already.
        draw: Of the jitter, from [0, 1).
    """
    asked = failure.error.retry_after_s
    if failure.stage == "answered":
        if failure.code == 429:
            if asked is None or repeats >= _MOST_AS_ASKED or _is_budget(failure.error):
                return None
            return _spread(seconds(asked), 0.5, draw)
        if method != "GET" or failure.code < 500:
            return None
        if asked is not None:
            return _spread(seconds(asked), 0.5, draw) if repeats < _MOST_AS_ASKED else None
        if failure.code not in _TRANSIENT:
            return None
    elif failure.stage == "refused" or (failure.stage == "broken" and method != "GET"):
        return None
    if repeats >= _MOST_UNTOLD:
        return None
    return _spread(Duration(_FIRST_PAUSE << repeats), 1.0, draw)


def _spread(pause: Duration, share: float, draw: float) -> Duration:
    """Lengthen a pause by up to that share of it, so that many clients do not come back at once."""
    return Duration(round(pause * (1 + share * draw)))


def _is_budget(error: ApiError) -> bool:
    """Return whether a disruption budget forbids an eviction, which waiting a little does not change: the caller decides."""
    return any(cause.get("reason") == "DisruptionBudget" for cause in error.causes)
