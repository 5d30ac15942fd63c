"""``--cloud-config`` of externalgrpc: where the provider listens, and how it proves who it is.

Source: cluster-autoscaler (Aug 2026), externalgrpc provider: without ``cert`` the connection is plain text.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.objects.yaml_reading import YamlError, read_documents
from kubetide.units.time import Duration, TimeFormatError, parse_duration, seconds

_TIMEOUT: Final = seconds(5)
_FIELDS: Final = ("address", "key", "cert", "cacert", "grpc_timeout")


class Certificates(NamedTuple):
    """Our certificate and its key, and the authority of the provider's; PEM."""

    certificate: bytes
    key: bytes
    authority: bytes


class GrpcConfig(NamedTuple):
    """Where and how to connect; ``tls`` None for plain text."""

    address: str
    timeout: Duration = _TIMEOUT
    tls: Certificates | None = None


def grpc_config(text: str) -> GrpcConfig:
    """Return the configuration that YAML says, with the certificates it names. Raises CloudConfigError."""
    try:
        raw: Any = next((one.value for one in read_documents(text, last_key_wins=True)), {})
    except YamlError as error:
        raise CloudConfigError(f"cloud-config: can't parse YAML: {error}") from error
    if not isinstance(raw, Mapping):
        raise CloudConfigError("cloud-config: can't parse YAML: it must be a map with address: HOST:PORT")
    given = {str(key).lower(): value for key, value in raw.items()}
    held = {name: given.get(name) for name in _FIELDS}
    address = _text(held, "address")
    problem = _problem_of(address)
    if problem:
        raise CloudConfigError(f"cloud-config: failed to parse address: address {address}: {problem}")
    timeout = held["grpc_timeout"]
    if timeout is not None and not isinstance(timeout, str):
        raise CloudConfigError(
            f"cloud-config: can't parse YAML: grpc_timeout must be text, not {timeout!r}; put it in quotes"
        )
    try:
        wait = _TIMEOUT if timeout is None else parse_duration(timeout)
    except TimeFormatError as error:
        raise CloudConfigError(f"cloud-config: grpc_timeout: {error}; give a duration, such as 5s") from error
    certificate = _text(held, "cert")
    tls = certificates(certificate, _text(held, "key"), _text(held, "cacert")) if certificate else None
    return GrpcConfig(address, wait, tls)


def _problem_of(address: str) -> str:
    """Return why an address is no host and port, empty where it is. Source: Go, net.SplitHostPort."""
    host, colon, _ = address.rpartition(":")
    if not colon:
        return "missing port in address"
    opening = closing = address
    if address.startswith("["):
        inner, closed, rest = address[1:].partition("]")
        if not closed:
            return "missing ']' in address"
        if not rest.startswith(":"):
            return "missing port in address"
        if ":" in rest[1:]:
            return "too many colons in address"
        opening, closing = inner + rest, rest
    elif ":" in host:
        return "too many colons in address"
    if "[" in opening:
        return "unexpected '[' in address"
    return "unexpected ']' in address" if "]" in closing else ""


def _text(held: Mapping[str, Any], name: str) -> str:
    """Return a value as text: a number or a switch that stands where text should is read as it is written."""
    value = held[name]
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise CloudConfigError(
        f"cloud-config: can't parse YAML: {name} must be text, not {value!r}; put it in quotes"
    )


def certificates(certificate: str, key: str, authority: str) -> Certificates:
    """Return what the files of these paths hold. Raises CloudConfigError that names the file."""
    held = Certificates(_read("Cert", certificate), _read("Key", key), _read("CACert", authority))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, ValueError) as error:
        raise CloudConfigError(
            f"cloud-config: failed to parse cert key pair: {certificate} and {key}: {error}"
        ) from error
    try:
        context.load_verify_locations(cadata=held.authority.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise CloudConfigError(f"cloud-config: failed to parse ca: {authority}: {error}") from error
    return held


def _read(what: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CloudConfigError(
            f'cloud-config: could not open {what} configuration file "{path}": open {path}: {reason}'
        ) from error
