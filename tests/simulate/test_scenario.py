"""Scenario files: each mistake is reported with file, line, field and fix, and all at once."""

from __future__ import annotations

import pytest
from tests.simulate.scenario_files import DEPLOYMENT, GOOD, REMOVED, refused, written

from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.scenarios.build import services_of
from kubetide.simulate.scenarios.scenario import (
    ScenarioError,
    load_scenario,
    parse_range,
    parse_time_of_day,
    start_of,
)
from kubetide.simulate.world import World
from kubetide.units.time import Instant, parse_duration, seconds


def test_series_of_an_external_metric_are_reported_apart(tmp_path):
    """Two series of a metric with the same labels and namespace are an error, with other labels they are not."""
    one = GOOD["externalMetrics"][0]
    (line,) = refused(written(tmp_path, {"externalMetrics": [one, one]}))
    assert "externalMetrics[1] (queue_messages_ready): stands twice" in line
    others = [one, {**one, "labels": {"queue": "b"}}, {**one, "namespace": "shop"}]
    assert len(load_scenario(written(tmp_path, {"externalMetrics": others})).external_metrics) == 3


def test_external_metrics_come_from_their_loads(tmp_path):
    """In a run each series has the values of its own load, with noise of its own."""
    daily = {"low": 100, "peak": 100}
    series = [
        {"metric": "waiting", "labels": {"queue": name}, "load": {"daily": daily, "multiplier": factor}}
        for name, factor in (("a", 1), ("b", 1), ("c", 10))
    ]
    scenario = load_scenario(written(tmp_path, {"externalMetrics": series}))

    async def run(clock):
        end = Instant(clock.now() + parse_duration("10m"))
        world = World(scenario, clock, base=tmp_path, end=end, seed=1, recorder=NullRecorder())
        await clock.sleep(seconds(30))
        found = await world.external_metrics.external_values("waiting", namespace="anywhere")
        return list(found.milli), found.timestamp_ns - world.start

    values, since = run_virtual(run, start=start_of(scenario))
    assert since == seconds(30)
    assert len(set(values)) == 3
    assert values == pytest.approx([100_000, 100_000, 1_000_000], rel=0.3)


def test_the_good_one_is_read(tmp_path):
    """The scenario that the mistakes below are made in has none."""
    assert load_scenario(written(tmp_path, {})).node_groups[1].min == 0


FORM = [
    ("durration", "1h", "the top level", "did you mean `duration`?"),
    ("nodeGroups/0/maximum", 3, "nodeGroups[0]", "unknown field `maximum`"),
    ("nodeGroups/0/taints/0/efect", "x", "nodeGroups[0].taints[0]", "did you mean `effect`?"),
    ("instanceTypes/big/memry", "1Gi", "instanceTypes[big]", "did you mean `memory`?"),
    ("pods/imagepull", "2s", "pods", "did you mean `imagePull`?"),
    ("services/0/cpu_seconds_per_request", 1, "services[0]", "did you mean `cpuSecondsPerRequest`?"),
    ("services/0/load/tracee", "a", "services[0].load", "did you mean `trace`?"),
    ("services/0/load/daily/hi", 3, "services[0].load.daily", "there are low, peak"),
    ("services/0/load/daily/burst/heigth", 3, "services[0].load.daily.burst", "did you mean `height`?"),
    ("externalMetrics/0/label", {}, "externalMetrics[0]", "did you mean `labels`?"),
    ("externalMetrics/0/load", REMOVED, "externalMetrics[0]", "`load` is missing; add it"),
    ("faults/0/from", "1m", "faults[0]", "unknown field `from`"),
    ("show/sped", 3, "show", "did you mean `speed`?"),
    ("name", REMOVED, "the top level", "`name` is missing; add it"),
    ("nodeGroups/1/max", REMOVED, "nodeGroups[1]", "`max` is missing; add it"),
    ("duration", 24, "duration", "24 is a whole number; it takes text: a duration or quantity with its unit"),
    ("name", 5, "name", "5 is a whole number; it takes text: put it in quotes"),
    ("nodeGroups/0/max", "3", "nodeGroups[0].max", "'3' is text; it takes a whole number without"),
    ("nodeGroups/0/max", 3.5, "nodeGroups[0].max", "3.5 is a number; it takes a whole number"),
    ("nodeGroups/0/max", True, "nodeGroups[0].max", "True is true or false; it takes a whole number"),
    ("instanceTypes/big/memory", 16, "instanceTypes[big].memory", "16 is a whole number; it takes text"),
    ("services/0/load", "daily", "services[0].load", "'daily' is text; it takes a mapping of trace, unit"),
    ("nodeGroups", {"a": 1}, "nodeGroups", "is a mapping; it takes a list"),
    ("manifests", "a.yaml", "manifests", "it takes a list"),
    ("instanceTypes", ["big"], "instanceTypes", "is a list; it takes a mapping"),
    ("flags/v", [1], "flags[v]", "is a list; it takes text or a whole number"),
    ("services/0/load/window", ["a"], "services[0].load.window", "it takes a list of 2"),
]


