"""The API as an OpenAPI document, built from the routes and their answer types."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from kubetide import __version__

Json = dict[str, Any]


class Parameter(NamedTuple):
    """A query parameter."""

    name: str
    about: str
    is_number: bool = False


class Route(NamedTuple):
    """A path of the API: ``name`` is the handler method, ``answer`` its result type."""

    path: str
    name: str
    about: str
    answer: Any
    parameters: tuple[Parameter, ...] = ()


def openapi(routes: tuple[Route, ...]) -> Json:
    """Return the document, OpenAPI 3.1."""
    schemas, components = msgspec.json.schema_components(
        [route.answer for route in routes], ref_template="#/components/schemas/{name}"
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "kubetide", "version": __version__, "description": "A recorded run, read only."},
        "paths": {
            route.path: {"get": _operation(route, schema)}
            for route, schema in zip(routes, schemas, strict=True)
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, schema: Json) -> Json:
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
            "200": {"description": "the answer", "content": {"application/json": {"schema": schema}}},
            "400": {"description": "a parameter that cannot be read"},
            "401": {"description": "no token, or a wrong one"},
            "404": {"description": "no such object at that time, or no records"},
            "503": {"description": "too many questions at once; ask again"},
        },
    }
