"""The command lines of upstream's VPA programs, as configurations of a run of one loop.

Flags are read as Go reads them: one dash or two, ``_`` or ``-``, ``--name=value`` or ``--name value``, a switch by its
name alone. Source: vertical-pod-autoscaler 1.8.1, flags of the three binaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from kubetide.loop import Value, loop_entry
from kubetide.runtime.configuration.config import ConfigError, RunConfig, make_config
from kubetide.runtime.configuration.run_settings import is_setting
from kubetide.vertical.flag_tables import run_name


class Program(NamedTuple):
    """One of upstream's binaries.

    Attributes:
        loop: What does its work here.
        address: Where it serves metrics and health.
    """

    loop: str
    address: str


PROGRAMS: Final[Mapping[str, Program]] = {
    "vpa-recommender": Program("recommender", ":8942"),
    "vpa-updater": Program("updater", ":8943"),
    "vpa-admission-controller": Program("admission", ":8944"),
}

_SWITCHES: Final = frozenset(
    {
        "add-dir-header",
        "alsologtostderr",
        "leader-elect",
        "legacy-stderr-threshold-behavior",
        "logtostderr",
        "one-output",
        "profiling",
        "prometheus-insecure",
        "skip-headers",
        "skip-log-headers",
    }
)

_WITHOUT_EFFECT: Final = frozenset(
    {
        # klog's: what is said goes to standard error.
        "add-dir-header",
        "alsologtostderr",
        "alsologtostderrthreshold",
        "legacy-stderr-threshold-behavior",
        "log-backtrace-at",
        "log-dir",
        "log-file",
        "log-file-max-size",
        "logtostderr",
        "one-output",
        "skip-headers",
        "skip-log-headers",
        "stderrthreshold",
        "v",
        "vmodule",
        # Upstream warns of it and does nothing.
        "min-checkpoints",
        # Of Go programs.
        "profiling",
    }
)
"""Upstream's flags that change nothing here."""

_HISTORY: Final = MappingProxyType(
    {
        "password": "prometheus-password",
        "prometheus-address": "prometheus-url",
        "prometheus-bearer-token-file": "prometheus-token-file",
        "username": "prometheus-user",
    }
)
"""Settings of `kubetide run` by the names that upstream's recommender has for them."""

_BASIC_AUTH: Final = MappingProxyType(
    {"prometheus-user": "PROMETHEUS_USERNAME", "prometheus-password": "PROMETHEUS_PASSWORD"}
)
"""User and password of Prometheus, and the variables that hold them where no flag does; a token takes precedence."""
_TOKENS: Final = frozenset({"prometheus-bearer-token", "prometheus-token-file"})

_GATES: Final = "feature-gates"
_LOCK: Final = "leader-elect-resource-lock"
_LEASE_NAMESPACE: Final = "leader-elect-resource-namespace"

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}


def vpa_config(
    name: str, arguments: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})
) -> RunConfig:
    """Return the configuration of one of ``PROGRAMS`` for upstream's flags, and those of `kubetide run` beside them.

    It acts, as upstream's program does, and flags that are not given have upstream's defaults.

    Args:
        environment: Where user and password of Prometheus are looked for that no flag says.

    Raises: ConfigError.
    """
    program = PROGRAMS[name]
    entry = loop_entry(program.loop)
    values: dict[str, Value] = {
        "controllers": program.loop,
        "act": True,
        "leader-elect": False,
        "kube-api-qps": 50.0,
        "kube-api-burst": 100,
        "address": program.address,
    }
    if program.loop == "recommender":
        # Upstream's recommends also what an HPA scales on.
        values[run_name("leave-to-hpa")] = False
        values |= {flag: environment[name] for flag, name in _BASIC_AUTH.items() if environment.get(name)}
    for flag, value in _pairs(arguments, program.loop):
        setting = run_name(flag)
        if flag.startswith("leader-elect") and not entry.lease:
            raise ConfigError(f"--{flag}: {name} takes no Lease; all of its replicas answer")
        if flag == _LOCK:
            if value != "leases":
                raise ConfigError(f"--{flag}={value}: only leases is supported; leave the flag out")
        elif flag == _LEASE_NAMESPACE:
            values["namespace"] = value
        elif flag == "kube-api-burst":
            values[flag] = _whole(flag, str(value))
        elif program.loop == "recommender" and flag in _HISTORY:
            values[_HISTORY[flag]] = value
        elif setting in entry.flags.fields or is_setting(flag):
            values[setting if setting in entry.flags.fields else flag] = value
        elif flag not in _WITHOUT_EFFECT:
            raise ConfigError(f"--{flag}: {name} has no such flag; docs/vertical.md lists them")
    if not values.keys().isdisjoint(_TOKENS):
        values = {flag: value for flag, value in values.items() if flag not in _BASIC_AUTH}
    return make_config([("--", values)])


def _pairs(arguments: Sequence[str], loop: str) -> list[tuple[str, Value]]:
    """Return flags and values; of a flag that is given again the last holds, but gates add up. Raises: ConfigError."""
    entry = loop_entry(loop)
    found: dict[str, Value] = {}
    waiting = ""

    def take(name: str, value: str) -> None:
        before = found.get(name) if name == _GATES else None
        found[name] = f"{before},{value}" if before else value

    for argument in arguments:
        if waiting:
            take(waiting, argument)
            waiting = ""
            continue
        if not argument.startswith("-"):
            raise ConfigError(f"{argument!r} belongs to no flag; write --name=value")
        name, equals, value = argument.lstrip("-").partition("=")
        name = name.replace("_", "-")
        switch = name in _SWITCHES or name == "act" or entry.flags.is_switch(run_name(name))
        if switch:
            found[name] = _switch(name, value) if equals else True
        elif equals:
            take(name, value)
        else:
            waiting = name
    if waiting:
        raise ConfigError(f"--{waiting}: a value is missing; write --{waiting}=value")
    return list(found.items())


def _switch(flag: str, text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ConfigError(f"--{flag}: {text!r} cannot be read; it takes true or false")


def _whole(flag: str, text: str) -> int:
    """Read a number that upstream takes as a float and uses as a whole one."""
    try:
        return int(float(text))
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"--{flag}: {text!r} cannot be read; it takes a whole number") from error