@pytest.mark.parametrize(("path", "value", "field", "fix"), FORM)
def test_a_wrong_form_is_reported(tmp_path, path, value, field, fix):
    """A typo, a missing field or a wrong type gives one line with file, line, field and fix."""
    (line,) = refused(written(tmp_path, {path: value}))
    assert line.startswith(f"{tmp_path}/scenario.yaml line ")
    assert f": {field}: " in line
    assert fix in line


HOSTNAME = "nodeGroups[1] (two).labels[kubernetes.io/hostname]"
CONTENT = [
    ("name", " ", "name", "give the scenario a name"),
    ("start", "tomorrow", "start", "RFC 3339"),
    ("start", "0001-01-01T00:00:00Z", "start", "is before 1970"),
    ("start", "2262-04-11T00:00:00Z", "start", "after 2149"),
    ("duration", "900000h", "duration", "more than a century"),
    ("duration", "ten", "duration", "'ten' is not a duration such as 10s or 1h30m"),
    ("duration", "0s", "duration", "greater than 0"),
    ("step", "0s", "step", "greater than 0"),
    ("step", "1us", "step", "steps of 10m, and a run has at most 50000000; raise it"),
    ("warmUp", "-1m", "warmUp", "0 or more"),
    ("pods/ready", "8s-2s", "pods.ready", "smaller duration first"),
    ("pods/ready", "soon", "pods.ready", "a range such as 2s-8s"),
    ("instanceTypes/big/cpu", "four", "instanceTypes[big].cpu", "not a quantity such as 500m"),
    ("instanceTypes/big/cpu", 0, "instanceTypes[big].cpu", "greater than 0"),
    ("instanceTypes/big/memory", "-1Gi", "instanceTypes[big].memory", "greater than 0"),
    ("instanceTypes/big/reservedCpu", "5", "instanceTypes[big]", "lower the reserve"),
    ("instanceTypes/big/pods", 0, "instanceTypes[big].pods", "greater than 0"),
    ("instanceTypes/big/pricePerHour", -1, "instanceTypes[big].pricePerHour", "0 or more"),
    ("externalMetrics/0/metric", "a/b", "externalMetrics[0] (a/b).metric", "without / and %"),
    ("externalMetrics/0/labels/queue", "-", "externalMetrics[0] (queue_messages_ready).labels[queue]", "'-'"),
    ("externalMetrics/0/namespace", "A", "externalMetrics[0] (queue_messages_ready).namespace", "RFC 1123"),
    (
        "externalMetrics/0/load/unit",
        "requests/step",
        "externalMetrics[0] (queue_messages_ready).load.unit",
        "leave",
    ),
    (
        "externalMetrics/0/load/multiplier",
        0,
        "externalMetrics[0] (queue_messages_ready).load.multiplier",
        "greater",
    ),
    ("nodeGroups", [], "nodeGroups", "at least one node group"),
    ("newGroups", {"instanceTypes": []}, "newGroups.instanceTypes", "name at least one"),
    ("newGroups", {"instanceTypes": ["m5.lrge"]}, "newGroups.instanceTypes", "did you mean `m5.large`?"),
    ("newGroups", {"instanceTypes": ["big", "big"]}, "newGroups.instanceTypes", "big stands twice"),
    ("newGroups", {"instanceTypes": ["big"], "zones": ["-"]}, "newGroups.zones", "'-'"),
    ("newGroups", {"instanceTypes": ["big"], "zones": ["a_b"]}, "newGroups.zones", "'auto-big-a_b': "),
    (
        "newGroups",
        {"instanceTypes": ["big"], "zones": ["z" * 49]},
        "newGroups.zones",
        "58 characters; nodes are",
    ),
    ("newGroups", {"instanceTypes": ["big"], "max": 0}, "newGroups.max", "greater than 0"),
    ("newGroups", {"instanceTypes": ["big"], "bootTime": "1 m"}, "newGroups.bootTime", "neither a duration"),
    ("nodeGroups/0/min", 4, "nodeGroups[0] (one).min", "lower min or raise max"),
    ("nodeGroups/0/min", -1, "nodeGroups[0] (one).min", "the least is 0"),
    ("nodeGroups/0/initial", 9, "nodeGroups[0] (one).initial", "not between min 1 and max 3"),
    ("nodeGroups/0/initial", 0, "nodeGroups[0] (one).initial", "not between min 1 and max 3"),
    ("nodeGroups/1/name", "one", "nodeGroups[1] (one).name", "its own name"),
    ("nodeGroups/1/instanceType", "m5.lrge", "nodeGroups[1] (two).instanceType", "did you mean `m5.large`?"),
    ("nodeGroups/1/instanceType", "zzz", "nodeGroups[1] (two).instanceType", "shipped are "),
    ("nodeGroups/1/bootTime", "1 m", "nodeGroups[1] (two).bootTime", "neither a duration"),
    ("nodeGroups/1/shutdownTime", "1 m", "nodeGroups[1] (two).shutdownTime", "neither a duration"),
    ("nodeGroups/0/taints/0/effect", "NoExec", "nodeGroups[0] (one).taints[0].effect", "`NoExecute`?"),
    ("services/0/cpuSecondsPerRequest", 0, "services[0] (web).cpuSecondsPerRequest", "greater than 0"),
    ("services/0/baseMemory", "64MiB", "services[0] (web).baseMemory", "not a quantity"),
    ("services/0/latency", "20", "services[0] (web).latency", "not a duration"),
    ("services/0/sloLatency", "0s", "services[0] (web).sloLatency", "greater than 0"),
    ("services/0/cpuSecondsPerRequest", 1e300, "services[0] (web).cpuSecondsPerRequest", "more than 1e+12"),
    ("services/0/load/daily/peak", 1e308, "services[0] (web).load.daily.peak", "1e+308 is more than 1e+12"),
    ("services/0/load/multiplier", 1e308, "services[0] (web).load.multiplier", "more than 1e+12"),
    ("services/0/deployment", "wed", "services[0] (wed).deployment", "there are: default/web"),
    ("services/0/deployment", REMOVED, "services[0]", "has neither; state either `deployment`"),
    ("services/0/selector", {"a": "b"}, "services[0] (web)", "has both; state either `deployment`"),
    ("services/0/name", "x", "services[0] (x).name", "leave this out"),
    ("services/0/namespace", "shop", "services[0] (web).deployment", "no Deployment shop/web"),
    ("services/0/load/daily", REMOVED, "services[0] (web).load", "has neither; state either `trace`"),
    ("services/0/load/multiplier", 0, "services[0] (web).load.multiplier", "greater than 0"),
    ("services/0/load/gaps", "holds", "services[0] (web).load.gaps", "did you mean `hold`?"),
    ("services/0/load/unit", "rps", "services[0] (web).load.unit", "requests/s"),
    ("services/0/load/step", "0s", "services[0] (web).load.step", "greater than 0"),
    ("services/0/load/window", ["a", "2026-01-01T00:00:00Z"], "services[0] (web).load.window[0]", "RFC 3339"),
    (
        "services/0/load/window",
        ["2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"],
        "services[0] (web).load.window",
        "write the earlier time first",
    ),
    ("services/0/load/daily/low", 9, "services[0] (web).load.daily.low", "not between 0 and peak 2"),
    ("services/0/load/daily/noise", -1, "services[0] (web).load.daily.noise", "0 or more"),
    ("services/0/load/daily/peakAt", "25:00", "services[0] (web).load.daily.peakAt", "a time of day such as"),
    ("services/0/load/daily/burst/at", "noon", "services[0] (web).load.daily.burst.at", "a time of day"),
    ("services/0/load/daily/burst/rise", "-1s", "services[0] (web).load.daily.burst.rise", "0 or more"),
    ("services/0/load/daily/burst/height", 0, "services[0] (web).load.daily.burst.height", "greater than 0"),
    ("flags/scan-intervall", "10s", "flags[scan-intervall]", "did you mean --scan-interval?"),
    ("loops", ["horizontal"], "flags[scan-interval]", "a flag of the loop nodes, which is not in `loops`"),
    ("flags/scan-interval", "0s", "flags[scan-interval]", "give more than 0"),
    ("flags/scan-interval", "soon", "flags[scan-interval]", "a duration such as 10m"),
    ("flags/expander", "least-cost", "nodeGroups[0] (one).pricePerHour", "instanceTypes.big.pricePerHour"),
    ("faults/0/kind", "stockout", "faults[0].kind", "did you mean `stock-out`?"),
    ("faults/0/group", "three", "faults[0].group", "no node group `three`; there are one, two"),
    ("faults/0/probability", 0, "faults[0].probability", "not in (0, 1]"),
    ("faults/0/start", "x", "faults[0].start", "not a duration"),
    ("faults/0/end", "1m", "faults[0].end", "not after start 1m"),
    ("show/start", "x", "show.start", "RFC 3339"),
    ("show/until", "x", "show.until", "RFC 3339"),
    ("scheduler", "packed", "scheduler", "write one of default, mostAllocated"),
    ("show/speed", 0, "show.speed", "greater than 0"),
    ("show/speed", 1e6, "show.speed", "at most 100,000"),
    ("step", "11m", "step", "longer than the run, 10m"),
    ("nodeGroups/1/name", "Two_", "nodeGroups[1] (Two_).name", "lower case"),
    ("nodeGroups/1/name", "x" * 58, f"nodeGroups[1] ({'x' * 58}).name", "which leaves it 57"),
    ("nodeGroups/1/pricePerHour", 1e308, "nodeGroups[1] (two).pricePerHour", "more than 1e+12"),
    ("nodeGroups/1/zone", "zone a", "nodeGroups[1] (two).zone", "'zone a'"),
    ("nodeGroups/1/labels", {"a b": "c"}, "nodeGroups[1] (two).labels[a b]", "'a b'"),
    ("nodeGroups/1/labels", {"a": "-c"}, "nodeGroups[1] (two).labels[a]", "'-c'"),
    ("nodeGroups/0/taints/0/key", "a/b/c", "nodeGroups[0] (one).taints[0].key", "'a/b/c'"),
    (
        "nodeGroups/0/taints",
        [{"key": "a"}, {"key": "a", "value": "b"}],
        "nodeGroups[0] (one).taints[1]",
        "twice",
    ),
    ("nodeGroups/1/labels", {"kubernetes.io/hostname": "x"}, HOSTNAME, "leave it out"),
    ("manifests", [DEPLOYMENT, DEPLOYMENT], "manifests", "Deployment default/web stands twice"),
    ("instanceTypes/big/memory", "512MB", "instanceTypes[big].memory", "did you mean 512M or 512Mi?"),
    ("services/0/load/step", "25h", "services[0] (web).load.step", "longer than a day"),
    ("faults/0", {"kind": "api-error", "group": "one"}, "faults[0].group", "leave the group out"),
    ("faults/0", {"kind": "stock-out", "start": "10m"}, "faults[0].start", "not before the end of the run"),
    ("flags/scale-down-utilization-threshold", 1.5, "flags[scale-down-utilization-threshold]", "from 0 to 1"),
    (
        "flags/scale-down-utilization-threshold",
        -0.5,
        "flags[scale-down-utilization-threshold]",
        "from 0 to 1",
    ),
]


