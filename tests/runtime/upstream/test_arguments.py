"""Arguments are read by pflag's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.runtime.upstream.arguments import parse_arguments
from kubetide.runtime.upstream.table import cluster_autoscaler_flags
from kubetide.runtime.upstream.values import default, parse_go_int, read
from kubetide.units.time import minutes, seconds

FLAGS = cluster_autoscaler_flags()


@pytest.mark.parametrize(
    ("line", "values", "stray"),
    [
        ("--scan-interval=20s", {"scan-interval": seconds(20)}, []),
        ("--scan-interval 20s", {"scan-interval": seconds(20)}, []),
        ("--scan_interval=20s", {"scan-interval": seconds(20)}, []),
        ("--log_file_max_size=7", {"log-file-max-size": 7}, []),
        ("--scan-interval=1s --scan-interval=1m", {"scan-interval": minutes(1)}, []),
        ("--regional", {"regional": True}, []),
        ("--scale-down-enabled=F", {"scale-down-enabled": False}, []),
        ("--scale-down-enabled false", {"scale-down-enabled": True}, ["false"]),
        ("--nodes=1:3:a --nodes 0:2:b,c", {"nodes": ("1:3:a", "0:2:b,c")}, []),
        ("--startup-taint=a,b", {"startup-taint": ("a,b",)}, []),
        (
            '--bypassed-scheduler-names=a,"b,c" --bypassed-scheduler-names=d',
            {"bypassed-scheduler-names": ("a", "b,c", "d")},
            [],
        ),
        ("--bypassed-scheduler-names=", {"bypassed-scheduler-names": ()}, []),
        ("-v=4", {"v": 4}, []),
        ("-v4", {"v": 4}, []),
        ("-v 4", {"v": 4}, []),
        ("--v=4", {"v": 4}, []),
        ("--max-nodes-total=0x10", {"max-nodes-total": 16}, []),
        ("--max-nodes-total=010", {"max-nodes-total": 8}, []),
        ("--expendable-pods-priority-cutoff=-5", {"expendable-pods-priority-cutoff": -5}, []),
        ("--scan-interval=1s -- --regional", {"scan-interval": seconds(1)}, ["--regional"]),
        ("--stderrthreshold=info --vmodule=a=1,b*=2", {"stderrthreshold": "info", "vmodule": "a=1,b*=2"}, []),
        ("--cluster-name --regional", {"cluster-name": "--regional"}, []),
    ],
)
def test_what_can_be_read(line, values, stray):
    """Each form that pflag knows gives the value that upstream would work with."""
    found = parse_arguments(line.split(), FLAGS)
    assert (found.values, found.stray, found.problems) == (values, stray, [])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("--scan-intervall=1s", "--scan-intervall: unknown flag; did you mean --scan-interval?"),
        ("--max-empty-bulk-delete=10", "upstream has removed it: give --max-scale-down-parallelism"),
        (
            "--parallel-drain",
            "upstream has removed it: leave it out, as nodes are always drained in parallel",
        ),
        (
            "--gce-expander-ephemeral-storage-support=true",
            "upstream has removed it: leave it out, as ephemeral storage always counts",
        ),
        ("--verify-unschedulable-pods=false", "upstream has removed it: leave it out"),
        ("--configmap=settings", "upstream has removed it: leave it out"),
        ("--scale-down-delay=10m", "upstream has removed it: give --scale-down-delay-after-add"),
        ("--scale-down-underutilized-time=5m", "upstream has removed it: give --scale-down-unneeded-time"),
        ("--zzzz", "--zzzz: unknown flag; see docs/cluster-autoscaler.md"),
        ("-cloud-provider=aws", "-cloud-provider: unknown flag; write --cloud-provider with two dashes"),
        ("--scan-interval", "--scan-interval: a value is missing; write --scan-interval=value"),
        ("--scan-interval=soon", "--scan-interval=soon: cannot be read"),
        ("--max-nodes-total=1.5", "it takes a whole number"),
        ("--max-nodes-total=08", 'parsing "08": invalid syntax'),
        ("--max-nodes-total=9223372036854775808", "value out of range"),
        ("--regional=yes", "it takes true or false"),
        ("--v=-1", "it takes a whole number, 0 or more"),
        ("--vmodule=a", "it takes pattern=N"),
        ("--stderrthreshold=LOUD", "it takes INFO, WARNING, ERROR or FATAL"),
        ("--log_backtrace_at=main.go", "it takes file:N"),
        ("--feature-gates=A", "it takes Name=true or Name=false"),
        ("--=x", "--=x"),
        ("---v", "---v: is no flag"),
    ],
)
def test_what_cannot_be_read_is_named(line, problem):
    """An argument that pflag refuses is one sentence with the flag and the fix."""
    (found,) = parse_arguments(line.split(), FLAGS).problems
    assert problem in found


def test_reading_goes_on_behind_what_is_wrong():
    """All bad flags are found in one pass, and the value of an unknown one is not taken for an argument."""
    found = parse_arguments(
        ["--foo", "bar", "--scan-interval=x", "--regional", "--bar", "--max-nodes-total"], FLAGS
    )
    assert [problem.split(":")[0] for problem in found.problems] == [
        "--foo",
        "--scan-interval=x",
        "--bar",
        "--max-nodes-total",
    ]
    assert (found.values, found.stray) == ({"regional": True}, [])


@pytest.mark.parametrize("argument", ["--help", "-h"])
def test_help_is_requested(argument):
    """Both forms of the flag request help."""
    assert parse_arguments([argument], FLAGS).asks_for_help


@pytest.mark.parametrize("name", list(FLAGS))
def test_every_default_can_be_given(name):
    """Each flag takes its own default as its help prints it, and means the same by it."""
    flag = FLAGS[name]
    if flag.is_list:
        assert default(flag.kind, flag.default) == ()
    else:
        found = parse_arguments([f"--{name}={flag.default}"], FLAGS)
        assert found.problems == []
        assert found.values[name] == default(flag.kind, flag.default)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_integers_in_all_notations(number):
    """A whole number is the same in decimal, hexadecimal, octal and binary."""
    assert parse_go_int(str(number)) == number
    sign, size = ("-", -number) if number < 0 else ("", number)
    for text in (f"{sign}{size:#x}", f"{sign}{size:#o}", f"{sign}0{size:o}", f"{sign}{size:#b}"):
        assert parse_go_int(text) == number


@given(st.text(max_size=20), st.sampled_from(sorted({flag.kind for flag in FLAGS.values()})))
def test_any_text_is_read_or_refused(text, kind):
    """Whatever follows a flag is a value or a ValueError, never another error."""
    reported = "it takes"
    try:
        read(kind, text)
    except ValueError as error:
        reported = str(error)
    assert "it takes" in reported


@given(st.lists(st.text(alphabet="-=v_sca1 ", max_size=8), max_size=5))
def test_any_arguments_are_read_or_named(arguments):
    """No list of arguments ends the reading early."""
    parse_arguments(arguments, FLAGS)
