"""The start-up checks of Cluster Autoscaler's flags; all failures instead of the first.

Source: cluster-autoscaler core (Jul 2026), its main.go, client-go v1.36 (leader election).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubetide.clouds.group_flags import group_problems
from kubetide.clouds.labels.cloud import NAME as LABELS
from kubetide.clouds.registry import provider_names
from kubetide.nodes.expander import parse_expanders
from kubetide.ports.limits import LimitError, parse_gpu_limit, parse_min_max
from kubetide.runtime.endpoints import EndpointError, parse_address
from kubetide.runtime.upstream.table import Flag
from kubetide.scheduling.scheduler_config import scheduler_config_problems
from kubetide.units.names import dns1123_label_errors, dns1123_subdomain_errors
from kubetide.units.numbers import NumberError, parse_integer
from kubetide.units.time import format_duration, seconds

_BELOW_ZERO: Final = frozenset(
    {
        "expendable-pods-priority-cutoff",
        "kube-client-qps",
        "scale-down-non-empty-candidates-count",
        "scheduler-verbosity",
    }
)
"""Numbers that mean something below 0."""
_SHARES: Final = ("-threshold", "-ratio", "-loss")
_CONTENT_TYPES: Final = ("application/json", "application/vnd.kubernetes.protobuf")
_JITTER_IN_TENTHS: Final = 12
_LOG_FORMATS: Final = ("text", "json")
_CEILING: Final = (1 << 31) - 1


def problems_of(
    values: Mapping[str, Any], given: frozenset[str], flags: Mapping[str, Flag], *, advise: bool
) -> Iterator[str]:
    """Yield a sentence for each value, or pair of values, that prevents a start.

    Args:
        values: Of all flags, the defaults of those that are not given included.
        given: The names of the flags that are given.
        flags: The flags by name.
        advise: Whether the process writes nothing.
    """
    for name in sorted(given):
        if name not in _BELOW_ZERO:
            yield from _number(flags[name], values[name])
    if math.isnan(values["kube-client-qps"]):
        yield "--kube-client-qps=NaN: is no number; give 0 or more, or -1 for no limit"
    yield from _limits(values)
    yield from _choices(values)
    yield from _cloud(values, advise=advise)
    yield from _names(values)
    yield from _drains(values, flags)
    allowed, bypassed = values["allowed-scheduler-names"], values["bypassed-scheduler-names"]
    missing = [name for name in bypassed if allowed and name not in allowed]
    if missing:
        yield (
            f"--bypassed-scheduler-names: {', '.join(missing)} is not among --allowed-scheduler-names="
            f"{','.join(allowed)}; add it there"
        )
    for problem in scheduler_config_problems(values["scheduler-config-file"]):
        yield f"--scheduler-config-file: {problem}"
    if values["leader-elect"]:
        yield from _leases(values)


def _number(flag: Flag, value: Any) -> Iterator[str]:
    if flag.kind == "duration":
        if value < 0:
            yield f"--{flag.name}={format_duration(value)}: a negative duration; give 0s or more"
    elif flag.kind == "int":
        if value < 0:
            yield f"--{flag.name}={value}: a negative number; give 0 or more"
    elif flag.kind == "float64":
        most = (
            100.0 if flag.name.endswith("-percentage") else 1.0 if flag.name.endswith(_SHARES) else math.inf
        )
        if not 0 <= value <= most or math.isinf(value):
            takes = "a finite number, 0 or more" if math.isinf(most) else f"a number from 0 to {most:g}"
            yield f"--{flag.name}={value:g}: out of range; give {takes}"


def _limits(values: Mapping[str, Any]) -> Iterator[str]:
    for name in ("cores-total", "memory-total"):
        try:
            parse_min_max(values[name])
        except LimitError as error:
            yield f"--{name}={values[name]}: {error}; give <min>:<max> with 0 <= min <= max, such as 0:320"
    for text in values["gpu-total"]:
        try:
            parse_gpu_limit(text)
        except LimitError as error:
            yield f"--gpu-total={text}: {error}; give <type>:<min>:<max>, such as nvidia-tesla-t4:0:8"


def _choices(values: Mapping[str, Any]) -> Iterator[str]:
    if values["predicate-parallelism"] < 1:
        yield f"--predicate-parallelism={values['predicate-parallelism']}: invalid value; give 1 or more"
    if not values["enable-dynamic-resource-allocation"]:
        yield "--enable-dynamic-resource-allocation=false: upstream can no longer do without; leave it out"
    for name, choices in (
        ("estimator", ("binpacking",)),
        ("kube-api-content-type", _CONTENT_TYPES),
        ("logging-format", _LOG_FORMATS),
    ):
        if values[name] not in choices:
            yield f"--{name}={values[name]}: there is no such choice; give {' or '.join(choices)}"
    try:
        parse_expanders(values["expander"])
    except ValueError as error:
        yield str(error)
    if values["address"]:
        try:
            parse_address(values["address"])
        except EndpointError as error:
            yield f"--{error}"


def _cloud(values: Mapping[str, Any], *, advise: bool) -> Iterator[str]:
    cloud = values["cloud-provider"]
    if ":" not in cloud and cloud not in provider_names():
        yield (
            f"--cloud-provider={cloud}: this cloud is not built; there are {', '.join(provider_names())}. A provider that "
            "serves upstream's protocol is reached by externalgrpc, and one of your own is named as module:factory"
        )
    if cloud == LABELS and not advise:
        yield f"--cloud-provider={cloud}: only reads groups off the nodes; add --advise, or name the cloud that has the machines"
    yield from group_problems(cloud, values["nodes"], values["node-group-auto-discovery"])


def _names(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is no name of an object: nothing could be written, and no Lease be had."""
    namespace, status = values["namespace"], values["status-config-map-name"]
    if dns1123_label_errors(namespace):
        yield f"--namespace={namespace}: is no name of a namespace; give that of the Lease, such as kube-system"
    if values["write-status-configmap"] and dns1123_subdomain_errors(status):
        yield (
            f"--status-config-map-name={status}: is no name of a ConfigMap; give one such as cluster-autoscaler-status, "
            "or --write-status-configmap=false"
        )


