"""Which proxy the environment wants for a server.

Source: Go's golang.org/x/net/http/httpproxy, which client-go and the clouds' SDKs follow: HTTPS_PROXY and HTTP_PROXY by the
server's scheme, NO_PROXY for what is reached directly; the names in small letters too.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from kubetide.ports.errors import KubetideError

_PORTS = {"https": 443, "http": 80}


class ProxyError(KubetideError):
    """A proxy that cannot be used; the text names the variable and what it may hold."""


def proxy_for(url: str, environ: Mapping[str, str]) -> str:
    """Return the URL of the proxy to reach ``url`` by, empty for none.

    Raises: ProxyError for a proxy whose scheme is not http or https.
    """
    parts = urlsplit(url)
    name = f"{parts.scheme.upper()}_PROXY"
    proxy = _variable(environ, name)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    if not proxy or not _is_proxied(host, port, _variable(environ, "NO_PROXY")):
        return ""
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        scheme = proxy.partition("://")[0]
        raise ProxyError(f"{name}: scheme {scheme} is not supported: name a proxy by http:// or https://")
    return proxy


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.lower()) or ""


def _is_proxied(host: str, port: int, exceptions: str) -> bool:
    host = host.rstrip(".").lower()
    if host == "localhost":
        return False
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if address is not None and address.is_loopback:
        return False
    for said in exceptions.split(","):
        pattern = said.strip().lower()
        if pattern == "*":
            return False
        if not pattern:
            continue
        if address is not None and "/" in pattern:
            try:
                if address in ip_network(pattern, strict=False):
                    return False
            except ValueError:
                pass  # as upstream, what cannot be read excepts nothing
            continue
        name, only_port = _split_port(pattern)
        if only_port not in {None, port}:
            continue
        if address is not None:
            if _same_address(address.compressed, name):
                return False
        elif _is_domain(host, name):
            return False
    return True


def _split_port(pattern: str) -> tuple[str, int | None]:
    head, colon, tail = pattern.rpartition(":")
    if colon and tail.isdecimal() and (":" not in head or head.endswith("]")):
        return head.strip("[]"), int(tail)
    return pattern.strip("[]"), None


def _same_address(host: str, name: str) -> bool:
    try:
        return ip_address(name).compressed == host
    except ValueError:
        return False


def _is_domain(host: str, name: str) -> bool:
    """``y.com`` is the host and what lies below it, ``.y.com`` and ``*.y.com`` only what lies below it."""
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")