@pytest.mark.parametrize(("path", "value", "field", "fix"), CONTENT)
def test_a_wrong_value_is_reported(tmp_path, path, value, field, fix):
    """A value that makes no sense gives one line with file, line, field and fix."""
    (line,) = refused(written(tmp_path, {path: value}))
    assert line.startswith(f"{tmp_path}/scenario.yaml line ")
    assert f": {field}: " in line
    assert fix in line


def test_a_node_can_bear_the_name_of_its_instance_type(tmp_path):
    """A type's name is a label of its nodes, so a group of a type whose name cannot be one is refused."""
    named = {"instanceTypes/two cores": {"cpu": 2, "memory": "8Gi"}, "nodeGroups/1/instanceType": "two cores"}
    [line] = refused(written(tmp_path, named))
    assert "nodeGroups[1] (two).instanceType: 'two cores': a valid label" in line


def test_the_line_is_the_one_of_the_field(tmp_path):
    """The line that is named holds the field, also for a key with a dot in it."""
    path = written(tmp_path, {"instanceTypes/m9.big": {"cpu": 2, "memory": "x"}})
    (line,) = refused(path)
    number = int(line.split(" line ")[1].split(":")[0])
    assert path.read_text().splitlines()[number - 1].strip() == "memory: x"


def test_all_mistakes_are_reported_at_once(tmp_path):
    """Mistakes of form come together, and so do mistakes of content, manifests and flags among them."""
    form = {"durration": "1h", "nodeGroups/0/max": "3", "services/0/load/tracee": "x"}
    assert len(refused(written(tmp_path, form))) == 3
    content = {
        "step": "0s",
        "nodeGroups/0/min": 9,
        "flags/nonsense": 1,
        "faults/0/kind": "flood",
        "manifests": [DEPLOYMENT.replace("replicas: 1", "replicaz: 1").replace("100m", "many")],
    }
    assert len(refused(written(tmp_path, content))) == 6


