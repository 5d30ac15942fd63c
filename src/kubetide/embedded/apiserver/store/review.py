"""What stands between a request and its write: the admission of each object by webhooks.

``Rest.handle`` waits for nothing, and webhooks take their time. So a review that has no answer yet
raises ``ReviewNeeded``, before anything is written; whoever handles the request gets the answer and
handles the request again, from its start. An answer holds for what it was asked about only: when the
object has changed meanwhile, it is asked anew, as upstream does in its update loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kubetide.embedded.apiserver.admission import Attributes
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind

T = TypeVar("T")

BINDING = Kind("", "v1", "Binding", "bindings", dict)
EVICTION = Kind("policy", "v1", "Eviction", "evictions", dict)
"""Types of requests that are stored nowhere."""


class Review(Protocol):
    """What is known of one request so far. Objects are in the stored version."""

    def identity(self, draw: Callable[[], T]) -> T:
        """Return what was drawn when the request was first handled: name, uid and time of a new object."""
        ...

    def mutated(
        self, kind: Kind[Any], old: Revision | None, new: Json | None, settle: Callable[[Json], Json]
    ) -> Json | None:
        """Return the object as mutating webhooks want it, None for a deletion.

        Args:
            kind: The type of the object; for a subresource that of what is sent there.
            old: What is there, None for a creation.
            new: What is asked for, None for a deletion.
            settle: Fills in the defaults of an object that was changed; raises InternalError.

        Raises: ReviewNeeded.
        """
        ...

    def validate(self, kind: Kind[Any], old: Revision | None, new: Json | None) -> None:
        """Return when validating webhooks allow what is about to be written. Raises ReviewNeeded."""
        ...


class ReviewNeeded(Exception):
    """A request cannot go on before webhooks have been asked; nothing has been written.

    Attributes:
        mutating: Which of the two stages it is at.
        attributes: What they are asked about.
        version: That of the object that is there, 0 for none: what the answer holds for.
    """

    def __init__(self, attributes: Attributes, version: int, *, mutating: bool) -> None:
        super().__init__("webhooks have to be asked first")
        self.attributes = attributes
        self.version = version
        self.mutating = mutating


def unsettled(json: Json) -> Json:
    """Leave an object as it is: what has no defaults needs none filled in."""
    return json
