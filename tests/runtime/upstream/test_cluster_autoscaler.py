"""Cluster Autoscaler's command lines as real Deployments have them, and what is wrong with others."""

from __future__ import annotations

import pytest

from kubetide.nodes.settings import Settings
from kubetide.objects.protobuf import MEDIA_TYPE
from kubetide.runtime.configuration.config import ConfigError
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.upstream import Status, cluster_autoscaler_flags, understand
from kubetide.runtime.upstream.table import own_flags
from kubetide.units.time import hours, minutes, seconds

FLAGS = cluster_autoscaler_flags()


def config_of(line):
    return understand(line.split()).config


def problems_of(line):
    with pytest.raises(ConfigError) as found:
        understand(line.split())
    return str(found.value).splitlines()


CHART = "--cloud-provider=aws --namespace=kube-system {} --logtostderr=true --stderrthreshold=info --v=4"
DISCOVERED = "asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/prod"
REAL = {
    "the chart's defaults on AWS": (
        CHART.format(f"--node-group-auto-discovery={DISCOVERED}"),
        {"cloud_provider": "aws", "node_group_auto_discovery": (DISCOVERED,), "act": True},
        {"namespace": "kube-system"},
    ),
    "the chart with groups of its own": (
        CHART.format("--nodes=1:2:asg1 --nodes=1:2:asg2"),
        {"nodes": ("1:2:asg1", "1:2:asg2")},
        {},
    ),
    "the AWS example with auto-discovery": (
        (
            "--v=4 --stderrthreshold=info --cloud-provider=aws --skip-nodes-with-local-storage=false "
            f"--expander=least-waste --node-group-auto-discovery={DISCOVERED}"
        ),
        {"cloud_provider": "aws", "node_group_auto_discovery": (DISCOVERED,)},
        {"skip_nodes_with_local_storage": False, "expander": "least-waste"},
    ),
    "the AWS example with one group": (
        (
            "--v=4 --stderrthreshold=info --cloud-provider=aws --skip-nodes-with-local-storage=false "
            "--nodes=1:10:k8s-worker-asg-1"
        ),
        {"nodes": ("1:10:k8s-worker-asg-1",)},
        {"skip_nodes_with_local_storage": False},
    ),
    "the AWS example with several groups": (
        (
            "--v=4 --stderrthreshold=info --cloud-provider=aws --skip-nodes-with-local-storage=false "
            "--expander=least-waste --nodes=1:10:k8s-worker-asg-1 --nodes=1:3:k8s-worker-asg-2"
        ),
        {"nodes": ("1:10:k8s-worker-asg-1", "1:3:k8s-worker-asg-2")},
        {"expander": "least-waste"},
    ),
    "scale sets on Azure": (
        (
            "--v=3 --logtostderr=true --cloud-provider=azure --skip-nodes-with-local-storage=false "
            "--nodes=1:10:vmss1 --nodes=1:10:vmss2"
        ),
        {"cloud_provider": "azure", "nodes": ("1:10:vmss1", "1:10:vmss2")},
        {},
    ),
    "scale sets on Azure by tags": (
        (
            "--v=3 --logtostderr=true --cloud-provider=azure --skip-nodes-with-local-storage=false "
            "--node-group-auto-discovery=label:cluster-autoscaler-enabled=true,cluster-autoscaler-name=prod"
        ),
        {
            "node_group_auto_discovery": (
                "label:cluster-autoscaler-enabled=true,cluster-autoscaler-name=prod",
            ),
        },
        {},
    ),
    "the chart on GCE": (
        (
            "--cloud-provider=gce --namespace=kube-system --node-group-auto-discovery=mig:namePrefix=ig01,min=0,max=10 "
            "--cloud-config=/etc/gce.conf --logtostderr=true --stderrthreshold=info --v=4"
        ),
        {
            "cloud_provider": "gce",
            "cloud_config": "/etc/gce.conf",
            "node_group_auto_discovery": ("mig:namePrefix=ig01,min=0,max=10",),
        },
        {},
    ),
    "a control plane's manifest on GCE": (
        (
            "--kubeconfig=/etc/srv/kubernetes/cluster-autoscaler/kubeconfig --v=4 --logtostderr=true "
            "--write-status-configmap=true --balance-similar-node-groups=true --cloud-config=/etc/gce.conf "
            "--cloud-provider=gce --regional "
            "--nodes=1:5:https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-b/instanceGroups/g-minion"
        ),
        {
            "kubeconfig": "/etc/srv/kubernetes/cluster-autoscaler/kubeconfig",
            "regional": True,
            "nodes": (
                "1:5:https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-b/instanceGroups/g-minion",
            ),
        },
        {"balance_similar_node_groups": True},
    ),
    "a tuned production cluster": (
        (
            "--cloud-provider=aws --nodes 0:50:gpu --balance-similar-node-groups --skip-nodes-with-system-pods=false "
            "--scale-down-unneeded-time=5m --scale-down-delay-after-add=5m --scale-down-utilization-threshold=0.6 "
            "--max-node-provision-time=10m --scan-interval=20s --max-inactivity=40m --leader-elect-lease-duration=30s "
            "--leader-elect-renew-deadline=20s --kube-client-qps=50 --kube-client-burst=100 --address=:9090 "
            "--leader-elect-resource-name=ca-two --startup-taint=cni --ignore-taint=gpu --new-pod-scale-up-delay=10s"
        ),
        {
            "kube_api_qps": 50.0,
            "kube_api_burst": 100,
            "address": ":9090",
            "max_inactivity": minutes(40),
            "max_startup_time": minutes(40),
            "leader_elect_lease_duration": seconds(30),
            "leader_elect_resource_name": "ca-two",
        },
        {
            "scale_down_unneeded_time": minutes(5),
            "scale_down_utilization_threshold": 0.6,
            "scan_interval": seconds(20),
            "startup_taint": ("gpu", "cni"),
        },
    ),
}


