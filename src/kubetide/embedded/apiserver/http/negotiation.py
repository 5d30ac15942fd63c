"""Which form of an answer a client accepts.

Source: API concepts v1.36, "Alternate representations of resources": media types with the
parameters ``as``, ``g`` and ``v``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kubetide.embedded.apiserver.http.refusals import not_acceptable

_META = "meta.k8s.io"
_JSON = frozenset({"application/json", "application/*", "*/*", "application/json;stream=watch"})


class Form(NamedTuple):
    """A form of answer: ``shape`` is empty (the object itself), ``Table``, ``PartialObjectMetadata[List]`` or an ``APIGroupDiscoveryList``."""

    shape: str = ""
    group: str = ""
    version: str = ""

    @property
    def media_type(self) -> str:
        if self.shape == "APIGroupDiscoveryList":
            return f"application/json;g={self.group};v={self.version};as={self.shape}"
        return "application/json"


PLAIN = Form()


@lru_cache(maxsize=256)
def accepted_form(accept: str, shapes: frozenset[tuple[str, str, str]] = frozenset()) -> Form:
    """Return the first form of ``accept`` that can be served, in the client's order of preference.

    Args:
        accept: The header, empty when there was none.
        shapes: (shape, group, version) that are served here besides the plain object.

    Raises: NotAcceptable when nothing on the list can be served.
    """
    if not accept.strip():
        return PLAIN
    choices = []
    for position, item in enumerate(accept.split(",")):
        media, *parameters = (part.strip() for part in item.split(";"))
        said = dict(parameter.partition("=")[::2] for parameter in parameters)
        try:
            weight = float(said.get("q", "1"))
        except ValueError:
            weight = 0.0
        choices.append((-weight, position, media, said))
    for weight, _, media, said in sorted(choices, key=lambda choice: choice[:2]):
        if media not in _JSON or weight == 0:
            continue
        shape = said.get("as", "")
        if not shape:
            return PLAIN
        form = (shape, said.get("g", ""), said.get("v", ""))
        if form in shapes:
            return Form(*form)
    raise not_acceptable()


OBJECT_SHAPES = frozenset(
    {
        ("Table", _META, "v1"),
        ("PartialObjectMetadata", _META, "v1"),
        ("PartialObjectMetadataList", _META, "v1"),
    }
)
"""Shapes of one object and of lists and watches."""

DISCOVERY_SHAPES = frozenset({("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")})
"""Shapes of ``/api`` and ``/apis``."""
