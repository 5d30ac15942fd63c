"""The page of settings is what the flags are."""

from __future__ import annotations

import re
import typing

import pytest
from tests.docs.tables import DOCS, rows, section

from kubetide.horizontal.settings import FeatureGates
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.loop import FlagError, flag_names, loop_entry, parse_flags
from kubetide.nodes.expander.registry import EXPANDERS, RANDOM
from kubetide.nodes.settings import WITHOUT_FLAG
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.runtime.configuration.run_settings import is_setting
from kubetide.units.time import Duration, format_duration

PAGE = (DOCS / "settings.md").read_text(encoding="utf-8")
_NOT_IN_USE = rows(section(PAGE, "## Upstream's flags that are not in use yet"))
FLAGS_NOT_IN_USE = [flag for row in _NOT_IN_USE for flag in re.findall(r"`--([a-z-]+)`", row[1])]
PODS = "concurrent-horizontal-pod-autoscaler-syncs", "horizontal-pod-autoscaler-"
UPSTREAM_FLAGS = 136
GATES = "feature-gates"
VERTICAL = ("recommender", "updater", "admission")
VERTICAL_GATES = "vpa-feature-gates"
TYPES = {bool: "bool", int: "int", float: "float64", str: "string", Duration: "duration"}


def documented():
    """Return type and default by flag, as the page says."""
    found = {}
    for row in rows(PAGE):
        if row[0].startswith("`--") and len(row) == 4:
            name = row[0].strip("`").removeprefix("--")
            assert name not in found, f"--{name} is listed twice"
            found[name] = row[1], row[2].strip("`"), row[3]
    return found


def printed(value, kind):
    """Return a default as upstream's help prints it."""
    if kind is Duration:
        return format_duration(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{','.join(value)}]"
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value) or '""'


def flags_of(model, name_of):
    hints = typing.get_type_hints(model)
    defaults = model()
    return {
        name_of(field): (
            "list" if typing.get_origin(hints[field]) is tuple else TYPES[hints[field]],
            printed(getattr(defaults, field), hints[field]),
        )
        for field in model.__struct_fields__
        if hints[field] is not FeatureGates and not (model is NodesSettings and field in WITHOUT_FLAG)
    }


def flags_of_entry(entry):
    """Return type and default of the flags that a table of an entry has."""
    model = entry.flags.model
    hints, defaults = typing.get_type_hints(model), model()
    return {
        flag: (
            "list" if typing.get_origin(hints[field]) is tuple else TYPES[hints[field]],
            printed(getattr(defaults, field), hints[field]),
        )
        for flag, field in entry.flags.fields.items()
        if flag != VERTICAL_GATES
    }


def horizontal_flag(field):
    dashed = field.replace("_", "-")
    if field in NodesSettings.__struct_fields__:
        return dashed  # of both loops
    return PODS[0] if dashed == "concurrent-syncs" else PODS[1] + dashed


def test_flags_types_and_defaults_are_those_of_the_settings():
    """The page lists every flag there is, with its type and its default, and says what it means."""
    expected = flags_of(HorizontalSettings, horizontal_flag)
    expected |= flags_of(NodesSettings, lambda field: field.replace("_", "-"))
    for name in VERTICAL:
        expected |= flags_of_entry(loop_entry(name))
    page = documented()
    assert {name: row[:2] for name, row in page.items()} == expected
    assert all(row[2] for row in page.values())


def test_every_listed_flag_can_be_given():
    """Each flag of the page, given its default as the page prints it, leaves the settings as they are."""
    assert set(flag_names()) == {*documented(), GATES, VERTICAL_GATES}
    given = {name: default.strip("[]").replace('""', "") for name, (_, default, _) in documented().items()}
    assert parse_flags(given) == parse_flags({})


def test_flags_are_in_order():
    """Within each table the flags are in order of name."""
    for table in re.split(r"\n\n", PAGE):
        names = [row[0].strip("`") for row in rows(table) if row[0].startswith("`--")]
        assert names == sorted(names)


def test_feature_gates_are_those_of_the_settings():
    """The page's gates are all that there are, with their defaults."""
    gates = [(row[0].strip("`"), row[1].strip("`")) for row in rows(PAGE) if re.match(r"`[A-Z]", row[0])]
    assert len(gates) == len(FeatureGates.__struct_fields__)
    flipped = {"true": "false", "false": "true"}
    for name, default in gates:
        assert _gates_of({GATES: f"{name}={default}"}) == _gates_of({})
        assert _gates_of({GATES: f"{name}={flipped[default]}"}) != _gates_of({})


def _gates_of(flags):
    settings = parse_flags(flags).of(HorizontalSettings)
    return settings.has_own_tolerances, settings.scales_from_zero, settings.gates.pod_level_resources


@pytest.mark.parametrize("name", FLAGS_NOT_IN_USE)
def test_flags_that_are_not_in_use_are_refused(name):
    """A flag that the page lists as not in use is unknown, and said to be."""
    with pytest.raises(FlagError, match=f"--{name}: unknown flag"):
        parse_flags({name: "1"})


def test_the_flags_of_a_loop_are_no_settings_of_the_process():
    """No flag of a VPA program has the name of a setting of `kubetide run`, and flags that loops share mean one thing."""
    fields = {}
    for name in ("horizontal", "nodes", *VERTICAL):
        table = loop_entry(name).flags
        hints = typing.get_type_hints(table.model)
        for flag, field in table.fields.items():
            assert not is_setting(flag), flag
            fields.setdefault(flag, set()).add((field, hints[field]))
    assert {flag for flag, found in fields.items() if len(found) > 1} == {VERTICAL_GATES}


def test_upstream_has_so_many_flags():
    """All flags of Cluster Autoscaler (leader election and logging apart) are accounted for: in use or not."""
    ours = set(rows_of_own())
    of_vpa = {name for loop in VERTICAL for name in loop_entry(loop).flags.fields}
    in_use = {name for name in documented() if not name.startswith(PODS)} - ours - of_vpa
    not_in_use = set(FLAGS_NOT_IN_USE)
    assert not in_use & not_in_use
    assert len(in_use) + len(not_in_use) == UPSTREAM_FLAGS


def rows_of_own():
    own = section(PAGE, "## Kubetide's own")
    return [row[0].strip("`").removeprefix("--") for row in rows(own)]


def test_the_expanders_are_all_named():
    """The line of --expander names every expander that there is."""
    for name in (*EXPANDERS, RANDOM):
        assert f"`{name}`" in documented()["expander"][2]