@pytest.mark.parametrize("name", list(REAL))
def test_real_command_lines_are_understood(name):
    """Arguments of real Deployments start as they are, mean what they say, and nothing needs a warning."""
    line, run, nodes = REAL[name]
    understood = understand(line.split())
    assert {field: getattr(understood.config.run, field) for field in run} == run
    settings = understood.config.loops.of(Settings)
    assert {field: getattr(settings, field) for field in nodes} == nodes
    assert understood.warnings == ()


def test_defaults_are_upstreams():
    """Without flags the node loop has its own defaults, and the process upstream's: port, limits, lease."""
    config = config_of("--cloud-provider=aws")
    assert config.loops.of(Settings) == Settings()
    run = config.run
    assert (run.controllers, run.act, run.address) == (("nodes",), True, ":8085")
    assert (run.kube_api_qps, run.kube_api_burst) == (5.0, 10)
    assert (run.leader_elect, run.leader_elect_resource_name) == (True, "cluster-autoscaler")
    assert config_of("").run.cloud_provider == "gce"


def test_every_flag_of_upstream_is_there_once():
    """136 flags of July 2026 and one of August, leader election, gates and logging; each has a status and a target."""
    first = list(FLAGS)[: list(FLAGS).index("leader-elect")]
    assert len(first) == 137
    for flag in FLAGS.values():
        assert bool(flag.part) == (flag.status is Status.WORKS), flag
        assert flag.part or flag.note, flag
    for flag in FLAGS.values():
        if flag.part == "nodes":
            assert flag.field in Settings.__struct_fields__
        elif flag.part:
            assert flag.field in RunSettings.__struct_fields__


@pytest.mark.parametrize("name", list(FLAGS))
def test_every_flag_can_be_given_with_what_holds_anyway(name):
    """Each flag with the value of the actual behavior is accepted, with a warning only if it has no effect."""
    flag = FLAGS[name]
    if flag.is_list or name == "cloud-provider":
        return
    held = str(flag.held).lower() if flag.kind == "bool" else flag.default
    understood = understand(["--cloud-provider=aws", f"--{name}={held}"])
    idle = flag.status is Status.NO_EFFECT
    assert bool([one for one in understood.warnings if "JSON is asked for" not in one]) == idle