def test_a_service_of_any_pods(tmp_path):
    """Instead of a Deployment a service may name the labels of its pods; then it needs a name of its own."""
    own = {"services/0/deployment": REMOVED, "services/0/selector": {"crontab": "tab"}}
    assert "services[0]: `name` is missing" in refused(written(tmp_path, own))[0]
    named = {**own, "services/0/name": "tabs"}
    scenario = load_scenario(written(tmp_path, named))
    [service] = services_of(scenario, [], tmp_path, 1, start_of(scenario))
    assert (service.name, str(service.selector)) == ("tabs", "crontab=tab")
    [line] = refused(written(tmp_path, {**named, "services/0/selector": {"crontab": "a b"}}))
    assert "services[0] (tabs).selector[crontab]: 'a b': " in line
    twice = {**GOOD["services"][0], "deployment": "", "name": "web", "selector": {"a": "b"}}
    [line] = refused(written(tmp_path, {"services": [*GOOD["services"], twice]}))
    assert "services[1] (web).name: default/web stands twice" in line


def test_both_trace_and_daily_is_an_error(tmp_path):
    """A load has one source."""
    (tmp_path / "t.csv").write_text("1\n")
    (line,) = refused(written(tmp_path, {"services/0/load/trace": "t.csv"}))
    assert "services[0] (web).load: has both; state either `trace`" in line


