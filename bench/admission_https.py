"""What the VPA's admission controller gives over HTTPS: reviews a second of one core, and latency at a steady load.

``python -m bench admission_https``. The server is a process of its own, which a client posts one review after another on
a connection that stays open. The CPU time that the server takes for each is read from the kernel, TLS, HTTP and collections of
garbage included, so that other work on the machine does not count. ``reviews_per_s`` is one by its mean; ``ratio`` is
that mean by the bare decision (``reply``) on the same bodies. Latencies are those of a queue before one core that has these
times of service, and reviews that come at random (Poisson, seeded), ``rate`` a second; the network is left out.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import numpy as np
from numpy.typing import NDArray

from bench.vertical_pods import pod_body, views, vpa
from kubetide.ports.clock import Clock
from kubetide.runtime.process import tune_gc
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import Listener
from kubetide.serving.certificates import Authority
from kubetide.vertical.admission.controller.server import ReviewHandler
from kubetide.vertical.admission.decide import reply
from kubetide.vertical.admission.state import State

VPAS = 1_000
RATES = (500, 2_000)
REVIEWS = 4_000
WARM_UP = 500
RUNS = 2
SERVE = "serve"


def state_of() -> State:
    """Return 1,000 VPAs of one namespace with their workloads."""
    state = State()
    for number in range(VPAS):
        for view in views(number):
            state.put_workload(view.key, view)
        state.put_vpa(("default", f"w{number}"), vpa(number))
    return state


def review(number: int) -> bytes:
    """Return a review as an API server sends it."""
    body = pod_body(number, number % VPAS)
    metadata = {"annotations": {f"example.com/key-{n}": "a value of some length" for n in range(10)}}
    request = {
        "uid": f"705ab4f5-6393-11e8-b7cc-{number:012d}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "userInfo": {
            "username": "system:serviceaccount:kube-system:replicaset-controller",
            "groups": ["a", "b"],
        },
        "object": {**body, "metadata": {**body["metadata"], **metadata}},  # type: ignore[dict-item]
        "dryRun": False,
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


async def serve(clock: Clock) -> None:
    """Answer until standard input ends; the first line of standard output is the URL, then comes the authority."""
    tune_gc()
    authority = Authority()
    listener = Listener(ReviewHandler(state_of(), clock).application())
    await listener.listen("127.0.0.1", 0, tls=authority.server_context(["127.0.0.1"]))
    said = {"url": f"https://127.0.0.1:{listener.address[1]}/", "authority": authority.certificate.decode()}
    print(json.dumps(said), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await listener.close()


async def service_times(url: str, authority: str, pid: int) -> NDArray[np.float64]:
    """Return the CPU seconds of the server for each review."""
    used = Path(f"/proc/{pid}/task/{pid}/schedstat")
    bodies = [review(number) for number in range(VPAS)]
    marks: list[int] = []
    connector = aiohttp.TCPConnector(limit=1, ssl=ssl.create_default_context(cadata=authority))
    async with aiohttp.ClientSession(connector=connector) as session:
        for number in range(WARM_UP + REVIEWS):
            headers = {"Content-Type": "application/json"}
            async with session.post(url, data=bodies[number % VPAS], headers=headers) as answer:
                assert b'"patch"' in await answer.read(), "a pod got no patch"
            # The kernel answers at once.
            marks.append(int(used.read_text(encoding="ascii").split()[0]))  # noqa: ASYNC240
    return np.diff(marks[WARM_UP - 1 :]) / 1e9


def latencies(service: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Return the time from the arrival of each review to its answer, in seconds."""
    arrivals = np.cumsum(np.random.default_rng(1).exponential(1 / rate, len(service)))
    free, found = 0.0, []
    for arrival, takes in zip(arrivals.tolist(), service.tolist(), strict=True):
        free = max(free, arrival) + takes
        found.append(free - arrival)
    return np.array(found)


def measure() -> NDArray[np.float64]:
    """Return the times of service of the run with the least mean."""
    found = []
    for _ in range(RUNS):
        with subprocess.Popen(
            [sys.executable, "-m", "bench.admission_https", SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            said = json.loads(server.stdout.readline())
            found.append(asyncio.run(service_times(said["url"], said["authority"], server.pid)))
            server.communicate("")
    return min(found, key=lambda one: float(one.mean()))


def bare() -> float:
    """Return the CPU seconds of deciding one review."""
    state, bodies = state_of(), [review(number) for number in range(VPAS)]
    best = float("inf")
    for _ in range(RUNS):
        begun = time.process_time_ns()
        for body in bodies:
            reply(state, "application/json", body)
        best = min(best, (time.process_time_ns() - begun) / 1e9 / len(bodies))
    return best


def main() -> None:
    if sys.argv[1:] == [SERVE]:
        run_real(serve)
        return
    tune_gc()
    decided, service = bare(), measure()
    line: dict[str, object] = {
        "bench": "vertical/admission_https",
        "reviews_per_s": round(1 / service.mean()),
        "ratio": round(float(service.mean()) / decided, 1),
        "service_p99_ms": round(float(np.percentile(service, 99)) * 1000, 2),
    }
    for rate in RATES:
        for share in (50, 99):
            value = float(np.percentile(latencies(service, rate), share)) * 1000
            line[f"p{share}_ms_at_{rate}"] = round(value, 2)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
