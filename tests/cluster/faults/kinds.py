"""The faults of an API server, each as what the proxy does with a request."""

from __future__ import annotations

import json
from itertools import count

from aiohttp import web
from tests.cluster.faults.proxy import Exchange, HangUp, changed


def anything(_exchange: Exchange) -> bool:
    return True


def reads(exchange: Exchange) -> bool:
    return not exchange.writes


def watches(exchange: Exchange) -> bool:
    return exchange.watches


def lists(exchange: Exchange) -> bool:
    return exchange.lists


def writes(exchange: Exchange) -> bool:
    return exchange.writes


def about(resource):
    return lambda exchange: exchange.is_about(resource)


def answers(code, reason="", *, where=anything, retry_after=None, message="", **more):
    """The server refuses with a Status."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message or f"code {code}",
        "reason": reason,
        "code": code,
        **more,
    }

    async def fault(exchange):
        if not where(exchange):
            return None
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return web.json_response(body, status=code, headers=headers)

    return fault


def forbids(resource, group="", user="admin"):
    """RBAC has no rule for a resource, in upstream's words."""

    async def fault(exchange):
        if not exchange.is_about(resource):
            return None
        verb = "watch" if exchange.watches else "list"
        message = (
            f'{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" '
            f'in API group "{group}" at the cluster scope'
        )
        return await answers(403, "Forbidden", message=message)(exchange)

    return fault


def hangs_up(where=anything):
    """The connection breaks off before an answer."""

    async def fault(exchange):
        return exchange.hang_up() if where(exchange) else None

    return fault


def loses_answers(where=writes):
    """The server does what it is asked, and the connection breaks off before it can say so."""

    async def fault(exchange):
        if not where(exchange):
            return None
        await exchange.pass_on()
        return exchange.hang_up()

    return fault


def is_silent(where=anything):
    """The connection is taken, and nothing is ever said."""

    async def fault(exchange):
        return await exchange.say_nothing() if where(exchange) else None

    return fault


def sends(data: bytes, where=reads):
    """Bytes that are not what the protocol says."""

    async def fault(exchange):
        return await exchange.raw(data) if where(exchange) else None

    return fault


def says(body: bytes, *, code=200, where=reads):
    """A well-formed answer with a body that makes no sense."""

    async def fault(exchange):
        if not where(exchange):
            return None
        return web.Response(body=body, status=code, content_type="application/json")

    return fault


def no_streams(page=500):
    """A server before streaming lists; its pages have that many objects at most."""

    async def fault(exchange):
        if "sendInitialEvents" in exchange.query:
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            return await answers(422, "Invalid", message=message)(exchange)
        if exchange.lists:
            exchange.query["limit"] = str(page)
        return None

    return fault


def rewrites(change, where=reads):
    """Objects, lists and the objects of events come with that change; what the server says of errors does not."""

    def in_list(body):
        for item in body.get("items") or [body]:
            in_object(item)

    def in_event(event):
        in_object(event["object"])

    def in_object(item):
        if item.get("kind") != "Status":
            change(item)

    async def fault(exchange):
        if not where(exchange):
            return None
        return await exchange.pass_on(body=changed(in_list), line=lambda line: [changed(in_event)(line)])

    return fault


def loses_items(resource, every=2):
    """Lists lack every n-th object, as those of a server whose data was restored: without an error or another sign."""

    def lose(body):
        body["items"] = [one for number, one in enumerate(body.get("items") or ()) if (number + 1) % every]

    async def fault(exchange):
        if not (exchange.lists and exchange.is_about(resource)):
            return None
        return await exchange.pass_on(body=changed(lose))

    return fault


def cuts_lines(every=3, where=watches):
    """A watch ends in the middle of every n-th line."""

    def make():
        number = count(1)

        def cut(line):
            if next(number) % every:
                return [line]
            raise HangUp

        return cut

    async def fault(exchange):
        if not where(exchange):
            return None
        return await exchange.pass_on(line=make())

    return fault


def dribbles(size=7, where=watches):
    """Lines come in pieces, cut anywhere."""

    async def fault(exchange):
        if not where(exchange):
            return None
        cut = lambda line: [line[at : at + size] for at in range(0, len(line), size)]  # noqa: E731
        return await exchange.pass_on(line=cut)

    return fault


def is_live(line: bytes) -> bool:
    """Whether an event is a change, and not part of the beginning of a streaming list."""
    return b'"type":"ADDED"' not in line.replace(b" ", b"") and b"initial-events-end" not in line


def spoils(data: bytes, every=2, where=watches):
    """Every n-th change of a watch is another line."""

    def make():
        number = count(1)
        return lambda line: [data + b"\n"] if is_live(line) and next(number) % every == 0 else [line]

    async def fault(exchange):
        if not where(exchange):
            return None
        return await exchange.pass_on(line=make())

    return fault


def repeats(where=watches):
    """Each change is followed by all changes before it, once more."""

    def make():
        seen = []

        def again(line):
            if not is_live(line):
                return [line]
            seen.append(line)
            return [line, *seen[:-1]]

        return again

    async def fault(exchange):
        if not where(exchange):
            return None
        return await exchange.pass_on(line=make())

    return fault


def swaps(where=watches):
    """The later one of each two changes comes first."""

    def make():
        held = []

        def swap(line):
            if not is_live(line):
                return [line]
            if not held:
                held.append(line)
                return []
            return [line, held.pop()]

        return swap

    async def fault(exchange):
        if not where(exchange):
            return None
        return await exchange.pass_on(line=make())

    return fault


def error_event(code, reason):
    """The line by which a server ends a watch with an error."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return json.dumps({"type": "ERROR", "object": status}).encode()
