"""The flags table: every flag reads, every field has one, and a bad value names flag and fix."""

from __future__ import annotations

import typing
from pathlib import Path

import msgspec
import pytest

from kubetide.horizontal.settings import FeatureGates
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.loop import FlagError, flag_names, loop_entries, parse_flags
from kubetide.nodes.settings import WITHOUT_FLAG
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.units.time import Duration, minutes, seconds

GATES = "feature-gates"
# Texts whose content has rules of its own.
SPECIAL = {
    "kubernetes-version": "1.37",
    "drain-priority-config": "0:60,1000:30",
    "cores-total": "1:2",
    "memory-total": "1:2",
    "expander": "most-pods,random",
    "consolidation-budgets": "nodes=3",
    "demand-sources": "pending,intents",
    "gpu-total": "tesla:0:1",
    "horizontal-pod-autoscaler-forecast": "strict",
    "horizontal-pod-autoscaler-forecaster": "calendar",
    "horizontal-pod-autoscaler-options": f"{__name__}:Twice",
    "scheduler-config-file": str(Path(__file__).with_name("data") / "scheduler.yaml"),
    "drain-rules": "kubetide.nodes.scale_down.drain_rules.builtin:terminal",
}


class Twice:
    """An option of an HPA."""

    def read(self, text):
        return int(text)

    def adjust(self, value, situation):
        return 2 * situation.desired


def other(name: str, kind: type, default: object) -> object:
    """A value for a flag that is not its default."""
    if name in SPECIAL:
        return SPECIAL[name]
    if kind is Duration:
        return "7m7s"
    if kind is bool:
        return not default
    if kind is str:
        return "another"
    if kind is float:
        return default + 0.25
    if kind is int:
        return default + 1
    return "one,two"


def changed(name: str, value: object) -> list[tuple[str, object]]:
    """The fields of both settings that differ from the defaults when a flag is given; one that both have counts once."""
    given, plain = parse_flags({name: value}), parse_flags({})
    return list(
        dict.fromkeys(
            (field, getattr(new, field))
            for new, old in zip(given.by_name.values(), plain.by_name.values(), strict=True)
            for field in new.__struct_fields__
            if getattr(new, field) != getattr(old, field)
        )
    )


PODS_AND_NODES = loop_entries(("horizontal", "nodes"))
VPA = loop_entries(("vertical",))
VPA_SPECIAL = {
    "container-recommendation-max-allowed-cpu": "2",
    "container-recommendation-max-allowed-memory": "2Gi",
    "history-length": "1w2d",
    "history-resolution": "1h30m",
    "max-allowed-cpu-boost": "3",
    "min-tls-version": "tls1_3",
    "update-windows": "Sat-Sun 01:00-05:00",
    "vpa-compatibility": "1.8.0",
    "vpa-feature-gates": "PerVPAConfig=true",
}
FIELDS = [
    (model, field.name, typing.get_type_hints(model)[field.name], field.default)
    for model in (HorizontalSettings, NodesSettings)
    for field in msgspec.structs.fields(model)
]
KINDS = {name: (kind, default) for _, name, kind, default in FIELDS}


def kind_of(flag: str) -> tuple[type, object]:
    field = flag.replace("-", "_").removeprefix("horizontal_pod_autoscaler_")
    return KINDS["concurrent_syncs" if field.startswith("concurrent_horizontal") else field]


@pytest.mark.parametrize("flag", sorted(set(flag_names(PODS_AND_NODES)) - {GATES}))
def test_every_flag_sets_one_field(flag):
    """A flag with another value than its default changes just one field, of one loop or of both."""
    kind, default = kind_of(flag)
    value = other(flag, kind, default)
    ((_, new),) = changed(flag, value)
    if kind is Duration:
        assert new == minutes(7) + seconds(7)
    elif typing.get_origin(kind) is tuple:
        assert new == tuple(value.split(","))
    else:
        assert new == value
    assert changed("--" + flag.replace("-", "_"), value) == changed(flag, value)
    if kind is bool:
        assert changed(flag, str(value)) == changed(flag, value)


@pytest.mark.parametrize("entry", VPA, ids=lambda entry: entry.name)
def test_every_flag_of_a_vpa_program_sets_one_field(entry):
    """A flag with another value than its default changes just its field, and every field has its flag."""
    hints, plain = typing.get_type_hints(entry.flags.model), entry.flags.parse({})
    for flag, field in entry.flags.fields.items():
        value = VPA_SPECIAL.get(flag) or other(flag, hints[field], getattr(plain, field))
        needed = {"external-metrics-cpu-metric": "cpu"} if flag == "use-external-metrics" else {}
        plain = entry.flags.parse(needed)
        given = entry.flags.parse({flag: value, **needed})
        changed_fields = {
            name for name in plain.__struct_fields__ if getattr(given, name) != getattr(plain, name)
        }
        assert changed_fields == {field}, flag
    without = {"address", "kube_api_qps", "kube_api_burst"} if entry.name != "recommender" else set()
    assert set(plain.__struct_fields__) == {*entry.flags.fields.values(), *without}


def test_numbers_that_upstream_takes_are_taken():
    """No limit is a negative rate, and memory after an OOM may be more than there was."""
    settings = parse_flags({"eviction-rate-limit": "-1", "oom-bump-up-ratio": "1.5"}, VPA)
    assert settings.by_name["updater"].eviction_rate_limit == -1
    assert settings.by_name["recommender"].oom_bump_up_ratio == 1.5


