"""The API as an OpenAPI document, built from the routes and their answer types."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from kubetide import __version__

Json = dict[str, Any]

_STREAM: Final = {"text/event-stream": {"schema": {"type": "string"}}}


class Parameter(NamedTuple):
    """A query parameter."""

    name: str
    about: str
    is_number: bool = False


class Route(NamedTuple):
    """A path of the API: ``name`` is the handler method, ``answer`` its result type; None for a stream of events."""

    path: str
    name: str
    about: str
    answer: Any
    parameters: tuple[Parameter, ...] = ()


def openapi(routes: tuple[Route, ...]) -> Json:
    """Return the document, OpenAPI 3.1."""
    answers = [route.answer for route in routes if route.answer is not None]
    schemas, components = msgspec.json.schema_components(answers, ref_template="#/components/schemas/{name}")
    content = iter(schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "kubetide", "version": __version__, "description": "A recorded run, read only."},
        "paths": {
            route.path: {"get": _operation(route, _STREAM if route.answer is None else _json(next(content)))}
            for route in routes
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _operation(route: Route, content: Json) -> Json:
    in_path = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    return {
        "operationId": route.name,
        "summary": route.about,
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in in_path
            ),
            *(
                {
                    "name": one.name,
                    "in": "query",
                    "description": one.about,
                    "schema": {"type": "integer" if one.is_number else "string"},
                }
                for one in route.parameters
            ),
        ],
        "responses": {
            "200": {"description": "the answer", "content": content},
            "400": {"description": "a parameter that cannot be read"},
            "401": {"description": "no token, or a wrong one"},
            "404": {"description": "no such object at that time, or no records"},
            "503": {"description": "too many questions at once; ask again"},
        },
    }
