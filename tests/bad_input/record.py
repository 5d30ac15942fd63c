"""Sends the bad requests to a server and records its answers: ``python -m tests.bad_input.record URL TOKEN``.

The server is fresh: nothing but what every cluster has. Only what can be compared is recorded: the code, and
of a refusal its reason, message and details, with what differs from one run to the next put out.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
from tests.bad_input.cases import CASES
from tests.bad_input.requests import DEFINITIONS, WIDGETS, Case

ANSWERS = Path(__file__).parent / "answers.json"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VERSION = re.compile(r"(in record \(|current: )\d+")
_DRAWN = re.compile(r"(?<=Bad_)[a-z0-9]{5}\b")
_LONGEST = 2_000
_TRIES = 100
_PAUSE_S = 0.1
_NOT_YET = "storage is (re)initializing"


async def answers(url: str, token: str, tls: ssl.SSLContext | bool) -> dict[str, Any]:
    """Return the answer to each case, by its name."""
    found = {}
    connector = aiohttp.TCPConnector(ssl=tls)
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "battery/1"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        for case in CASES:
            found[case.name] = await _answer(session, url, case)
            if case.path == DEFINITIONS and found[case.name]["code"] == 201:
                await _served(session, url)
    return found


async def _answer(session: aiohttp.ClientSession, url: str, case: Case) -> dict[str, Any]:
    headers = dict(case.headers)
    if case.data is not None:
        headers.setdefault("Content-Type", "application/json")
    path = aiohttp.client.URL(url + case.path, encoded=True)
    for _ in range(_TRIES):
        async with session.request(
            case.method,
            path,
            data=case.data and BytesIO(case.data),
            headers=headers,
            skip_auto_headers=["Content-Type"],
        ) as answer:
            text = (await answer.read()).decode()
            warnings = answer.headers.getall("Warning", [])
        if _NOT_YET not in text:
            break
        await asyncio.sleep(_PAUSE_S)
    result = compared(answer.status, text, warnings)
    if answer.status == 200 and "/resize" in case.path:
        result["pod"] = _resized(json.loads(text))
    return result


def compared(code: int, text: str, warnings: list[str]) -> dict[str, Any]:
    """Return of an answer what must be the same in every run."""
    result: dict[str, Any] = {"code": code}
    if warnings:
        result["warnings"] = sorted(warnings)
    try:
        body = json.loads(text.splitlines()[0]) if text.count("\n") == 1 else json.loads(text)
    except (ValueError, IndexError):
        if code >= 400:
            result["text"] = text
        return result
    if isinstance(body, dict) and body.get("type") == "ERROR":
        body = body["object"]
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("status") == "Failure":
        status = {key: body[key] for key in ("code", "reason", "message", "details") if body.get(key)}
        result["status"] = json.loads(_plain(json.dumps(status)))
        _put_in_order(result["status"])
    return result


def _resized(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a pod that a resize may change, and some of what it may not."""
    meta, spec = pod["metadata"], pod["spec"]
    containers = (*spec["containers"], *spec.get("initContainers", ()))
    compared = ("name", "image", "resources", "resizePolicy", "env", "ports")
    return {
        "metadata": {name: meta.get(name) for name in ("generation", "labels", "finalizers")},
        "containers": [{name: each[name] for name in compared if name in each} for each in containers],
        "phase": pod["status"]["phase"],
        "qosClass": pod["status"]["qosClass"],
    }


def _put_in_order(status: dict[str, Any]) -> None:
    """Sort what Go finds in the order of its maps, which is another each time, and cut what is very long."""
    causes = (status.get("details") or {}).get("causes", [])
    said = list(dict.fromkeys(f"{cause.get('field')}: {cause.get('message', '')}" for cause in causes))
    together = f"[{', '.join(said)}]"
    if status.get("message", "").endswith(together):
        status["message"] = status["message"].removesuffix(together) + f"[{', '.join(sorted(said))}]"
        causes.sort(key=lambda cause: (cause["field"], cause.get("message", "")))
    for cause in [status, *causes]:
        cause["message"] = cause.get("message", "")[:_LONGEST]


def _plain(text: str) -> str:
    return _DRAWN.sub("DRAWN", _VERSION.sub(r"\g<1>N", _UID.sub("UID", text)))


async def _served(session: aiohttp.ClientSession, url: str) -> None:
    """Wait until a new kind is served, which takes a real server a moment."""
    for _ in range(_TRIES):
        async with session.get(url + WIDGETS) as answer:
            if answer.status == 200:
                return
        await asyncio.sleep(_PAUSE_S)


def main() -> None:
    """Record the answers of the server that the command line names."""
    url, token = sys.argv[1:]
    found = asyncio.run(answers(url.rstrip("/"), token, tls=False))
    lines = [f"{json.dumps(name)}: {json.dumps(answer, sort_keys=True)}" for name, answer in found.items()]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(found)} answers")


if __name__ == "__main__":
    main()
