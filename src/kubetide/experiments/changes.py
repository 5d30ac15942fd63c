"""Changes of a scenario, as they are written on a command line: ``--set NAME=VALUE`` and ``--patch FILE``.

``NAME`` is one of

- a field of the scenario (``scheduler``, ``duration``) or a flag of its loops (``expander``);
- ``group/NAME.FIELD``, ``service/NAME.FIELD`` or ``type/NAME.FIELD``: a node group, a service, an instance type;
- ``KIND/[NAMESPACE/]NAME.FIELD``: an object of the manifests, the kind in any of kubectl's spellings.

``VALUE`` is YAML. The changed scenario is checked as any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kubetide.clouds.catalog import CatalogError
from kubetide.experiments.objects import Objects
from kubetide.experiments.paths import PathError, nearest, set_at, split_name
from kubetide.loop import expand_groups, flag_names, loop_entries
from kubetide.objects.nulls import without_nulls
from kubetide.objects.yaml_reading import Document, YamlError, read_documents
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.catalog import catalog_types, with_catalog_types
from kubetide.simulate.scenarios.machines import shipped_types
from kubetide.simulate.scenarios.rules import check_scenario
from kubetide.simulate.scenarios.scenario import Scenario, ScenarioError
from kubetide.simulate.scenarios.structure import structure_problems

_PARTS: Final = {"group": "nodeGroups", "service": "services", "type": "instanceTypes"}
_NEVER_SET: Final = ("manifests", "nodeGroups", "services", "instanceTypes", "flags", "name", "show")
"""Fields of a scenario that are changed by their members, or that change nothing."""

TIMES: Final = ("start", "duration")
"""Fields that say which time is played: runs that differ in them cannot be compared."""


def named_in(text: str) -> str:
    """Return what ``NAME=VALUE`` changes."""
    return text.partition("=")[0].strip()


def with_changes(path: Path, scenario: Scenario, *, sets: Sequence[str], patches: Sequence[Path]) -> Scenario:
    """Return the scenario with the patches applied, and then the settings, each in its order.

    Args:
        path: The scenario's file; what it names lies beside it.
        sets: ``NAME=VALUE`` each; the module says what a name can be.
        patches: Files of YAML objects: a strategic merge patch of the object of that kind and name, or a new object.
    Raises: ScenarioError naming the change and what would be right.
    """
    value = without_nulls(msgspec.json.decode(msgspec.json.encode(scenario)))
    objects = Objects(manifests_of(scenario, path.parent))
    for file in patches:
        objects.patch(file)
    for text in sets:
        _set(value, objects, text)
    _forget_catalog(value, path, scenario)
    if objects.changed:
        value["manifests"] = objects.texts()
    return _checked(path, value)


def _forget_catalog(value: dict[str, Any], path: Path, scenario: Scenario) -> None:
    """Take away what the catalogue says: it may be another one now, and groups may use other types of it."""
    types = value["instanceTypes"]
    for name, spec in catalog_types(path.parent, scenario).items():
        if types.get(name) == without_nulls(msgspec.to_builtins(spec)):
            del types[name]


def _set(value: dict[str, Any], objects: Objects, text: str) -> None:
    name, equals, written = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise ScenarioError(f"--set {text}: write it as NAME=VALUE, such as expander=least-cost")
    new = _read_value(text, written)
    part, slash, rest = name.partition("/")
    try:
        if not slash:
            _set_own(value, name, new)
        elif part in _PARTS:
            _set_part(value, part, rest, new)
        else:
            objects.set(part, rest, new)
    except PathError as error:
        raise ScenarioError(f"--set {text}: {error}") from error


def _read_value(text: str, written: str) -> Any:
    try:
        documents = list(read_documents(written))
    except YamlError as error:
        raise ScenarioError(f"--set {text}: the value is not YAML: {error.detail}") from error
    if len(documents) > 1:
        raise ScenarioError(f"--set {text}: the value is more than one YAML document")
    return documents[0].value if documents else None


def _set_own(value: dict[str, Any], name: str, new: Any) -> None:
    """Set a field of the scenario, or else a flag of its loops."""
    field = re.split(r"[.\[]", name, maxsplit=1)[0]
    fields = [
        one.encode_name for one in msgspec.structs.fields(Scenario) if one.encode_name not in _NEVER_SET
    ]
    if field in fields:
        set_at(value, name, new)
        return
    flags = flag_names(loop_entries(expand_groups(value["loops"])))
    flag = name.removeprefix("--").replace("_", "-")
    if flag not in flags:
        raise PathError(
            f"`{name}` is neither a flag of the loops {', '.join(value['loops'])} nor a field of a scenario; "
            + nearest(flag, [*flags, *fields])
        )
    value["flags"] = {one: given for one, given in value["flags"].items() if _flag_name(one) != flag}
    if new is not None:
        value["flags"][flag] = new


def _flag_name(written: str) -> str:
    return written.removeprefix("--").replace("_", "-")


def _set_part(value: dict[str, Any], part: str, rest: str, new: Any) -> None:
    there = value[_PARTS[part]]
    named = {**_shipped(), **there} if isinstance(there, dict) else {_title(one): one for one in there}
    name, field = split_name(rest, named, part)
    if field == "name" or not field:
        raise PathError(f"name the field of {part} {name} to set, such as {part}/{name}.{_example(part)}")
    set_at(named[name], field, new)
    if isinstance(there, dict):
        there[name] = named[name]  # a shipped type becomes one of the scenario's own


def _shipped() -> dict[str, Any]:
    found: dict[str, Any] = without_nulls(msgspec.to_builtins(shipped_types()))
    return found


def _example(part: str) -> str:
    return {"group": "max", "service": "load.multiplier", "type": "pricePerHour"}[part]


def _title(one: dict[str, Any]) -> str:
    return str(one.get("name") or one.get("deployment"))


def _checked(path: Path, value: dict[str, Any]) -> Scenario:
    found = structure_problems(value)
    if found:
        raise ScenarioError(
            "\n".join(f"{path}: {shown or 'the top level'}: {text}" for _, shown, text in found)
        )
    try:
        scenario = msgspec.convert(value, Scenario, strict=True)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{path}: {error}") from error
    try:
        scenario = with_catalog_types(path.parent, scenario)
    except CatalogError as error:
        raise ScenarioError(f"{path}: catalog: {error}") from error
    check_scenario(path, Document(1, 1, value), scenario)
    return scenario
