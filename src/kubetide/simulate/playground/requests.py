"""Requests and answers of a playground's API."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from math import isfinite
from typing import Any, Final, TypeVar

import msgspec

from kubetide.objects.base import json_name
from kubetide.ports.errors import BadRequest, NotFound

T = TypeVar("T")

PREFIX: Final = "/kubetide/v1/"
"""Below it ``load`` (GET, PUT) and ``faults`` (GET, POST, DELETE) are served."""

MOST_REQUESTS: Final = 1e7
"""Requests/s that a service can be given."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True):
    """Base: an unknown field is an error, because it is a typo."""


class LoadAsked(_Part, frozen=True, kw_only=True):
    """A requested load of a service; ``requests_per_second`` None restores the scenario's."""

    service: str
    requests_per_second: float | None


class FaultAsked(_Part, frozen=True, kw_only=True):
    """A requested fault; ``for_`` is a duration, empty for one that stays until it is cleared."""

    kind: str
    group: str = ""
    for_: str = msgspec.field(default="", name="for")
    probability: float = 1.0


class LoadRow(_Part, frozen=True, kw_only=True):
    """A service under load.

    Attributes:
        service: ``namespace/name``.
        requests_per_second: What came in the last step.
        set_to: What was set; None for the scenario's load.
        replicas, ready: Pods that are asked for, and that serve.
    """

    service: str
    requests_per_second: float
    set_to: float | None
    replicas: int
    ready: int


class Loads(_Part, frozen=True, kw_only=True):
    """All services under load."""

    loads: tuple[LoadRow, ...]


class FaultKind(_Part, frozen=True, kw_only=True):
    """A fault that can be injected."""

    kind: str
    about: str
    takes_group: bool


class ActiveFault(_Part, frozen=True, kw_only=True):
    """An active fault; times are RFC 3339, ``until`` empty for one that stays."""

    kind: str
    group: str
    where: str
    since: str
    until: str
    probability: float


class Faults(_Part, frozen=True, kw_only=True):
    """The possible faults, the node groups that they can hit, and the active faults."""

    kinds: tuple[FaultKind, ...]
    groups: tuple[str, ...]
    active: tuple[ActiveFault, ...]


def read(body: Any, model: type[T]) -> T:
    """Return a parsed body. Raises BadRequest that names the field."""
    try:
        return msgspec.convert(body, model)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the body cannot be read: {error}") from error


def checked_requests(asked: LoadAsked) -> float | None:
    """Return the requested requests/s. Raises BadRequest."""
    value = asked.requests_per_second
    if value is not None and not (isfinite(value) and 0 <= value <= MOST_REQUESTS):
        raise BadRequest(f"requestsPerSecond: {value:g} is not between 0 and {MOST_REQUESTS:,.0f}")
    return value


def no_such(what: str, name: str, there: Collection[str]) -> NotFound:
    """Return the error for an unknown name, with the nearest name, or all names."""
    short = {one.removeprefix("default/"): None for one in there}
    near = difflib.get_close_matches(name.removeprefix("default/"), short, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(short) or 'none'}"
    return NotFound(f"no {what} {name} here; {hint}")