@pytest.mark.parametrize(
    ("flag", "text", "words"),
    [
        ("history-length", "8", "'8' is no duration of Prometheus"),
        ("history-length", "0s", "must be greater than 0"),
        ("history-resolution", "1.5h", "no duration of Prometheus"),
        ("history-resolution", "1m", "11520 points a series; Prometheus answers with 11000 at most"),
        ("use-external-metrics", "true", "needs external-metrics-cpu-metric or"),
    ],
)
def test_what_no_source_of_usage_can_do_is_named(flag, text, words):
    """The flag, what was seen, and what to do."""
    with pytest.raises(FlagError, match=words):
        parse_flags({flag: text})


def test_every_field_has_a_flag_or_is_said_by_something_else():
    """Some flag sets each field of both settings, except the fields that are listed as without one."""
    flags = [flag for flag in flag_names(PODS_AND_NODES) if flag != GATES]
    reached = {changed(flag, other(flag, *kind_of(flag)))[0][0] for flag in flags}
    reached.add(changed(GATES, "HPAScaleToZero=true")[0][0])
    assert reached == set(KINDS) - WITHOUT_FLAG
    assert set(KINDS) >= WITHOUT_FLAG


def test_a_cutoff_of_priorities_may_be_negative():
    """It is by default, as upstream's."""
    found = parse_flags({"expendable-pods-priority-cutoff": "-100"}).of(NodesSettings)
    assert found.expendable_pods_priority_cutoff == -100


def test_feature_gates_are_read_as_upstream_writes_them():
    """Every gate can be set; gates that are not named have their default."""
    gates = parse_flags({GATES: "HPAScaleToZero=true,PodLevelResources=false"}).of(HorizontalSettings).gates
    assert gates == FeatureGates(configurable_tolerance=True, scale_to_zero=True, pod_level_resources=False)
    gates = parse_flags({GATES: "HPAConfigurableTolerance=False"}).of(HorizontalSettings).gates
    assert not gates.configurable_tolerance


BAD = [
    ({"scan-intervall": "10s"}, "--scan-intervall: unknown flag; did you mean --scan-interval?"),
    ({"zzzzzzzz": 1}, "--zzzzzzzz: unknown flag; see docs/settings.md"),
    ({"scan-interval": "ten"}, "--scan-interval: 'ten' cannot be read; it takes a duration such as 10m"),
    ({"scan-interval": "0s"}, "--scan-interval=0s: give more than 0, such as 10s"),
    ({"scan-interval": "-1s"}, "--scan-interval: -1s is negative; give 0 or more"),
    ({"scale-down-unneeded-time": "-5m"}, "--scale-down-unneeded-time: -5m0s is negative; give 0 or more"),
    ({"max-nodes-total": -1}, "--max-nodes-total: -1 is negative; give 0 or more"),
    ({"scan-interval": 10}, "--scan-interval: 10 cannot be read; it takes a duration such as 10m"),
    ({"max-nodes-total": 10**30}, f"--max-nodes-total: {10**30} does not fit into 64 bits"),
    ({"max-nodes-total": "many"}, "--max-nodes-total: 'many' cannot be read; it takes a whole number"),
    ({"max-nodes-total": 1.5}, "--max-nodes-total: 1.5 cannot be read; it takes a whole number"),
    ({"scale-down-enabled": "yes"}, "--scale-down-enabled: 'yes' cannot be read; it takes true or false"),
    ({"horizontal-pod-autoscaler-tolerance": "a"}, "tolerance: 'a' cannot be read; it takes a number"),
    ({"cores-total": "9"}, "--cores-total=9: give <min>:<max>"),
    ({"memory-total": "9:1"}, "--memory-total=9:1: give <min>:<max>"),
    ({"expander": "cheapest"}, "--expander=cheapest: Expander cheapest not supported; there are "),
    ({"expander": "cheapest"}, "grpc, random; installed: none; one of your own is named as module:attribute"),
    (
        {"expander": "random,most-pods"},
        "--expander=random,most-pods: Expander most-pods came after an expander random",
    ),
    ({"demand-sources": "pending,wish"}, "--demand-sources: there is no source 'wish'; there are "),
    ({"concurrent-horizontal-pod-autoscaler-syncs": 0}, "syncs must be greater than 0, but got 0"),
    ({"horizontal-pod-autoscaler-sync-period": "0s"}, "sync-period must be greater than 0"),
    ({GATES: "Nonsense=true"}, "--feature-gates: unknown gate `Nonsense`; there are HPAConf"),
    ({GATES: "HPAScaleToZero=1"}, "write HPAScaleToZero=true or false"),
    ({"provider": "aws"}, "--provider: unknown flag"),
]


@pytest.mark.parametrize(("flags", "message"), BAD)
def test_a_bad_flag_is_reported(flags, message):
    """A flag that does not exist or cannot be read is named, with what it takes."""
    with pytest.raises(FlagError) as caught:
        parse_flags(flags)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("scale-down-utilization-threshold", 1.5, "from 0 to 1"),
        ("scale-down-gpu-utilization-threshold", -0.1, "from 0 to 1"),
        ("max-relist-loss", 2, "from 0 to 1"),
        ("max-total-unready-percentage", 101, "from 0 to 100"),
        ("horizontal-pod-autoscaler-tolerance", -0.1, "0 or more and finite"),
        ("horizontal-pod-autoscaler-tolerance", "nan", "0 or more and finite"),
        ("horizontal-pod-autoscaler-tolerance", "inf", "0 or more and finite"),
    ],
)
def test_a_number_out_of_its_range_is_refused(flag, value, words):
    """Shares lie between 0 and 1, percentages between 0 and 100, and no number is negative or infinite."""
    with pytest.raises(FlagError, match=f"--{flag}: .* must be {words}"):
        parse_flags({flag: value})
