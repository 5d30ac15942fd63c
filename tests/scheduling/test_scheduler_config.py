"""The scheduler's configuration file: what changes no filter is taken, all else is named."""

from __future__ import annotations

import pytest

from kubetide.scheduling.scheduler_config import scheduler_config_problems

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

BIN_PACKING = """
parallelism: 8
leaderElection: {leaderElect: false}
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      enabled: [{name: NodeResourcesFit, weight: 5}]
      disabled: [{name: ImageLocality}]
    multiPoint:
      disabled: [{name: NodeResourcesBalancedAllocation}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 3, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
"""
MOVED = """
profiles:
- plugins:
    multiPoint: {disabled: [{name: NodePorts}]}
    preFilter: {enabled: [{name: NodePorts}]}
    filter: {disabled: [{name: "*"}], enabled: [NAMES]}
"""
EVERY = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)


def problems(tmp_path, text, head=HEAD):
    path = tmp_path / "scheduler.yaml"
    path.write_text(head + text, encoding="utf-8")
    found = list(scheduler_config_problems(str(path)))
    assert all(one.startswith(f"{path}: ") for one in found)
    return [one.removeprefix(f"{path}: ") for one in found]


@pytest.mark.parametrize(
    "text",
    [
        "",
        BIN_PACKING,
        MOVED.replace("NAMES", ", ".join(f"{{name: {name}}}" for name in EVERY)),
    ],
    ids=["defaults", "bin packing", "filters in another order"],
)
def test_what_changes_no_filter_is_taken(tmp_path, text):
    """Scores, weights, backoffs and the order of filters change nothing in a simulation."""
    assert problems(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "profiles: [{plugins: {filter: {disabled: [{name: NodePorts}]}}}]",
            "NodePorts is disabled at filter",
        ),
        (
            "profiles: [{plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}}]",
            "PodTopologySpread is disabled at filter",
        ),
        (
            "profiles: [{plugins: {preFilter: {disabled: [{name: NodeAffinity}]}}}]",
            "NodeAffinity is disabled at preFilter",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: Coscheduling}]}}}]",
            "profiles[0].plugins.filter.enabled: Coscheduling is no plugin of kube-scheduler",
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: b}]",
            "expected one scheduler profile only (found 2 profiles)",
        ),
        ("profiles: [{plugins: {filters: {}}}]", "unknown field `filters` - at `$.profiles[0].plugins`"),
        (
            (
                "profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: "
                "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}]}]"
            ),
            "profiles[0].pluginConfig[0].args.addedAffinity",
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/a]}}]}]",
            "args.ignoredResources: example.com/a",
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResourceGroups: [example.com]}}]}]",
            "args.ignoredResourceGroups: resources of example.com",
        ),
        (
            (
                "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: "
                "[{topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}]}]"
            ),
            "args.defaultConstraints: zone with DoNotSchedule",
        ),
        ("profiles: 3", "Expected `array`, got `int` - at `$.profiles`"),
        ("profiles: [", "line 4"),
        ("---\na: 1", "has 2 documents"),
    ],
)
def test_what_cannot_be_honoured_is_named(tmp_path, text, said):
    """Whatever would change a filter, and whatever upstream would refuse, is named with its place in the file."""
    assert any(said in one for one in problems(tmp_path, text)), problems(tmp_path, text)


def test_another_kind_is_refused(tmp_path):
    """An older version, or a file of something else, is named."""
    head = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
    assert (
        "give a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1"
        in problems(tmp_path, "", head)[0]
    )


def test_a_file_that_is_not_there_is_named(tmp_path):
    """No path is no problem; a wrong one is."""
    assert list(scheduler_config_problems("")) == []
    (said,) = scheduler_config_problems(str(tmp_path / "none.yaml"))
    assert "cannot be read (No such file or directory)" in said
