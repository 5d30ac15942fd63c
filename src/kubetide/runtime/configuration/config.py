"""The configuration of ``kubetide run``: one flat table of names, from a file, the environment and flags.

A setting has one name everywhere: ``--scan-interval=10s`` on the command line, ``scan-interval: 10s``
in the file, ``KUBETIDE_SCAN_INTERVAL=10s`` in the environment. Flags hold over the environment, and
the environment over the file. The loops' settings are upstream's flags (``kubetide.loop``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import yaml

from kubetide.clouds.group_flags import group_problems
from kubetide.clouds.labels.cloud import NAME as LABELS
from kubetide.cluster import is_protobuf_installed
from kubetide.loop import (
    BUILT_IN,
    SHIPPED,
    FlagError,
    LoopEntry,
    LoopSettings,
    UnknownLoop,
    Value,
    expand_groups,
    flag_names,
    is_list,
    is_switch,
    loop_entries,
    loop_names,
    parse_flags,
)
from kubetide.objects.protobuf import MEDIA_TYPE
from kubetide.ports.errors import KubetideError
from kubetide.runtime.configuration.run_settings import (
    OWN,
    REPEATED,
    SWITCHES,
    Bytes,
    RunSettings,
    setting_names,
)
from kubetide.runtime.notify.settings import check_notify
from kubetide.units.quantity import whole
from kubetide.units.time import Duration, parse_duration, seconds

_PREFIX = "KUBETIDE_"
_CONTROLLERS = "controllers"
_LEAST_SIZE = 1 << 20
_SLIP = 0.9
"""How much alike a name and a setting are, from 0 to 1, where one was meant for the other."""


class ConfigError(KubetideError):
    """An unknown or unreadable setting; the text names its place, its name, and the fix."""


class RunConfig(msgspec.Struct, frozen=True):
    """A complete configuration.

    Attributes:
        values: By name, as given.
        sources: The place of each value that is not a default.
        only_own_pod: Whether without a kubeconfig the cluster is that of the process's pod, whatever the environment names.
        why_advice: Why a run that only advises writes nothing: which setting of the command says so.
    """

    run: RunSettings
    loops: LoopSettings
    values: dict[str, Value]
    sources: dict[str, str]
    only_own_pod: bool = False
    why_advice: str = "nothing is written without --act"


def read_file(path: Path) -> dict[str, Value]:
    """Return the settings of a configuration file: a YAML mapping of names to values. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: is not YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(
            f"{path}: its top is no mapping; write one setting a line, such as scan-interval: 10s"
        )
    _refuse_twice(path, text)
    found: dict[str, Value] = {}
    for name, value in content.items():
        if isinstance(value, list):
            between = "\n" if isinstance(name, str) and name.replace("_", "-") in REPEATED else ","
            value = between.join(str(item) for item in value)  # noqa: PLW2901  a list is text with separators
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
            raise ConfigError(f"{path}: {name}: takes a text, a number, true or false, or a list of texts")
        found[name] = value
    return found


def _refuse_twice(path: Path, text: str) -> None:
    """Raise ConfigError for a setting that stands twice: YAML readers take the last one in silence."""
    lines: dict[str, int] = {}
    top = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, _ in top.value if top else ():
        name, line = str(key.value).replace("_", "-"), key.start_mark.line + 1
        if name in lines:
            raise ConfigError(f"{path} line {line}: {name} stands in line {lines[name]} already; keep one")
        lines[name] = line


def environment_values(environment: Mapping[str, str]) -> dict[str, Value]:
    """Return the settings in ``KUBETIDE_...`` variables.

    Variables of that prefix that name no setting are passed over, as others set such too: Kubernetes
    itself for a Service that is called kubetide. One that looks like a typo is kept, and so
    becomes an error.
    """
    names = setting_names()
    found: dict[str, Value] = {}
    for variable, value in sorted(environment.items()):
        name = variable.removeprefix(_PREFIX).lower().replace("_", "-")
        if variable.startswith(_PREFIX) and difflib.get_close_matches(name, names, n=1, cutoff=_SLIP):
            found[name] = value
    return found