@pytest.mark.parametrize("priorities", ["", "0:60"])
def test_the_default_time_to_end_goes_with_drain_priorities(priorities):
    """Charts give flags with their defaults; upstream refuses two ways to say the time, not a flag that says nothing."""
    flags = [f"--drain-priority-config={priorities}", "--max-graceful-termination-sec=600"]
    assert not understand(["--cloud-provider=aws", *flags]).warnings


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("--predicate-parallelism=0", "--predicate-parallelism=0: invalid value; give 1 or more"),
        ("--enable-dynamic-resource-allocation=false", "upstream can no longer do without"),
        (
            "--drain-priority-config=0:60 --max-graceful-termination-sec=601",
            "cannot be used together with --max-graceful-termination-sec",
        ),
        ("--drain-priority-config=,", "--drain-priority-config=,: cannot be read"),
        ("--drain-priority-config=0:60,5", "--drain-priority-config=0:60,5: cannot be read"),
        (
            "--bypassed-scheduler-names=a,b --allowed-scheduler-names=b",
            "--bypassed-scheduler-names: a is not among --allowed-scheduler-names=b; add it there",
        ),
        ("--cores-total=5", "--cores-total=5: wrong nodes configuration: 5"),
        ("--cores-total=5:1", "max size must be greater or equal to min size"),
        ("--memory-total=-1:1", "min size must be greater or equal to  0"),
        ("--gpu-total=t4:1", "incorrect gpu limit specification: t4:1"),
        ("--gpu-total=t4:1:x", "max is not integer"),
        ("--expander=random,least-waste", "Expander least-waste came after an expander random"),
        ("--expander=cheapest", "Expander cheapest not supported"),
        ("--estimator=guess", "--estimator=guess: there is no such choice; give binpacking"),
        (
            "--kube-api-content-type=text/plain",
            "give application/json or application/vnd.kubernetes.protobuf",
        ),
        ("--logging-format=xml", "give text or json"),
        ("--leader-elect-resource-lock=endpoints", "give leases"),
        ("--leader-elect-renew-deadline=15s", "--leader-elect-lease-duration: must be greater than"),
        ("--leader-elect-retry-period=10s", "must be greater than 1.2 times --leader-elect-retry-period"),
        ("--leader-elect-retry-period=0s", "must be greater than zero"),
        (
            "--leader-elect-lease-duration=900ms --leader-elect-renew-deadline=800ms --leader-elect-retry-period=1ms",
            "--leader-elect-lease-duration: must be at least 1s",
        ),
        ("--leader-elect-resource-name=", "--leader-elect-resource-name: is empty"),
        ("--scale-down-unneeded-time=-5m", "--scale-down-unneeded-time=-5m0s: a negative duration"),
        ("--max-nodes-total=-1", "--max-nodes-total=-1: a negative number; give 0 or more"),
        ("--scale-down-utilization-threshold=1.5", "give a number from 0 to 1"),
        ("--max-total-unready-percentage=NaN", "give a number from 0 to 100"),
        (
            "--cloud-provider=hetzner",
            "--cloud-provider=hetzner: this cloud is not built; there are alicloud, aws",
        ),
        ("--log-format=xml", "--log-format=xml: cannot be used"),
        ("--scan-interval=0", "--scan-interval=0s: give more than 0, such as 10s"),
        (
            "--namespace=",
            "--namespace=: is no name of a namespace; give that of the Lease, such as kube-system",
        ),
        ("--namespace=$(NAMESPACE)", "--namespace=$(NAMESPACE): is no name of a namespace"),
        (
            "--status-config-map-name=a_b",
            "--status-config-map-name=a_b: is no name of a ConfigMap; give one such as",
        ),
        ("--kube-client-qps=NaN", "--kube-client-qps=NaN: is no number"),
        ("--address=8085", "--address: '8085' is no address: write HOST:PORT"),
        (
            "--nodes=1:10",
            "--nodes=1:10: wrong nodes configuration: 1:10; give MIN:MAX:NAME of an Auto Scaling group",
        ),
        (
            "--node-group-auto-discovery=asg:tag=",
            "--node-group-auto-discovery=asg:tag=: tag value not supplied; give asg:tag=KEY[=VALUE]",
        ),
        ("--cloud-provider=gce --nodes=1:2:workers", "--nodes=1:2:workers: wrong url"),
        (
            "--cloud-provider=gce --node-group-auto-discovery=mig:namePrefix=a",
            "--node-group-auto-discovery=mig:namePrefix=a: maximum size 0 must be at least 1; give mig:namePrefix=",
        ),
        (
            "--cloud-provider=azure --node-group-auto-discovery=label:a",
            "--node-group-auto-discovery=label:a: invalid key=value pair [a]; give label:TAG=VALUE",
        ),
        ("--cloud-provider=alicloud --nodes=2:1:asg-a", "--nodes=2:1:asg-a: invalid node group spec"),
        ("--cloud-provider=labels", "--cloud-provider=labels: only reads groups off the nodes; add --advise"),
        (
            "--max-inactivity=0s",
            "max-inactivity, max-failing-time and max-startup-time must be greater than 0",
        ),
    ],
)
def test_checks_at_the_start(line, text):
    """Flags that upstream refuses at its start are refused with the flag, its value and the fix."""
    assert any(text in problem for problem in problems_of(f"--cloud-provider=aws {line}"))


