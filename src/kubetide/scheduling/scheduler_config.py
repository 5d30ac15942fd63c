"""The scheduler's configuration file, parsed and checked as upstream does, for its effect on a simulation.

Simulations ask the filters alone, so scores, weights, backoffs and extenders change nothing. The filters here are those
of the default profile; a file that would add, drop or configure one is refused, and what it would change is named.

Source: KubeSchedulerConfiguration v1 (kube-scheduler v1.36); Cluster Autoscaler, --scheduler-config-file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from kubetide.objects.pod import NodeAffinity
from kubetide.objects.yaml_reading import YamlError, read_documents
from kubetide.scheduling.filters.registry import FILTERS

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"

_FILTERS: Final = tuple(one.name for one in FILTERS)
_BEFORE: Final = tuple(
    name for name in _FILTERS if name not in {"NodeUnschedulable", "NodeName", "TaintToleration"}
)
"""Those that prepare in preFilter what they ask in filter."""
_IN_TREE: Final = frozenset(
    {
        *_FILTERS,
        "DefaultBinder",
        "DefaultPreemption",
        "GangScheduling",
        "ImageLocality",
        "NodeResourcesBalancedAllocation",
        "PrioritySort",
        "SchedulingGates",
    }
)
_ALL: Final = "*"
_HOW: Final = "simulations ask the filters of the default profile"


class _Plugin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    weight: int = 0


class _PluginSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enabled: tuple[_Plugin, ...] = ()
    disabled: tuple[_Plugin, ...] = ()


class _Plugins(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pre_enqueue: _PluginSet = _PluginSet()
    queue_sort: _PluginSet = _PluginSet()
    pre_filter: _PluginSet = _PluginSet()
    filter: _PluginSet = _PluginSet()
    post_filter: _PluginSet = _PluginSet()
    pre_score: _PluginSet = _PluginSet()
    score: _PluginSet = _PluginSet()
    reserve: _PluginSet = _PluginSet()
    permit: _PluginSet = _PluginSet()
    pre_bind: _PluginSet = _PluginSet()
    bind: _PluginSet = _PluginSet()
    post_bind: _PluginSet = _PluginSet()
    multi_point: _PluginSet = _PluginSet()


class _Constraint(msgspec.Struct, frozen=True, rename="camel"):
    topology_key: str = ""
    when_unsatisfiable: str = ""


class _Arguments(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of all plugins' arguments that filters read."""

    added_affinity: NodeAffinity | None = None
    default_constraints: tuple[_Constraint, ...] = ()
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()


class _PluginConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    args: _Arguments = _Arguments()


class _Profile(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    scheduler_name: str = "default-scheduler"
    percentage_of_nodes_to_score: int | None = None
    plugins: _Plugins = _Plugins()
    plugin_config: tuple[_PluginConfig, ...] = ()


class _Configuration(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    profiles: tuple[_Profile, ...] = (_Profile(),)
    parallelism: int | None = None
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int | None = None
    pod_max_backoff_seconds: int | None = None
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    delay_cache_until_active: bool | None = None
    leader_election: dict[str, Any] = {}
    client_connection: dict[str, Any] = {}
    extenders: tuple[dict[str, Any], ...] = ()


def scheduler_config_problems(path: str) -> Iterator[str]:
    """Yield a sentence for every setting in the file that cannot be honoured; nothing for an empty path."""
    if not path:
        return
    try:
        documents = list(read_documents(Path(path).read_text(encoding="utf-8")))
        if len(documents) != 1:
            yield f"{path}: has {len(documents)} documents; give one {KIND}"
            return
        found = msgspec.convert(documents[0].value, _Configuration)
    except OSError as error:
        yield f"{path}: cannot be read ({error.strerror}); give the path of a {KIND}"
        return
    except (UnicodeDecodeError, YamlError, msgspec.ValidationError) as error:
        yield f"{path}: {error}; give a {KIND} of {API_VERSION}"
        return
    for problem in _problems(found):
        yield f"{path}: {problem}"


def _problems(found: _Configuration) -> Iterator[str]:
    if (found.api_version, found.kind) != (API_VERSION, KIND):
        yield f"is a {found.kind} of {found.api_version}; give a {KIND} of {API_VERSION}"
    if len(found.profiles) != 1:
        yield f"profiles: expected one scheduler profile only (found {len(found.profiles)} profiles)"
        return
    (profile,) = found.profiles
    yield from _plugin_problems(profile.plugins)
    for at, one in enumerate(profile.plugin_config):
        for field, why in _argument_problems(one):
            yield f"profiles[0].pluginConfig[{at}].args.{field}: {why}"


def _plugin_problems(plugins: _Plugins) -> Iterator[str]:
    for field in msgspec.structs.fields(plugins):
        given: _PluginSet = getattr(plugins, field.name)
        for one in given.enabled:
            if one.name not in _IN_TREE:
                yield (
                    f"profiles[0].plugins.{field.encode_name}.enabled: {one.name} is no plugin of kube-scheduler; "
                    "take it out, or add a filter of your own by --scheduler-plugins"
                )
    several = _left(_FILTERS, plugins.multi_point)
    for point, given, default in (
        ("filter", plugins.filter, _FILTERS),
        ("preFilter", plugins.pre_filter, _BEFORE),
    ):
        left = _left(several, given)
        for name in default:
            if name not in left:
                yield f"profiles[0].plugins: {name} is disabled at {point}; {_HOW}, so leave it enabled"


def _left(names: tuple[str, ...], given: _PluginSet) -> tuple[str, ...]:
    """Return those of ``names`` that are enabled once a plugin set has been applied."""
    enabled = [one.name for one in given.enabled]
    disabled = [one.name for one in given.disabled]
    enabled_defaults = () if _ALL in disabled else tuple(name for name in names if name not in disabled)
    return (*enabled_defaults, *enabled)


def _argument_problems(given: _PluginConfig) -> Iterator[tuple[str, str]]:
    args = given.args
    added = args.added_affinity
    required = None if added is None else added.required_during_scheduling_ignored_during_execution
    if given.name == "NodeAffinity" and required is not None:
        yield "addedAffinity", f"would keep pods off nodes; {_HOW}, so leave it out"
    if given.name == "NodeResourcesFit":
        if args.ignored_resources:
            yield "ignoredResources", f"{', '.join(args.ignored_resources)} would not be looked at; {_HOW}"
        if args.ignored_resource_groups:
            groups = ", ".join(args.ignored_resource_groups)
            yield "ignoredResourceGroups", f"resources of {groups} would not be looked at; {_HOW}"
    if given.name == "PodTopologySpread":
        hard = [
            one.topology_key for one in args.default_constraints if one.when_unsatisfiable == "DoNotSchedule"
        ]
        if hard:
            yield (
                "defaultConstraints",
                f"{', '.join(hard)} with DoNotSchedule would keep pods off nodes; {_HOW}, so use ScheduleAnyway or set the constraint in the pods",
            )
