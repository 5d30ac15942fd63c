"""Converts Cluster Autoscaler's command line to the configuration of a process that runs the node loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar, get_args

import msgspec

from kubetide.clouds.registry import is_shipped
from kubetide.cluster import is_protobuf_installed
from kubetide.loop import LoopSettings, loop_entry
from kubetide.objects.protobuf import MEDIA_TYPE
from kubetide.runtime.configuration.config import ConfigError, RunConfig, check_run
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.upstream.arguments import Arguments, parse_arguments
from kubetide.runtime.upstream.checks import problems_of
from kubetide.runtime.upstream.table import (
    ADVISE,
    NODES,
    RUN,
    Flag,
    Status,
    cluster_autoscaler_flags,
    own_flags,
)
from kubetide.units.time import format_duration

S = TypeVar("S", bound=msgspec.Struct)
_JSON: Final = "application/json"
_DEFAULT_QPS, _DEFAULT_BURST = 5.0, 10
_UNLIMITED: Final = 1_000_000
"""So many requests a second are no limit."""


class Understood(NamedTuple):
    """The meaning of a command line.

    Attributes:
        config: Of the process; None where only help is asked for.
        warnings: A sentence for what is accepted and does nothing.
        arguments: As they were read.
    """

    config: RunConfig | None
    warnings: tuple[str, ...]
    arguments: Arguments


def understand(arguments: Iterable[str], *, no_pod: str = "") -> Understood:
    """Return the meaning of Cluster Autoscaler's arguments.

    Args:
        arguments: Of the command line.
        no_pod: Why the process has no pod's account, so that a kubeconfig must be named, as upstream's; empty if it has one.

    Raises: ConfigError that names every flag that cannot be used, each with the fix.
    """
    flags = {**own_flags(), **cluster_autoscaler_flags()}
    found = parse_arguments(arguments, flags)
    if found.asks_for_help:
        return Understood(None, (), found)
    given = frozenset(found.values)
    values = {name: flag.held for name, flag in cluster_autoscaler_flags().items()} | found.values
    advise = bool(values.get(ADVISE, False))
    problems = [
        *found.problems,
        *problems_of(values, given, flags, advise=advise),
        *_refused(found, flags),
    ]
    if not values["kubeconfig"] and no_pod and not advise:
        problems.append(f"--kubeconfig: {no_pod}; name the file that says which cluster is to be scaled")
    nodes = _checked(lambda: _loop_settings(values, flags), problems)
    run = _checked(lambda: _run_settings(values, flags, advise=advise), problems)
    if nodes is None or run is None or problems:
        raise ConfigError(_told(problems))
    config = RunConfig(
        run,
        LoopSettings({NODES: nodes}),
        {name: str(values[name]) for name in values},
        {name: f"--{name}" for name in values},
        # Source: upstream's GetKubeConfig, which knows neither KUBECONFIG nor a user's folder.
        only_own_pod=not no_pod and not run.context,
        why_advice="nothing is written with --advise",
    )
    return Understood(config, tuple(_warnings(found, flags)), found)


def _checked(make: Callable[[], S], problems: list[str]) -> S | None:
    """Return the settings, None where their own checks refuse them; adds to the problems what is not among them yet."""
    try:
        return make()
    except (ConfigError, ValueError) as error:
        if _flag_in(str(error)) not in map(_flag_in, problems):
            problems.append(str(error))
        return None


def _flag_in(problem: str) -> str:
    """Return the flag that a sentence begins with, without dashes."""
    return re.split(r"[^\w-]", problem.lstrip("-"), maxsplit=1)[0]


def _told(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = "\n".join(f"  {problem}" for problem in problems)
    return f"{len(problems)} flags cannot be used:\n{lines}"


def _refused(found: Arguments, flags: Mapping[str, Flag]) -> Iterator[str]:
    for name, value in sorted(found.values.items()):
        flag = flags[name]
        if flag.status is Status.REFUSED and value != flag.held:
            yield f"--{name}: is not offered: {_plain(flag.note)}; leave it out"


def _warnings(found: Arguments, flags: Mapping[str, Flag]) -> Iterator[str]:
    idle = [name for name in found.values if flags[name].status is Status.NO_EFFECT]
    if idle:
        yield f"without effect, as in Cluster Autoscaler itself: {', '.join(f'--{name}' for name in sorted(idle))}"
    cloud = found.values.get("cloud-provider", flags["cloud-provider"].held)
    unread = [f"--{name}" for name in found.values if _is_unread(flags[name], found.values[name], cloud)]
    if unread:
        yield f"without effect with --cloud-provider={cloud}: {', '.join(sorted(unread))}"
    for name, value in sorted(found.values.items()):
        flag = flags[name]
        if flag.status is Status.WARNED and value != flag.held:
            yield f"--{name} is not offered and passed over: {_plain(flag.note)}"
    yield from _raised(found, flags)
    if found.stray:
        yield (
            f"belongs to no flag and is passed over, as by upstream: {' '.join(found.stray)}; a switch takes its value as "
            "--name=value"
        )
    if found.values.get("kube-api-content-type") == MEDIA_TYPE and not is_protobuf_installed():
        yield f"--kube-api-content-type={MEDIA_TYPE}: JSON is asked for; protobuf needs pip install 'protobuf>=7.34'"


def _is_unread(flag: Flag, value: Any, cloud: str) -> bool:
    """Return whether a shipped provider does not read a flag that is given; what another package reads is not known."""
    return bool(flag.clouds) and is_shipped(cloud) and cloud not in flag.clouds and value != flag.held


def _raised(found: Arguments, flags: Mapping[str, Flag]) -> Iterator[str]:
    """Yield what comes of a ``--max-startup-time`` that is shorter than the times that hold later."""
    given = found.values.get("max-startup-time")
    longest = max(found.values.get(name, flags[name].held) for name in ("max-inactivity", "max-failing-time"))
    if given is not None and given < longest:
        yield (
            f"--max-startup-time={format_duration(given)} is raised to {format_duration(longest)}, the longer one of "
            "--max-inactivity and --max-failing-time"
        )


def _plain(note: str) -> str:
    return note.replace("`", "")


def _loop_settings(values: Mapping[str, Any], flags: Mapping[str, Flag]) -> msgspec.Struct:
    """Return the settings of the node loop. Raises ValueError."""
    table = loop_entry(NODES).flags
    made: msgspec.Struct = table.model(
        **_converted(table.model, _fields(NODES, values, flags), table.readers)
    )
    table.check(made)
    return made


def _run_settings(values: Mapping[str, Any], flags: Mapping[str, Flag], *, advise: bool) -> RunSettings:
    """Return the settings of the process. Raises ConfigError, ValueError."""
    fields = {**_fields(RUN, values, flags), **_run(values, advise=advise)}
    run = RunSettings(**_converted(RunSettings, fields, {}))
    check_run(run)
    return run


def _fields(part: str, values: Mapping[str, Any], flags: Mapping[str, Flag]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in values.items():
        flag = flags[name]
        if flag.part == part:
            # `--ignore-taint` and `--startup-taint` are one list.
            fields[flag.field] = (*fields.get(flag.field, ()), *value) if flag.is_list else value
    return fields


def _run(values: Mapping[str, Any], *, advise: bool) -> dict[str, Any]:
    """Return the settings of the process that upstream says in words of its own."""
    qps, burst = values["kube-client-qps"], values["kube-client-burst"]
    protobuf = values["kube-api-content-type"] == MEDIA_TYPE and is_protobuf_installed()
    text_log = values.get("log-format") or ("json" if values["logging-format"] == "json" else "console")
    return {
        "controllers": (NODES,),
        "act": not advise,
        "kube_api_qps": float(_UNLIMITED) if qps < 0 else qps or _DEFAULT_QPS,
        "kube_api_burst": _UNLIMITED if qps < 0 else burst or _DEFAULT_BURST,
        "kube_api_content_type": MEDIA_TYPE if protobuf else _JSON,
        "log_format": text_log,
        "max_startup_time": max(
            values["max-startup-time"], values["max-inactivity"], values["max-failing-time"]
        ),
    }


def _converted(
    model: type[msgspec.Struct], fields: Mapping[str, Any], readers: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields as the types of a struct. Raises ValueError that names the flag."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(model):
        if field.name not in fields:
            continue
        name, value = field.name.replace("_", "-"), fields[field.name]
        if name in readers:
            found[field.name] = readers[name](",".join(value) if isinstance(value, tuple) else str(value))
            continue
        field_type = getattr(field.type, "__supertype__", field.type)
        try:
            found[field.name] = msgspec.convert(value, field_type)
        except msgspec.ValidationError as error:
            choices = get_args(field_type)
            takes = f"; give {' or '.join(map(str, choices))}" if choices else ""
            raise ValueError(f"--{name}={value}: cannot be used: {error}{takes}") from error
    return found
