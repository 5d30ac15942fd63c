"""The command lines of upstream's VPA programs."""

from __future__ import annotations

import pytest

from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.runtime.configuration.config import ConfigError, make_config
from kubetide.runtime.configuration.vpa_flags import PROGRAMS, vpa_config
from kubetide.runtime.prometheus import prometheus_access
from kubetide.units.time import minutes, seconds


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_flags_it_acts_as_upstream_s(name):
    """One loop, acting, without leader election, at upstream's address and with its limits of requests."""
    run = vpa_config(name, ()).run
    assert run.controllers == (PROGRAMS[name].loop,)
    assert (run.act, run.leader_elect, run.address) == (True, False, PROGRAMS[name].address)
    assert (run.kube_api_qps, run.kube_api_burst) == (50, 100)


def test_flags_are_read_as_go_reads_them():
    """One dash or two, underscores, a value behind a blank, switches alone; klog's flags change nothing."""
    config = vpa_config(
        "vpa-updater",
        [
            "-eviction_tolerance",
            "0.3",
            "--updater-interval=30s",
            "--in-place-skip-disruption-budget",
            "--use-admission-controller-status=F",
            "--leader-elect",
            "--leader-elect-resource-name=vpa-updater",
            "--feature-gates=InPlace=true",
            "--kube-api-burst=75.0",
            "--pod-update-threshold=1.5",
            "--v=4",
            "--stderrthreshold=info",
            "--out=here",
        ],
    )
    updater = config.loops.by_name["updater"]
    assert (updater.eviction_tolerance, updater.updater_interval) == (0.3, seconds(30))
    assert updater.in_place_skip_disruption_budget
    assert updater.pod_update_threshold == 1.5
    assert not updater.use_admission_controller_status
    assert updater.gates.in_place
    assert (config.run.leader_elect, config.run.kube_api_burst, config.run.out) == (True, 75, "here")


@pytest.mark.parametrize(
    ("name", "lease"), [("vpa-recommender", "vpa-recommender-lease"), ("vpa-updater", "vpa-updater-lease")]
)
def test_the_flags_of_upstreams_chart_are_taken(name, lease):
    """It names a Lease in its own namespace, which its roles allow; the updater's is not the program's default."""
    config = vpa_config(
        name,
        [
            "--stderrthreshold=info",
            "--leader-elect=true",
            "--leader-elect-resource-namespace=autoscaling",
            f"--leader-elect-resource-name={lease}",
            "--leader-elect-lease-duration=15s",
            "--leader-elect-renew-deadline=10s",
            "--leader-elect-retry-period=2s",
            "--v=4",
        ],
    )
    assert (config.run.leader_elect, config.run.leader_elect_resource_name) == (True, lease)
    assert config.loops.of(NodesSettings).namespace == "autoscaling"


def test_all_replicas_of_the_admission_controller_answer():
    """It has no leader, so a flag of one is a mistake, as with upstream's."""
    with pytest.raises(ConfigError, match="takes no Lease"):
        vpa_config("vpa-admission-controller", ["--leader-elect=true"])


def test_bare_names_are_those_of_the_program():
    """A flag of `kubetide run` that begins with vpa- has upstream's name here."""
    config = vpa_config("vpa-admission-controller", ["--port=9443", "--address=:1"])
    assert config.loops.by_name["admission"].port == 9443
    assert config.run.address == ":1"


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--evicton-tolerance=1", "vpa-updater has no such flag"),
        ("--eviction-tolerance", "a value is missing"),
        ("--leader-elect-resource-lock=endpoints", "only leases is supported"),
        ("--leader-elect=perhaps", "takes true or false"),
        ("--feature-gates=Mine=true", "unknown gate 'Mine'"),
        ("word", "belongs to no flag"),
    ],
)
def test_what_cannot_be_read_is_named(flag, text):
    """Each error names the flag and the fix."""
    with pytest.raises(ConfigError, match=text):
        vpa_config("vpa-updater", [flag])


@pytest.mark.parametrize(
    ("flags", "leaves"),
    [((), False), (("--vpa-leave-to-hpa",), True), (("--leave-to-hpa=true",), True)],
)
def test_the_recommender_recommends_what_an_hpa_scales_on_as_upstreams_does(flags, leaves):
    """Only a flag makes it leave that to the HPA; `kubetide run` does so by default."""
    assert vpa_config("vpa-recommender", flags).loops.by_name["recommender"].leave_to_hpa is leaves
    run = make_config([("--", {"controllers": "recommender"})])
    assert run.loops.by_name["recommender"].leave_to_hpa


def test_every_program_has_its_gates():
    """They are no switch, and those of a flag that is given again add up, as in Go."""
    recommender = vpa_config("vpa-recommender", ["--feature-gates=PerVPAConfig=true"])
    assert recommender.loops.by_name["recommender"].per_vpa_config
    flags = ["--feature-gates=InPlace=true", "--feature-gates", "PerVPAConfig=true,InPlace=false"]
    gates = vpa_config("vpa-updater", flags).loops.by_name["updater"].gates
    assert (gates.per_vpa_config, gates.in_place, gates.cpu_startup_boost) == (True, False, False)


def test_history_has_upstreams_flags():
    """Address, access, queries and labels, by upstream's names; the environment has user and password too."""
    config = vpa_config(
        "vpa-recommender",
        [
            "--storage=prometheus",
            "--prometheus-address=http://there:9090",
            "--prometheus-insecure",
            "--prometheus-query-timeout=2m",
            "--prometheus-cadvisor-job-name=",
            "--history-length=2d",
            "--history-resolution=30m",
            '--metric-for-pod-labels=kube_pod_labels{job="a"}[8d]',
            "--container-pod-name-label=pod",
            "--username=ann",
        ],
        {"PROMETHEUS_USERNAME": "bob", "PROMETHEUS_PASSWORD": "secret"},
    )
    run, loop = config.run, config.loops.by_name["recommender"]
    assert (run.prometheus_url, run.prometheus_insecure) == ("http://there:9090", True)
    assert (run.prometheus_user, run.prometheus_password) == ("ann", "secret")
    assert run.prometheus_query_timeout == minutes(2)
    assert not loop.uses_checkpoints
    assert (loop.history_length, loop.history_resolution) == ("2d", "30m")
    assert (loop.prometheus_cadvisor_job_name, loop.container_pod_name_label) == ("", "pod")
    assert loop.metric_for_pod_labels == 'kube_pod_labels{job="a"}[8d]'


@pytest.mark.parametrize("flag", ["--prometheus-bearer-token=abc", "--prometheus-bearer-token-file=/token"])
def test_a_token_takes_precedence_over_user_and_password(flag):
    """As with upstream, also where the environment has these for another program."""
    environment = {"PROMETHEUS_USERNAME": "bob", "PROMETHEUS_PASSWORD": "secret"}
    run = vpa_config("vpa-recommender", [flag, "--prometheus-address=http://there:9090"], environment).run
    assert (run.prometheus_user, run.prometheus_password) == ("", "")
    prometheus_access(run)


def test_flags_of_the_recommender_are_no_ones_else():
    """The updater has no history."""
    with pytest.raises(ConfigError, match="vpa-updater has no such flag"):
        vpa_config("vpa-updater", ["--prometheus-address=http://there:9090"])