def flag_values(arguments: Iterable[str]) -> dict[str, Value]:
    """Return the settings of ``--name=value``, ``--name value`` and, for booleans, ``--name``.

    A list that is given again grows, as upstream's; of any other flag the last one holds. Raises: ConfigError.
    """
    found: dict[str, Value] = {}

    def add(name: str, value: str) -> None:
        between = "\n" if name in REPEATED else ","
        found[name] = f"{found[name]}{between}{value}" if name in found and _is_list(name) else value

    waiting = ""
    for argument in arguments:
        if waiting:
            add(waiting, argument)
            waiting = ""
            continue
        if not argument.startswith("--"):
            raise ConfigError(f"{argument!r} belongs to no flag; write --name=value")
        name, equals, value = argument[2:].partition("=")
        name = name.replace("_", "-")
        if equals:
            add(name, value)
        elif name in SWITCHES or is_switch(name):
            found[name] = True
        else:
            waiting = name
    if waiting:
        raise ConfigError(f"--{waiting}: a value is missing; write --{waiting}=value")
    return found


def _is_list(name: str) -> bool:
    if name in OWN:
        fields = msgspec.structs.fields(RunSettings)
        return next(get_origin(field.type) is tuple for field in fields if field.name == OWN[name])
    return is_list(name)


def make_config(layers: Iterable[tuple[str, Mapping[str, Value]]]) -> RunConfig:
    """Return the configuration of layers of settings; later layers override earlier ones.

    Args:
        layers: The name of a source (``--``, a file's path, ``environment``), and its settings.

    Raises: ConfigError, which names the source.
    """
    layers = tuple(layers)
    entries = _entries(layers)
    own: dict[str, Any] = {}
    values: dict[str, Value] = {}
    flags: dict[str, Value] = {}
    sources: dict[str, str] = {}
    for source, settings in layers:
        for given, value in settings.items():
            name = given.replace("_", "-")
            where = _where(source, name)
            if name in OWN:
                own[OWN[name]] = _read(where, name, value)
            else:
                _check_flag(where, name, value, entries)
                flags[name] = value
            values[name], sources[name] = value, where
    try:
        loops = parse_flags(flags, entries)
    except FlagError as error:
        raise ConfigError(str(error)) from error
    run = RunSettings(**own)
    check_run(run)
    return RunConfig(run, loops, values, sources)


def _entries(layers: Iterable[tuple[str, Mapping[str, Value]]]) -> tuple[LoopEntry[Any], ...]:
    """Return the loops whose flags may be set: those of this package, and the others that ``controllers`` names."""
    named = [
        expand_groups(_names(settings[_CONTROLLERS])) for _, settings in layers if _CONTROLLERS in settings
    ]
    others = [name for name in (named[-1] if named else ()) if name not in BUILT_IN]
    try:
        return loop_entries((*BUILT_IN, *others))
    except UnknownLoop as error:
        raise ConfigError(f"controllers: {error}") from error


def _names(value: Value) -> tuple[str, ...]:
    return tuple(part.strip() for part in str(value).split(",") if part.strip())


def _where(source: str, name: str) -> str:
    if source == "--":
        return f"--{name}"
    if source == "environment":
        return _PREFIX + name.upper().replace("-", "_")
    return f"{source}: {name}"


def _check_flag(where: str, name: str, value: Value, entries: Sequence[LoopEntry[Any]]) -> None:
    if name not in flag_names(entries):
        owners = [one.name for one in loop_entries(SHIPPED) if name in one.flags.fields]
        if owners:
            raise ConfigError(f"{where}: belongs to the loop {' or '.join(owners)}; name it in controllers")
        near = difflib.get_close_matches(name, setting_names(), n=1)
        hint = f"did you mean {near[0]}?" if near else "see docs/settings.md for the settings there are"
        raise ConfigError(f"{where}: there is no such setting; {hint}")
    try:
        parse_flags({name: value}, entries)
    except FlagError as error:
        text = str(error)
        raise ConfigError(text if where.startswith("--") else f"{where}: {text}") from error