def test_a_service_twice_is_an_error(tmp_path):
    """A Deployment has one load."""
    (line,) = refused(written(tmp_path, {"services": GOOD["services"] * 2}))
    assert "services[1] (web).deployment: default/web stands twice" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: \xff\n", r"scenario.yaml: not UTF-8 text \(byte 6\); save it as UTF-8"),
        (b"name: a\nnodeGroups: [\n", r"scenario.yaml line \d: not valid YAML"),
        (b"name: a\nname: b\n", r'scenario.yaml line 2: not valid YAML: key "name" is given twice'),
        (b"name: a\n---\nname: b\n", r"scenario.yaml line 3: a second document begins"),
        (b"", "a scenario is one YAML mapping"),
        (b"- a\n", "a scenario is one YAML mapping"),
        (
            b"apiVersion: v1\nkind: List\nitems: []\n",
            "this is a Kubernetes List and no scenario: name the file",
        ),
    ],
)
def test_what_is_no_scenario_is_reported(tmp_path, content, message):
    """A file that is not one YAML mapping says what it is."""
    path = tmp_path / "scenario.yaml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=message):
        load_scenario(path)


def test_a_missing_file_is_reported(tmp_path):
    """The path and the system's word for it are named."""
    with pytest.raises(ScenarioError, match=r"none.yaml: cannot be read: No such file"):
        load_scenario(tmp_path / "none.yaml")


def test_a_trace_named_takes_the_place_of_the_load(tmp_path):
    """--trace drives the first service, whatever it had; a file that is not there is reported."""
    trace = tmp_path / "mine.csv"
    trace.write_text("1\n")
    loaded = load_scenario(written(tmp_path, {}), trace=trace)
    assert loaded.services[0].load.trace == str(trace)
    assert loaded.services[0].load.daily is None
    (line,) = refused(written(tmp_path, {}), trace=tmp_path / "gone.csv")
    assert line == f"--trace: there is no file {tmp_path / 'gone.csv'}; check the path"
    (line,) = refused(written(tmp_path, {"services": []}), trace=trace)
    assert "add a service" in line


def test_ranges_and_times_of_day_are_read():
    """One duration is a range of itself; a time of day may have seconds."""
    assert parse_range("2s - 8s").high == seconds(8)
    assert parse_range("5s").low == parse_range("5s").high == seconds(5)
    assert parse_time_of_day("9:05") == seconds(9 * 3600 + 5 * 60)
    assert parse_time_of_day("14:30:15") == seconds(14 * 3600 + 30 * 60 + 15)