@pytest.mark.parametrize(
    ("line", "in_pod", "only_own_pod"),
    [
        ("", True, True),
        ("--advise", True, True),
        ("--context=prod", True, False),
        ("--advise", False, False),
    ],
)
def test_a_pod_scales_its_own_cluster(line, in_pod, only_own_pod):
    """As upstream, a KUBECONFIG that happens to be in the pod's environment names no cluster to act on."""
    understood = understand(
        ["--cloud-provider=aws", *line.split()], no_pod="" if in_pod else "this is no pod"
    )
    assert understood.config.only_own_pod == only_own_pod


def test_numbers_that_mean_something_below_zero_are_accepted():
    """The scheduler's verbosity of later versions is -1 where it is that of the whole process."""
    line = "--scheduler-verbosity=-1 --scale-down-non-empty-candidates-count=-1 --expendable-pods-priority-cutoff=-20"
    settings = config_of(f"--cloud-provider=aws {line}").loops.of(Settings)
    assert settings.expendable_pods_priority_cutoff == -20


def test_times_of_an_election_that_is_off_are_not_looked_at():
    """As upstream, which compares them only where a Lease is taken."""
    run = config_of("--cloud-provider=aws --leader-elect=false --leader-elect-retry-period=20s").run
    assert (run.leader_elect, run.leader_elect_retry_period) == (False, seconds(20))


def test_everything_wrong_is_named_at_once():
    """Unknown flags, values that cannot be read, failed checks and what is not offered: one error, a line each."""
    first, *others = problems_of(
        "--cloud-provider=hetzner --scan-intervall=4s --max-nodes-total many --cores-total=5:1 "
        "--scheduler-config-file=a.yaml"
    )
    assert first == "5 flags cannot be used:"
    assert [line.split(":")[0].strip().split("=")[0] for line in others] == [
        "--scan-intervall",
        "--max-nodes-total",
        "--cores-total",
        "--cloud-provider",
        "--scheduler-config-file",
    ]


def test_what_settings_refuse_is_named_with_the_rest():
    """The checks of settings that upstream has no part in add a line to those of the command line, and repeat none."""
    _, *lines = problems_of(
        "--cloud-provider=aws --scan-interval=0 --cores-total=5:1 --nodes=1:x:a --max-inactivity=0"
    )
    assert [line.split("=")[0].strip() for line in lines[:3]] == [
        "--cores-total",
        "--nodes",
        "--scan-interval",
    ]
    assert lines[3].strip().startswith("max-inactivity, max-failing-time and max-startup-time must be")
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        (
            "--cloud-provider=kwok --nodes=1:2:a --regional --balancing-ignore-label=zone",
            "without effect with --cloud-provider=kwok: --balancing-ignore-label, --nodes, --regional",
        ),
        (
            "--cloud-provider=externalgrpc --nodes=1:2:a",
            "without effect with --cloud-provider=externalgrpc: --nodes",
        ),
        (
            "--cloud-provider=alicloud --nodes=1:2:a --node-group-auto-discovery=asg:tag=a",
            "without effect with --cloud-provider=alicloud: --node-group-auto-discovery",
        ),
        ("--cloud-provider=azure --aws-use-static-instance-list=false --gce-concurrent-refreshes=1", ""),
        ("--cloud-provider=ours:connect --nodes=a --cloud-config=b --regional", ""),
    ],
)
def test_what_the_cloud_does_not_read_is_said(line, warning):
    """A flag of other clouds does nothing, and says so unless it has its default; another package's provider may read any."""
    assert understand(line.split()).warnings == ((warning,) if warning else ())


def test_a_status_that_is_not_written_needs_no_name():
    """The name of the ConfigMap is looked at only where it is written."""
    run = config_of("--cloud-provider=aws --write-status-configmap=false --status-config-map-name=")
    assert run.loops.of(Settings).write_status_configmap is False


def test_one_problem_is_one_line():
    """A single bad flag needs no list."""
    assert problems_of("--cloud-provider=aws --scan-intervall=4s") == [
        "--scan-intervall: unknown flag; did you mean --scan-interval?"
    ]


