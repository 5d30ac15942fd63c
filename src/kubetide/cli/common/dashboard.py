"""A run that is asked over its dashboard: the address in the place of a folder, and the questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from kubetide.ports.errors import KubetideError

if TYPE_CHECKING:
    from kubetide.loop import Table
    from kubetide.simulate.answers.ahead import PlanAhead
    from kubetide.simulate.answers.status import Status
    from kubetide.simulate.answers.why import Answer

T = TypeVar("T")

_API: Final = "/api/v1/"
_PATIENCE_S: Final = 60.0


class DashboardError(KubetideError):
    """A dashboard that gives no answer; the text says why and what to do."""


class Dashboard(NamedTuple):
    """Where a dashboard is: its address without the token, and the token."""

    url: str
    token: str


class _Run(click.Path):
    """A folder that a run writes to, or the address of a dashboard."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            return _dashboard(value)
        return super().convert(value, param, ctx)


def _dashboard(address: str) -> Dashboard:
    from urllib.parse import parse_qs, urlsplit

    parts = urlsplit(address)
    [token] = parse_qs(parts.query).get("token", [""])[:1]
    return Dashboard(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", token)


def run_option() -> Callable[[Any], Any]:
    """Return the option ``--out`` of commands that read a run: a Path, or a Dashboard."""
    return click.option(
        "--out",
        type=_Run(path_type=Path, file_okay=False),
        default=Path("kubetide-out"),
        show_default=True,
        metavar="FOLDER|URL",
        help="Folder that the run writes to, or the address of its dashboard with the token: http://HOST:PORT/?token=...",
    )


def ask(dashboard: Dashboard, question: str, model: type[T], **parameters: str | None) -> T:
    """Return the answer of a dashboard to one question. Raises DashboardError."""
    import msgspec

    body = _sent(dashboard, question, {name: value for name, value in parameters.items() if value})
    try:
        return msgspec.json.decode(body, type=model)
    except msgspec.DecodeError as error:
        raise DashboardError(
            f"{dashboard.url} gives no answer of a dashboard of this version: {error}; use the version that runs there"
        ) from error


def _sent(dashboard: Dashboard, question: str, parameters: dict[str, str]) -> bytes:
    from urllib.error import HTTPError
    from urllib.parse import quote, urlencode
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirects(HTTPRedirectHandler):
        """Follows none: the token is for this server alone."""

        def redirect_request(self, *_: Any) -> None:
            return None

    url = f"{dashboard.url}{_API}{quote(question)}?{urlencode(parameters)}"
    request = Request(url, headers={"Authorization": f"Bearer {dashboard.token}"})  # noqa: S310  http or https alone
    try:
        with build_opener(NoRedirects).open(request, timeout=_PATIENCE_S) as response:
            answer: bytes = response.read()
    except HTTPError as error:
        elsewhere = f", and leads to {where}: use that" if (where := error.headers.get("Location")) else ""
        raise DashboardError(f"{_refusal(dashboard, error.code, error.read())}{elsewhere}") from error
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise DashboardError(
            f"no dashboard answers at {dashboard.url}: {reason}; `kubetide ui` prints its address"
        ) from error
    return answer


def _refusal(dashboard: Dashboard, status: int, body: bytes) -> str:
    import msgspec

    try:
        return str(msgspec.json.decode(body, type=dict[str, str])["error"])
    except (msgspec.DecodeError, KeyError):
        text = body.decode(errors="replace").strip().removeprefix("kubetide: ")
        return f"{dashboard.url} answers {status}: {text}"


def answer_of(dashboard: Dashboard, kind: str, name: str, *, at: str | None, view: str) -> Answer:
    """Return why an object is as it is; ``name`` has its namespace, where it has one. Raises DashboardError."""
    from msgspec import UnsetType

    from kubetide.web.history import Explanation

    found = ask(dashboard, f"explain/{kind}/{name}", Explanation, at=at, view=view, whole="1")
    if isinstance(found.answer, UnsetType):
        raise DashboardError(f"{dashboard.url} is of an older version: use the version that runs there")
    return found.answer


def status_of(dashboard: Dashboard, at: str | None) -> tuple[Status, tuple[Table, ...]]:
    """Return the page of all, and its tables with their columns. Raises DashboardError."""
    from kubetide.loop import Table
    from kubetide.simulate.answers.status import Status

    status = ask(dashboard, "status", Status, at=at)
    tables = (
        Table(title, tuple(rows[0]) if rows else (), tuple(tuple(row.values()) for row in rows))
        for title, rows in status.tables.items()
    )
    return status, tuple(tables)


def names_at(dashboard: Dashboard, kind: str) -> list[str]:
    """Return the names of a kind's objects now; none of a workload's. Raises DashboardError."""
    return ask(dashboard, "objects", dict[str, list[str]]).get(kind, [])


def plan_of(dashboard: Dashboard, ahead: str, at: str | None) -> PlanAhead:
    """Return what is to come. Raises DashboardError."""
    from kubetide.simulate.answers.ahead import PlanAhead

    return ask(dashboard, "ahead", PlanAhead, at=at, ahead=ahead)