def _read(where: str, name: str, value: Value) -> Any:
    field_type = next(field.type for field in msgspec.structs.fields(RunSettings) if field.name == OWN[name])
    try:
        if field_type is Duration:
            return parse_duration(str(value))
        if field_type is Bytes:
            return Bytes(whole(str(value)))
        if name in REPEATED:
            return tuple(line.strip() for line in str(value).splitlines() if line.strip())
        if get_origin(field_type) is tuple:
            return expand_groups(_names(value)) if name == _CONTROLLERS else _names(value)
        if field_type is bool and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        return msgspec.convert(str(value) if field_type is str else value, field_type, strict=False)
    except (ValueError, KeyError, msgspec.ValidationError) as error:
        words = {
            Duration: "a duration such as 15s",
            Bytes: "a size such as 512Mi",
            bool: "true or false",
            int: "a whole number",
            float: "a number",
        }
        takes = words.get(field_type, " or ".join(get_args(field_type)) or "a text")
        raise ConfigError(f"{where}: {value!r} cannot be read; it takes {takes}") from error


def _check_cloud(run: RunSettings) -> None:
    scaling = [entry.name for entry in loop_entries(run.controllers) if entry.needs_cloud]
    if scaling and not run.cloud_provider:
        raise ConfigError(
            f"controllers: {scaling[0]} needs node groups to scale: set cloud-provider; `labels` reads them off the nodes of any "
            "cluster, for advice"
        )
    if run.catalog and not run.cloud_provider:
        raise ConfigError("catalog is for the node groups of a cloud: set cloud-provider, or leave it out")
    if run.cloud_provider != LABELS:
        if run.node_group_label:
            raise ConfigError("node-group-label is for cloud-provider=labels; another provider has its own")
    elif run.act and scaling:
        raise ConfigError(
            "cloud-provider: labels is read only: leave act out for advice on nodes, or nodes out of controllers to act "
            "on pods"
        )


def _check_election(run: RunSettings) -> None:
    if (
        not run.leader_elect_retry_period * 6 // 5
        < run.leader_elect_renew_deadline
        < run.leader_elect_lease_duration
    ):
        raise ConfigError(
            "leader-elect-lease-duration must be greater than leader-elect-renew-deadline, and that greater than "
            "1.2 times leader-elect-retry-period"
        )
    if run.leader_elect_lease_duration < seconds(1):
        raise ConfigError("leader-elect-lease-duration must be at least 1s, as a Lease holds whole seconds")


def check_run(run: RunSettings) -> None:
    """Raise ConfigError for settings that contradict each other."""
    if not run.controllers:
        raise ConfigError(f"controllers: names none; there are {', '.join(loop_names())}")
    _check_cloud(run)
    if run.leader_elect:
        _check_election(run)
    if problem := check_notify(run.notify_url, run.notify_reasons, run.controllers):
        raise ConfigError(problem)
    leases = {entry.lease for entry in loop_entries(run.controllers)}
    if run.leader_elect_resource_name and len(leases) > 1:
        raise ConfigError(
            "leader-elect-resource-name: names one Lease, and these controllers take several: "
            f"{', '.join(sorted(leases))}; leave it out, or run one controller"
        )
    if min(run.max_answer_size, run.max_records_size) < _LEAST_SIZE or run.max_list_objects < 1:
        raise ConfigError(
            "max-answer-size and max-records-size must be at least 1Mi, and max-list-objects at least 1"
        )
    if min(run.max_inactivity, run.max_failing_time, run.max_startup_time) <= 0:
        raise ConfigError("max-inactivity, max-failing-time and max-startup-time must be greater than 0")
    if run.kube_api_qps <= 0 or run.kube_api_burst < 1:
        raise ConfigError("kube-api-qps must be greater than 0 and kube-api-burst at least 1")
    if run.kube_api_content_type == MEDIA_TYPE and not is_protobuf_installed():
        raise ConfigError(f"kube-api-content-type: {MEDIA_TYPE} needs: pip install 'protobuf>=7.34'")
    wrong = list(group_problems(run.cloud_provider, run.nodes, run.node_group_auto_discovery))
    if wrong:
        raise ConfigError("; ".join(wrong))
