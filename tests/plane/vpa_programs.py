"""Upstream's VPA programs on a plane, by the names that `tools.plane build vpa` gives them."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager

import pytest
from tests.plane.running import Plane, Programs, free_ports
from tests.plane.towns import user_kubeconfig
from tools.plane.build import TARGETS, find

from kubetide.serving.certificates import Authority


def skip_without_vpa_programs():
    """Skip the test where they are not built."""
    missing = [name for name in TARGETS["vpa"] if find(name) is None]
    if missing:
        pytest.skip(f"not built: {', '.join(missing)} (python -m tools.plane build vpa)")


class Upstream:
    """One of the programs; ``port`` is that of its metrics."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"

    def series(self) -> dict[str, float]:
        """Return its series; empty before it listens."""
        try:
            with urllib.request.urlopen(self._url, timeout=5) as answer:
                return series_of(answer.read())
        except (urllib.error.URLError, OSError):
            return {}


def series_of(text: bytes) -> dict[str, float]:
    """Return the series of a scrape."""
    lines = [line for line in text.decode().splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@contextmanager
def upstream(plane: Plane, name: str, flags: Mapping[str, str]):
    """Run one of the programs until the end of the context, as a user of its own name who may do everything.

    Raises PlaneError with the end of its log where it does not come up.
    """
    config = user_kubeconfig(plane, name, plane.folder / f"{name}.kubeconfig")
    (port,) = free_ports(1)
    own = {"kubeconfig": str(config), "address": f"127.0.0.1:{port}", "kube-api-qps": "500"}
    with ExitStack() as stack:
        programs = Programs(stack, plane.folder)
        programs.start(name, tuple(f"--{flag}={value}" for flag, value in (own | dict(flags)).items()))
        program = Upstream(port)
        programs.wait(f"{name} shows its series", program.series)
        if "port" in flags:
            programs.wait(f"{name} listens", lambda: _listens(int(flags["port"])))
        yield program


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def upstream_webhook(plane: Plane, flags: Mapping[str, str]):
    """Run the admission controller, registered nowhere; yield its URL and the context to ask it with."""
    authority = Authority()
    pair = authority.server(["127.0.0.1", "localhost"])
    files = {
        "client-ca-file": authority.certificate,
        "tls-cert-file": pair.certificate,
        "tls-private-key": pair.key,
    }
    for name, content in files.items():
        (plane.folder / f"webhook-{name}").write_bytes(content)
    (port,) = free_ports(1)
    own = {name: str(plane.folder / f"webhook-{name}") for name in files}
    own |= {"port": str(port), "register-webhook": "false"}
    tls = ssl.create_default_context(cadata=authority.certificate.decode())
    with upstream(plane, "vpa-admission-controller", own | dict(flags)):
        yield f"https://127.0.0.1:{port}/", tls
