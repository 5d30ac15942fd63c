"""The triggers of ScaledObjects: how one of each type is parsed, and why one is refused.

Source: KEDA 2.21, pkg/scalers: external_scaler, prometheus_scaler, cpu_memory_scaler, cron_scaler.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from kubetide.objects.scaled_objects import CRON, RESOURCES, SERVERS
from kubetide.objects.timetables import KedaTrigger
from kubetide.schedules.kinds.keda_cron import TriggerError, read_trigger, window_of
from kubetide.schedules.tables import Rule
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Instant

EXTERNAL, PROMETHEUS = SERVERS
_TYPES: Final = (*SERVERS, *RESOURCES, CRON)
_ADDRESSES: Final = {EXTERNAL: "scalerAddress", PROMETHEUS: "serverAddress"}
_OF_PROMETHEUS: Final = ("serverAddress", "query", "threshold", "activationThreshold", "ignoreNullValues")
LARGEST: Final = 2**63 / 1000
"""No metric reaches it: in thousandths it is no quantity any more."""
_TLS: Final = ("enableTLS", "unsafeSsl", "tlsCertFile", "tlsClientCert", "caCert")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)


class Trigger(msgspec.Struct, frozen=True):
    """A trigger with an external metric: its server is asked, or it is a window.

    Attributes:
        place: In the list of triggers; names of metrics begin with it.
        address: ``HOST:PORT`` of its server, a URL for Prometheus; empty for a window.
        average: Whether the target is a value a pod, and not one for all.
        window: Of a cron trigger.
    """

    place: int
    address: str
    metadata: dict[str, str]
    average: bool = True
    type: str = EXTERNAL
    window: Rule | None = None


class ResourceTrigger(msgspec.Struct, frozen=True):
    """A trigger of type cpu or memory: a metric of the HPA, and no more.

    Attributes:
        container: Empty for the whole pod.
        utilization: In per cent of the requests; None for an average.
        average: A quantity a pod; empty for a utilization.
    """

    resource: str
    container: str = ""
    utilization: int | None = None
    average: str = ""


class Triggers(NamedTuple):
    """The triggers of an object, and why some are refused."""

    external: tuple[Trigger, ...]
    resources: tuple[ResourceTrigger, ...]
    refused: tuple[str, ...]


def read_triggers(triggers: Iterable[KedaTrigger], created: Instant) -> Triggers:
    """Return the parsed triggers of an object that was created then; never raises."""
    external: list[Trigger] = []
    resources: list[ResourceTrigger] = []
    refused: list[str] = []
    for place, one in enumerate(triggers):
        if one.type in SERVERS:
            refused += _server_refusals(place, one)
            external.append(_of_server(place, one))
        elif one.type in RESOURCES:
            refused += _resource_refusals(place, one)
            resources.append(_of_resource(one))
        elif one.type == CRON:
            external += _of_window(place, one, created, refused)
        else:
            types = ", ".join(_TYPES[:-1])
            refused.append(
                f"triggers[{place}]: type {one.type!r}: only {types} and {_TYPES[-1]} are read here"
            )
    return Triggers(tuple(external), tuple(resources), tuple(refused))


def _metadata(one: KedaTrigger) -> dict[str, str]:
    return {name: str(value) for name, value in (one.metadata or {}).items()}


# ── triggers whose server is asked ──


def _of_server(place: int, one: KedaTrigger) -> Trigger:
    data = _metadata(one)
    return Trigger(place, data.get(_ADDRESSES[one.type], ""), data, one.metric_type != "Value", one.type)


def _server_refusals(place: int, one: KedaTrigger) -> Iterable[str]:
    at, data = f"triggers[{place}]", one.metadata or {}
    address = _ADDRESSES[one.type]
    if not data.get(address):
        yield f"{at}.metadata.{address}: is missing; write {'a URL' if one.type == PROMETHEUS else 'HOST:PORT'}"
    elif one.type == PROMETHEUS and not _is_url(str(data[address])):
        yield f"{at}.metadata.{address}: {data[address]!r} is no URL such as http://prometheus:9090"
    if one.type == PROMETHEUS:
        yield from _prometheus_refusals(at, data)
    yield from _metric_type_refusals(at, one)
    for name in _TLS:
        if str(data.get(name, "false")).lower() not in {"", "false"}:
            yield f"{at}.metadata.{name}: TLS is not spoken; leave it out"
    for name in data:
        if name.endswith("FromEnv"):
            yield f"{at}.metadata.{name}: environments of pods are not read; write the value"
    if one.authentication_ref:
        yield f"{at}.authenticationRef: is not read; leave it out"
    if one.use_cached_metrics:
        yield f"{at}.useCachedMetrics: is not read; leave it out"


def _is_url(text: str) -> bool:
    """Return whether requests can be sent there."""
    try:
        url = urlsplit(text)
        return url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:  # a port or an address that is none
        return False


def _metric_type_refusals(at: str, one: KedaTrigger) -> Iterable[str]:
    if one.metric_type not in {"", "AverageValue", "Value"}:
        yield f"{at}.metricType: {one.metric_type!r} is neither AverageValue nor Value"


def _prometheus_refusals(at: str, data: Mapping[str, Any]) -> Iterable[str]:
    for name in data:
        if name not in _OF_PROMETHEUS:
            yield f"{at}.metadata.{name}: is not read; leave it out"
    if not data.get("query"):
        yield f"{at}.metadata.query: is missing"
    for name, least, bound in (
        ("threshold", 0.001, " from 0.001 on"),
        ("activationThreshold", -math.inf, ""),
    ):
        text = str(data.get(name, "" if name == "threshold" else "0"))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (abs(number) < LARGEST and number >= least):
            yield f"{at}.metadata.{name}: {text!r} is no number{bound}"


# ── cpu and memory ──


def _of_resource(one: KedaTrigger) -> ResourceTrigger:
    data = _metadata(one)
    container, value = data.get("containerName", ""), data.get("value", "")
    if one.metric_type != "Utilization":
        return ResourceTrigger(one.type, container, average=value)
    return ResourceTrigger(one.type, container, _per_cent(value) or 0)


def _per_cent(text: str) -> int | None:
    """Return a whole number from 1 on that an HPA can have; None for anything else."""
    number = int(text) if _INTEGER.fullmatch(text) else 0
    return number if 1 <= number < 1 << 31 else None


def _resource_refusals(place: int, one: KedaTrigger) -> Iterable[str]:
    at, data = f"triggers[{place}]", _metadata(one)
    if "type" in data:
        yield f"{at}.metadata.type: is gone since KEDA 2.18; write metricType beside metadata"
    value = data.get("value", "")
    if one.metric_type == "Utilization":
        if _per_cent(value) is None:
            yield f"{at}.metadata.value: {value!r} is no per cent; write a whole number from 1 on"
    elif one.metric_type == "AverageValue":
        try:
            positive = Quantity.parse(value).sign() > 0
        except QuantityError:
            positive = False
        if not positive:
            yield f"{at}.metadata.value: {value!r} is no quantity above 0, such as 500m or 1Gi"
    else:
        yield f"{at}.metricType: {one.metric_type!r} is neither Utilization nor AverageValue"


# ── cron ──


def _of_window(place: int, one: KedaTrigger, created: Instant, refused: list[str]) -> Iterable[Trigger]:
    """Return the trigger of a window; none, and why, where there cannot be one."""
    at = f"triggers[{place}]"
    refused += _metric_type_refusals(at, one)
    try:
        rule = read_trigger(one.metadata or {}, one.metric_type if one.metric_type == "Value" else "", place)
    except TriggerError as error:
        refused.append(f"{at}: {error}")
        return ()
    problems = window_of(rule, created).problems
    refused += [f"{at}: {text}" for text in problems]
    if problems:
        return ()
    return (Trigger(place, "", _metadata(one), one.metric_type != "Value", CRON, rule),)