def test_what_has_no_effect_upstream_is_one_warning():
    """All flags that upstream reads and never uses are named in one line."""
    line = "--cloud-provider=aws --balancing-label=a --cluster-snapshot-parallelism=4 --scale-down-candidates-pool-ratio=0.5"
    assert understand(line.split()).warnings == (
        (
            "without effect, as in Cluster Autoscaler itself: --balancing-label, --cluster-snapshot-parallelism, "
            "--scale-down-candidates-pool-ratio"
        ),
    )


def test_a_start_up_time_that_is_too_short_is_raised_and_said():
    """As upstream: the first loop gets at least the time of later ones, and the operator is told."""
    understood = understand(["--cloud-provider=aws", "--max-startup-time=1m", "--max-failing-time=25m"])
    assert understood.config.run.max_startup_time == minutes(25)
    (said,) = understood.warnings
    assert said.startswith("--max-startup-time=1m0s is raised to 25m0s, the longer one of ")


def test_what_is_passed_over_is_reported():
    """A flag whose loss does no harm, and a word that belongs to no flag, are a warning each."""
    line = "--cloud-provider=aws --profiling --scale-down-enabled false --feature-gates=A=true --log_file=/var/log/ca.log"
    gates, file, profiling, stray = understand(line.split()).warnings
    assert (
        file == "--log-file is not offered and passed over: the log, a line a decision, is on standard output"
    )
    assert gates.startswith("--feature-gates is not offered and passed over: ")
    assert profiling == "--profiling is not offered and passed over: there is no /debug/pprof"
    assert stray.startswith("belongs to no flag and is passed over, as by upstream: false;")


@pytest.mark.parametrize(
    ("line", "qps", "burst"),
    [
        ("--kube-client-qps=0 --kube-client-burst=0", 5.0, 10),
        ("--kube-client-qps=-1", 1e6, 1_000_000),
        ("--kube-client-qps=2.5", 2.5, 10),
    ],
)
def test_limits_of_requests_are_read_as_client_go_does(line, qps, burst):
    """Zero is client-go's default, and less than zero is no limit."""
    run = config_of(f"--cloud-provider=aws {line}").run
    assert (run.kube_api_qps, run.kube_api_burst) == (qps, burst)


def test_advice_and_own_settings():
    """Kubetide's own flags are beside upstream's, and --advise prevents all writes."""
    config = config_of(
        "--cloud-provider=labels --advise --max-evictions-per-hour=7 --out=/tmp/x --max-records-size=1Gi "
        "--node-group-label=a,b --logging-format=json --node-info-cache-expire-time=1h"
    )
    run, settings = config.run, config.loops.of(Settings)
    assert (run.act, run.out, run.max_records_size, run.log_format) == (False, "/tmp/x", 1 << 30, "json")
    assert run.node_group_label == ("a", "b")
    assert (settings.max_evictions_per_hour, settings.node_info_cache_expire_time) == (7, hours(1))
    assert not set(own_flags()) & set(FLAGS)


def test_advice_names_the_flag_of_this_command():
    """Who looks first reads which flag of this command to leave out, not one of another command."""
    assert (
        understand(["--cloud-provider=aws", "--advise"]).config.why_advice
        == "nothing is written with --advise"
    )


def test_a_kubeconfig_is_needed_outside_of_a_pod():
    """Upstream never takes a person's current context by itself, and this command does so for advice only."""
    with pytest.raises(ConfigError, match="--kubeconfig: this is no pod"):
        understand(["--cloud-provider=aws"], no_pod="this is no pod")
    assert (
        understand(["--cloud-provider=aws", "--kubeconfig=k"], no_pod="this is no pod").config.run.kubeconfig
        == "k"
    )
    assert (
        understand(["--cloud-provider=labels", "--advise"], no_pod="this is no pod").config.run.act is False
    )
    with pytest.raises(ConfigError, match="--kubeconfig: token is missing; name the file"):
        understand(["--cloud-provider=aws"], no_pod="token is missing")


def test_json_where_protobuf_is_not_installed(monkeypatch):
    """Upstream's default content type is a preference: without the package JSON is requested, with a warning if the flag was given."""
    module = "kubetide.runtime.upstream.cluster_autoscaler.is_protobuf_installed"
    monkeypatch.setattr(module, lambda: False)
    assert config_of("--cloud-provider=aws").run.kube_api_content_type == "application/json"
    given = understand(["--cloud-provider=aws", f"--kube-api-content-type={MEDIA_TYPE}"])
    assert given.config.run.kube_api_content_type == "application/json"
    assert "pip install" in given.warnings[0]
