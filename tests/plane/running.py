"""A real control plane on this machine: etcd, kube-apiserver, and the controllers where a test needs them.

Each plane has ports, keys and a folder of its own, and no nodes. Its programs die with the process
that started them, however that ends.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.plane.build import TARGETS, find

from kubetide.cluster import Connection
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.serving.certificates import Authority

PROGRAMS = tuple(name for name in TARGETS["control-plane"] if name != "kubectl")
ADMIN_TOKEN = "admin-token"
VIEWER_TOKEN = "viewer-token"
"""Of the user ``viewer``, whom no role allows anything but discovery."""

_TOKENS = f"""\
{ADMIN_TOKEN},admin,1,"system:masters"
{VIEWER_TOKEN},viewer,2
"""
_START_S = 180
_STOP_S = 10


class PlaneError(Exception):
    """A plane that did not come up, with what its programs said."""


@dataclass(frozen=True)
class Plane:
    """Where a plane is, and how to be somebody there.

    Attributes:
        url: The API server, HTTPS on loopback.
        kubeconfig: A file for the administrator.
        authority: Signs client certificates that the API server knows.
        folder: Holds keys, state and ``NAME.log`` of each program.
    """

    url: str
    kubeconfig: Path
    authority: Authority
    folder: Path

    @property
    def connection(self) -> Connection:
        """The administrator's."""
        return Connection(self.url, ADMIN_TOKEN, self.authority.certificate.decode())

    @property
    def viewer(self) -> Connection:
        """That of somebody who may do nothing yet."""
        return Connection(self.url, VIEWER_TOKEN, self.authority.certificate.decode())

    def connection_of(self, user: str, *groups: str) -> Connection:
        """Anybody's, by a client certificate."""
        pair = self.authority.client(user, groups)
        return Connection(
            self.url,
            authority=self.authority.certificate.decode(),
            certificate=pair.certificate.decode(),
            key=pair.key.decode(),
        )


def missing_programs() -> list[str]:
    """Names what must be built before a plane can start."""
    return [name for name in PROGRAMS if find(name) is None]


@contextmanager
def running_plane(
    folder: Path,
    *,
    controllers: bool = True,
    autoscaler: bool = False,
    api_flags: tuple[str, ...] = (),
    manager_flags: tuple[str, ...] = (),
):
    """Yield a ``Plane`` that answers, and stop it at the end.

    Args:
        folder: Empty, on a disk of its own or not; holds everything.
        controllers: Whether kube-controller-manager (without its HPA controller) and
            kube-scheduler run. Without them nothing but requests changes anything, and pods need
            no ServiceAccount.
        autoscaler: Whether kube-controller-manager has its HPA controller after all.
        api_flags: More flags for kube-apiserver.
        manager_flags: More flags for kube-controller-manager.

    Raises PlaneError with the end of the logs.
    """
    for attempt in range(3):
        with ExitStack() as stack:
            home = folder / f"plane-{attempt}"
            try:
                plane = _start(
                    stack,
                    home,
                    controllers=controllers,
                    autoscaler=autoscaler,
                    api_flags=api_flags,
                    manager_flags=manager_flags,
                )
            except PlaneError as error:
                # Somebody took one of the ports between our choice and the program's start.
                if "address already in use" in str(error) and attempt < 2:
                    continue
                raise
            yield plane
            return


def _start(
    stack: ExitStack,
    home: Path,
    *,
    controllers: bool,
    autoscaler: bool,
    api_flags: tuple[str, ...],
    manager_flags: tuple[str, ...],
) -> Plane:
    home.mkdir(parents=True)
    client_port, peer_port, api_port = free_ports(3)
    url = f"https://127.0.0.1:{api_port}"
    etcd_url = f"http://127.0.0.1:{client_port}"
    authority = _write_keys(home)
    config = home / "kubeconfig"
    write_kubeconfig(config, kubeconfig(url, token=ADMIN_TOKEN, authority=authority.certificate))
    plane = Plane(url, config, authority, home)
    programs = Programs(stack, home)

    programs.start("etcd", _etcd_flags(home, etcd_url, f"http://127.0.0.1:{peer_port}"))
    programs.wait("etcd is healthy", lambda: _answers(f"{etcd_url}/health"))
    quiet = () if controllers else ("--disable-admission-plugins=ServiceAccount",)
    programs.start("kube-apiserver", (*_api_flags(home, etcd_url, api_port), *quiet, *api_flags))
    programs.wait("kube-apiserver is ready", lambda: _answers(f"{url}/readyz", plane))
    if controllers:
        flags = (*_controller_manager_flags(home, autoscaler=autoscaler), *manager_flags)
        programs.start("kube-controller-manager", flags)
        programs.start("kube-scheduler", _scheduler_flags(home))
        account = f"{url}/api/v1/namespaces/default/serviceaccounts/default"
        programs.wait("the controllers work", lambda: _answers(account, plane))
    return plane


