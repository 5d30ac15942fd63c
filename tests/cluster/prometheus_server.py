"""A real Prometheus on this machine, and an exporter whose values a test decides."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import ssl
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.plane.running import Programs
from tools.plane.toolchain import cache

from kubetide.serving.certificates import Authority

USER, PASSWORD = "kubetide", "scrape-me"
_HASHED = "$2b$04$JvzUBrwryfxniv1lRHGdYuwAuMraM8SD19hIYnk4lX07ARJABvTCK"
_VERSION = re.compile(r"version=([\d.]+)")
_LISTENING = re.compile(r'msg="Listening on" address=(\S+)')


def find_prometheus() -> Path | None:
    """Return the program: what KUBETIDE_PROMETHEUS names, the one on the PATH, or the unpacked one in the cache."""
    named = os.environ.get("KUBETIDE_PROMETHEUS") or shutil.which("prometheus")
    path = Path(named) if named else cache().parent / "debian" / "usr" / "bin" / "prometheus"
    return path if os.access(path, os.X_OK) else None


class Exporter:
    """Series by their name and labels as Prometheus writes them, such as ``depth{queue="orders"}``."""

    def __init__(self, port: int, series: dict[str, float]) -> None:
        self.port = port
        self.series = series


@contextmanager
def exporter(**series: float):
    """Serve gauges from a thread of its own; return the Exporter."""
    held = dict(series)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = "".join(f"{name} {value}\n" for name, value in list(held.items())).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.05))
        thread.start()
        try:
            yield Exporter(server.server_address[1], held)
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True)
class Prometheus:
    """The address of the server; with the credentials it requires and its authority, where it is guarded.

    Attributes:
        url: Up to before ``/api/v1``.
        authority: PEM of who signed its certificate; empty without TLS.
        version: Its numbers.
    """

    url: str
    authority: str
    version: tuple[int, ...]


@contextmanager
def running_prometheus(
    folder: Path, *scraped: Exporter, guarded: bool = False, more_flags: tuple[str, ...] = ()
):
    """Yield a Prometheus that is ready, and scrapes the exporters five times a second.

    Args:
        folder: Empty; holds everything.
        scraped: Whom it scrapes.
        guarded: Whether it speaks TLS only, and only to ``USER`` with ``PASSWORD``.
        more_flags: Of the program.
    """
    targets = [f"127.0.0.1:{one.port}" for one in scraped]
    target = {"job_name": "test", "static_configs": [{"targets": targets}]}
    config = {"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"}, "scrape_configs": [target]}
    (folder / "prometheus.yaml").write_text(json.dumps(config))  # JSON is YAML
    flags = [
        f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/data",
        "--web.listen-address=127.0.0.1:0",
        *more_flags,
    ]
    authority = ""
    if guarded:
        authority = _guard(folder)
        flags.append(f"--web.config.file={folder}/web.yaml")
    with ExitStack() as stack:
        programs = Programs(stack, folder)
        programs.start("prometheus", tuple(flags), find_prometheus())
        log = folder / "prometheus.log"
        programs.wait("Prometheus listens", lambda: _LISTENING.search(log.read_text()) is not None)
        address = _LISTENING.search(log.read_text())[1]
        version = tuple(int(number) for number in _VERSION.search(log.read_text())[1].split("."))
        server = Prometheus(f"http{'s' if guarded else ''}://{address}", authority, version)
        programs.wait("Prometheus is ready", lambda: _is_ready(server))
        yield server


def _guard(folder: Path) -> str:
    authority = Authority()
    pair = authority.server(["127.0.0.1"])
    (folder / "server.crt").write_bytes(pair.certificate)
    (folder / "server.key").write_bytes(pair.key)
    web = {
        "tls_server_config": {"cert_file": "server.crt", "key_file": "server.key"},
        "basic_auth_users": {USER: _HASHED},
    }
    (folder / "web.yaml").write_text(json.dumps(web))
    return authority.certificate.decode()


def _is_ready(server: Prometheus) -> bool:
    request = urllib.request.Request(f"{server.url}/-/ready")
    context = None
    if server.authority:
        context = ssl.create_default_context(cadata=server.authority)
        basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        request.add_header("Authorization", f"Basic {basic}")
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:
            return answer.status == 200
    except OSError:  # of which errors of HTTP are
        return False
