"""A platform to try racks.py with: two pools of servers, kept in memory. ``python rack_platform.py`` serves it."""

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

MAKING_S, STOPPING_S = 1, 2


@dataclass
class Server:
    """It is in the list from ``there_at`` on, and runs from ``on_at`` on."""

    id: str
    there_at: float
    on_at: float
    off_at: float = float("inf")
    problem: str = ""

    def state(self, now: float) -> str:
        """Return what it does now."""
        if self.off_at < float("inf"):
            return "stopping"
        return "on" if self.on_at <= now else "starting"


@dataclass
class Pool:
    """Servers of one type."""

    name: str
    min: int
    max: int
    cpu: str
    memory: str
    servers: list[Server] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many servers are ordered and not released."""
        return sum(one.off_at == float("inf") for one in self.servers)

    def shown(self, now: float) -> dict[str, object]:
        """Return the pool as the API has it."""
        servers = [
            {"id": one.id, "state": one.state(now), "problem": one.problem}
            for one in self.servers
            if one.there_at <= now < one.off_at
        ]
        bounds = {"name": self.name, "min": self.min, "max": self.max, "size": self.size}
        machine = {"type": f"rack-{self.cpu}", "cpu": self.cpu, "memory": self.memory, "room": "cellar"}
        return {**bounds, **machine, "servers": servers}


class Platform:
    """Pools, and who may ask for them.

    Servers for pools of ``sold_out`` never start; ``refused`` (status, code, message) is the answer to everything.
    """

    def __init__(self, token: str, now: Callable[[], float], boot_s: float = 20) -> None:
        self.token, self.now, self.boot_s = token, now, boot_s
        self.numbers = itertools.count(1)
        self.sold_out: set[str] = set()
        self.refused: tuple[int, str, str] | None = None
        first = Server("rack-0", now(), now())
        self.pools = {
            "large": Pool("large", 0, 3, "32", "64Gi"),
            "small": Pool("small", 1, 2, "4", "16Gi", [first]),
        }

    def app(self) -> web.Application:
        """Return what is to be served."""
        app = web.Application()
        app.add_routes([web.get("/pools", self.list), web.post("/pools/{pool}/{what}", self.change)])
        return app

    async def list(self, request: web.Request) -> web.Response:
        """Answer with all pools."""
        now = self.now()
        return self.refusal(request) or web.json_response([one.shown(now) for one in self.pools.values()])

    async def change(self, request: web.Request) -> web.Response:
        """Carry out an order, a withdrawal or a release."""
        if refusal := self.refusal(request):
            return refusal
        pool, body, now = self.pools[request.match_info["pool"]], await request.json(), self.now()
        if request.match_info["what"] == "orders":
            if pool.size + body["count"] > pool.max:
                return problem(409, "over-quota", f"pool {pool.name} has at most {pool.max} servers")
            pool.servers += [self.server(pool, now) for _ in range(body["count"])]
        elif request.match_info["what"] == "withdrawals":
            waiting = [one for one in pool.servers if one.there_at > now]
            for one in waiting[: body["count"]]:
                pool.servers.remove(one)
        else:
            for one in pool.servers:
                if one.id in body["servers"]:
                    one.off_at = min(one.off_at, now + STOPPING_S)
        return web.json_response({})

    def server(self, pool: Pool, now: float) -> Server:
        """Return a new server of a pool."""
        name, there_at = f"rack-{next(self.numbers)}", now + MAKING_S
        if pool.name in self.sold_out:
            return Server(name, there_at, float("inf"), problem="sold-out")
        return Server(name, there_at, there_at + self.boot_s)

    def refusal(self, request: web.Request) -> web.Response | None:
        """Return why nothing is answered; None for somebody with the token."""
        if self.refused:
            return problem(*self.refused)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return problem(401, "who-are-you", "the token is not known")
        return None


def problem(status: int, code: str, message: str) -> web.Response:
    """Return a refusal."""
    return web.json_response({"code": code, "message": message}, status=status)


if __name__ == "__main__":
    now = time.monotonic  # noqa: TID251  # a server of its own, whose time is the real one
    web.run_app(Platform(os.environ["RACKS_TOKEN"], now).app(), host="127.0.0.1", port=8800)