def _drains(values: Mapping[str, Any], flags: Mapping[str, Flag]) -> Iterator[str]:
    text, other = values["drain-priority-config"], "max-graceful-termination-sec"
    if not text:
        return
    if values[other] != int(flags[other].default):
        yield "--drain-priority-config: cannot be used together with --max-graceful-termination-sec; leave one out"
    try:
        pairs = [part.split(":") for part in text.split(",")]
        fine = all(len(pair) == 2 and parse_integer(pair[0]) <= _CEILING for pair in pairs) and all(
            parse_integer(pair[1]) >= 0 for pair in pairs
        )
    except NumberError:
        fine = False
    if not fine:
        yield (
            f"--drain-priority-config={text}: cannot be read; give <priority>:<seconds>, with commas between several, "
            "such as 10000:20,1000:100,0:60"
        )


def _leases(values: Mapping[str, Any]) -> Iterator[str]:
    lock = values["leader-elect-resource-lock"]
    if lock != "leases":
        yield f"--leader-elect-resource-lock={lock}: upstream has removed this lock; give leases"
    if not values["leader-elect-resource-name"]:
        yield "--leader-elect-resource-name: is empty; give the name of the Lease, such as cluster-autoscaler"
    lease, renew, retry = (
        values[f"leader-elect-{one}"] for one in ("lease-duration", "renew-deadline", "retry-period")
    )
    if retry < 1:
        yield "--leader-elect-retry-period: must be greater than zero"
    if lease < seconds(1):
        yield "--leader-elect-lease-duration: must be at least 1s, as a Lease holds whole seconds"
    if lease <= renew:
        yield "--leader-elect-lease-duration: must be greater than --leader-elect-renew-deadline"
    if renew * 10 <= retry * _JITTER_IN_TENTHS:
        yield "--leader-elect-renew-deadline: must be greater than 1.2 times --leader-elect-retry-period"