class Programs:
    """Programs of one plane; the stack stops them in the reverse order of their start."""

    def __init__(self, stack: ExitStack, home: Path) -> None:
        self._stack = stack
        self._home = home
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, name: str, flags: tuple[str, ...], path: Path | None = None) -> None:
        """Start a program: the one at the path, or the one of that name that was built."""
        path = path or find(name)
        if path is None:
            raise PlaneError(f"{name} is not there: build it with `make control-plane`")
        # Dies with us even if we are killed; a session of its own leaves Ctrl-C to pytest, which
        # then ends its fixtures.
        setpriv = shutil.which("setpriv")
        with_us = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        log = self._stack.enter_context((self._home / f"{name}.log").open("wb"))
        run = subprocess.Popen(
            [*with_us, str(path), *flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=self._home,
            # Programs of Go collect garbage less often: memory is there, and processors are few.
            env={**os.environ, "GOGC": "400"},
            start_new_session=True,
        )
        self._stack.callback(_end, run)
        self._running.append((name, run))

    def wait(self, what: str, check) -> None:
        """Wait until the check holds. Raises PlaneError when a program ends or time is up."""
        deadline = time.monotonic() + _START_S
        while not check():
            for name, run in self._running:
                if run.poll() is not None:
                    raise PlaneError(f"{name} ended with {run.returncode}:\n{self._tail(name)}")
            if time.monotonic() > deadline:
                tails = "\n".join(f"{name}: {self._tail(name)}" for name, _ in self._running)
                raise PlaneError(f"waited {_START_S} s in vain until {what}:\n{tails}")
            time.sleep(0.05)

    def _tail(self, name: str) -> str:
        text = (self._home / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-15:])


def is_healthy(port: int) -> bool:
    """Return whether a program on this machine answers /healthz with 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _end(run: subprocess.Popen[bytes]) -> None:
    run.terminate()
    try:
        run.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait()


def _etcd_flags(home: Path, client: str, peer: str) -> tuple[str, ...]:
    return (
        f"--data-dir={home}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    )


def _api_flags(home: Path, etcd: str, port: int) -> tuple[str, ...]:
    return (
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",  # loopback cannot be an endpoint
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--tls-cert-file={home}/server.crt",
        f"--tls-private-key-file={home}/server.key",
        f"--client-ca-file={home}/ca.crt",
        f"--token-auth-file={home}/tokens.csv",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={home}/accounts.crt",
        f"--service-account-signing-key-file={home}/accounts.key",
        f"--requestheader-client-ca-file={home}/front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={home}/front-proxy.crt",
        f"--proxy-client-key-file={home}/front-proxy.key",
    )


def _controller_manager_flags(home: Path, *, autoscaler: bool) -> tuple[str, ...]:
    return (
        f"--kubeconfig={home}/kubeconfig",
        "--controllers=*" + ("" if autoscaler else ",-horizontal-pod-autoscaler-controller"),
        f"--root-ca-file={home}/ca.crt",
        f"--service-account-private-key-file={home}/accounts.key",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        # Nodes of tests have no kubelet that reports on time.
        "--node-monitor-grace-period=5m",
    )


def _scheduler_flags(home: Path) -> tuple[str, ...]:
    return (
        f"--kubeconfig={home}/kubeconfig",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    )


def _write_keys(home: Path) -> Authority:
    authority, front_proxy = Authority(), Authority()
    server = authority.server(["127.0.0.1", "localhost", "kubernetes.default.svc"])
    proxy = front_proxy.client("front-proxy-client")
    accounts = authority.server(["accounts"])  # what signs is its key; the certificate is how it is read
    for name, content in (
        ("ca.crt", authority.certificate),
        ("server.crt", server.certificate),
        ("server.key", server.key),
        ("accounts.crt", accounts.certificate),
        ("accounts.key", accounts.key),
        ("front-proxy-ca.crt", front_proxy.certificate),
        ("front-proxy.crt", proxy.certificate),
        ("front-proxy.key", proxy.key),
        ("tokens.csv", _TOKENS.encode()),
    ):
        (home / name).write_bytes(content)
        (home / name).chmod(0o600)
    return authority


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _answers(url: str, plane: Plane | None = None) -> bool:
    request = urllib.request.Request(url)
    context: ssl.SSLContext | None = None
    if plane is not None:
        context = plane.connection.tls()
        request.add_header("Authorization", f"Bearer {ADMIN_TOKEN}")
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
