"""Passes of the recommender, and what bad input does to them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.vertical.recommender.running import START, WEB, Run, pod, samples, vpa

from kubetide.objects.vpa import (
    ContainerPolicy,
    ResourcePolicy,
    VpaStatus,
)
from kubetide.units.time import Instant, hours, minutes
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.decide import absorb, checkpoints, decide
from kubetide.vertical.recommender.decision import Failure, Outcomes
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.dump import dump
from kubetide.vertical.recommender.explain import explain
from kubetide.vertical.recommender.facts.views import History, Oom, StatusView, Usage
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State

MIB = 1 << 20


def test_a_pod_gets_a_recommendation_in_the_pass_that_first_sees_it():
    """One sample is enough: the percentile is its bucket's end, raised by the margin."""
    run = Run()
    commands = run.tick(("web-1", "app", 380, 450_000_000), vpas=[vpa()], pods=[pod()])
    assert [(write.namespace, write.name) for write in commands.statuses] == [WEB]
    assert run.target() == {"cpu": "442m", "memory": "548861636"}
    assert [one.type for one in run.status().conditions] == ["RecommendationProvided"]


@pytest.mark.parametrize(
    "absurd",
    [
        {"memory_aggregation_interval_seconds": 10_000_000_001},
        {"memory_aggregation_interval_count": 10**20},
        {"oom_bump_up_ratio": "1e30"},
    ],
    ids=lambda policy: next(iter(policy)),
)
def test_absurd_numbers_of_one_policy_stop_no_other_vpa(absurd):
    """With PerVPAConfig a window longer than time can hold ends no pass; its own VPA gets a recommendation, too."""
    run = Run(Settings(per_vpa_config=True))
    policy = ResourcePolicy(container_policies=(ContainerPolicy(container_name="*", **absurd),))
    run.tick(
        ("web-1", "app", 380, 450_000_000),
        ("other-1", "app", 380, 450_000_000),
        vpas=[vpa(policy=policy), vpa("other", "app=other")],
        pods=[pod(), pod("other-1", {"app": "other"})],
    )
    run.tick(ooms=[Oom("shop", "web-1", "app", run.now, 450_000_000)])
    assert run.target()["cpu"] == run.target(("shop", "other"))["cpu"] == "442m"


def test_nothing_is_written_twice():
    """A pass without samples whose status says the same writes nothing."""
    run = Run()
    run.tick(vpas=[vpa()], pods=[pod()])
    assert run.tick().statuses == ()


def test_quantities_spelled_otherwise_are_the_same():
    """A stored status that spells the same amounts differently is left alone."""
    run = Run()
    run.tick(vpas=[vpa()], pods=[pod()])
    text = msgspec.json.encode(run.status()).replace(b'"250Mi"', b'"262144000"').replace(b'"25m"', b'"0.025"')
    assert b"0.025" in text
    status = msgspec.json.decode(text, type=VpaStatus)
    assert run.tick(statuses=[StatusView(*WEB, status)]).statuses == ()


def test_a_refused_status_is_written_again():
    """A status that was not written does not count as written."""
    run = Run()
    run.state.apply(Delta(at=START, vpas=[vpa()], pods=[pod()]))
    commands = decide(run.state, START)
    failed = Outcomes(failures=(Failure("status", *WEB, "conflict"),))
    absorb(run.state, commands, failed, START)
    assert run.status() == VpaStatus()
    assert len(run.tick().statuses) == 1


@pytest.mark.parametrize(
    "row",
    [
        ("web-1", "app", -1, -1),
        ("web-1", "app", (1 << 63) - 1, (1 << 63) - 1),
        ("web-1", "unknown", 100, 100),
        ("nobody", "app", 100, 100),
    ],
    ids=["negative", "absurd", "unknown container", "unknown pod"],
)
def test_bad_samples_change_nothing_for_others(row):
    """A negative, an absurd or a stray sample neither ends the pass nor changes another container."""
    good = ("web-2", "side", 500, 300 * MIB)
    both = [pod(), pod("web-2", containers=("side",))]
    plain, bad = Run(), Run()
    plain.tick(good, vpas=[vpa()], pods=both)
    bad.tick(row, good, vpas=[vpa()], pods=both)
    of = [
        {one.container_name: one for one in run.status().recommendation.container_recommendations}["side"]
        for run in (plain, bad)
    ]
    assert of[0] == of[1]


def test_samples_back_in_time_are_dropped():
    """A sample not later than the last one counts for nothing."""
    run = Run()
    run.tick(("web-1", "app", 380, 450_000_000), vpas=[vpa()], pods=[pod()])
    before = run.state.aggregates.cpu.weights.copy()
    run.state.apply(Delta(at=run.now, samples=samples(START, ("web-1", "app", 900, 900 * MIB))))
    assert (run.state.aggregates.cpu.weights == before).all()
    assert run.state.aggregates.count.sum() == 1


def test_one_answer_may_name_a_pod_twice():
    """A container that occurs twice in an answer is fed once a sample, and the second of the same time is dropped."""
    run = Run()
    row = ("web-1", "app", 380, 450_000_000)
    run.tick(row, row, vpas=[vpa()], pods=[pod()])
    assert run.state.aggregates.count.sum() == 1


def test_a_pending_pod_takes_the_place_of_a_pod_of_its_name():
    """A pod that was made anew and is pending is not there yet; when it runs it begins with a window of its own."""
    run = Run()
    run.tick(("web-0", "app", 100, 300 * MIB), vpas=[vpa()], pods=[pod("web-0")])
    kill = Oom("shop", "web-0", "app", run.now, 900 * MIB)
    run.tick(pods=[pod("web-0", phase="Pending")], ooms=[kill])
    assert [one.type for one in run.status().conditions] == ["NoPodsMatched", "RecommendationProvided"]
    assert run.state.pods == {}
    assert int(run.target()["memory"]) > 1080 * MIB
    before = run.state.aggregates.memory.total.sum()
    run.tick(("web-0", "app", 100, 300 * MIB), pods=[pod("web-0")])
    assert run.state.aggregates.memory.total.sum() > before


def test_memory_saver_keeps_pods_with_history():
    """A live pod that no VPA selects yet and that has a history is tracked, and found by a VPA that comes later."""
    run = Run(Settings(memory_saver=True, storage="prometheus"))
    used = Usage(np.array([[START], [380]]), np.array([[START], [450_000_000]]))
    past = [
        History("shop", "web-1", {"app": "web"}, {"app": used}),
        History("shop", "gone", {"app": "web"}, {"app": used}),
    ]
    run.tick(history=past, pods=[pod()])
    assert list(run.state.pods) == [("shop", "web-1")]
    run.tick(("web-1", "app", 380, 450_000_000), vpas=[vpa()])
    assert run.target() == {"cpu": "442m", "memory": "548861636"}


def test_an_oom_raises_memory_and_an_old_one_does_not():
    """An OOM counts as the request raised by a fifth or by 100 MiB; one older than a window is named."""
    run = Run()
    run.tick(("web-1", "app", 100, 300 * MIB), vpas=[vpa()], pods=[pod()])
    before = run.target()["memory"]
    run.tick(ooms=[Oom("shop", "web-1", "app", run.now, 2000 * MIB)])
    assert int(run.target()["memory"]) > int(before)
    run.tick(ooms=[Oom("shop", "web-1", "app", Instant(run.now - hours(48)), 9000 * MIB)])
    assert run.result.problems[0].startswith("OOM of shop/web-1/app is discarded")
    run.tick(ooms=[Oom("shop", "gone", "app", run.now, 1)])
    assert run.result.problems == ()


def test_overlapping_vpas_each_get_a_recommendation():
    """Two VPAs that select the same pods are both recommended for, each by its own policy."""
    policy = ResourcePolicy(
        container_policies=(ContainerPolicy(container_name="*", max_allowed={"cpu": "100m"}),)
    )
    run = Run()
    run.tick(("web-1", "app", 380, 300 * MIB), vpas=[vpa(), vpa("other", policy=policy)], pods=[pod()])
    assert run.target(("shop", "other"))["cpu"] == "100m" != run.target()["cpu"]


def test_many_pods_of_one_group_are_fed_in_order_of_the_answer():
    """The sum of thousands of pods with the same labels is that of adding them one after another."""
    many = [pod(f"web-{number}") for number in range(3000)]
    rows = [
        (one.name, "app", 10 + number % 700, (10 + number % 500) * MIB) for number, one in enumerate(many)
    ]
    run = Run()
    run.tick(*rows, vpas=[vpa()], pods=many)
    for times in (2, 3, 5):
        rows = [(name, app, cpu, memory * times) for name, app, cpu, memory in rows]
        run.tick(*rows)
    [group] = run.state.groups.values()
    row = group.aggregates["app"]
    assert run.state.aggregates.count[row] == 4 * 3000
    assert run.state.aggregates.memory.total[row] == pytest.approx(
        sum(run.state.aggregates.memory.weights[row])
    )
    assert run.state.pod_count(run.state.vpas[WEB]) == 3000
    [stored] = checkpoints(run.state, [WEB], run.now)
    assert stored.status.memory_histogram.bucket_weights is None


def test_a_selector_that_changes_links_other_pods():
    """A VPA whose selector changes recommends for the pods that it then selects."""
    run = Run()
    pods = [pod(), pod("api-1", {"app": "api"}, ("api",))]
    run.tick(("web-1", "app", 380, 300 * MIB), vpas=[vpa()], pods=pods)
    run.tick(("api-1", "api", 380, 300 * MIB), vpas=[vpa(selector="app=api")])
    names = [one.container_name for one in run.status().recommendation.container_recommendations]
    assert names == ["api"]
    assert run.state.pod_count(run.state.vpas[WEB]) == 1


def test_aggregates_of_long_deleted_pods_are_dropped():
    """Eight days after its last sample an aggregate is forgotten, and its row used again."""
    run = Run()
    run.tick(("web-1", "app", 380, 300 * MIB), vpas=[vpa()], pods=[pod()])
    run.tick(gone_pods=[("shop", "web-1")])
    assert run.state.aggregate_count() == 1
    run.tick(after=hours(8 * 24))
    assert run.state.aggregate_count() == 0
    assert run.status().recommendation is not None
    run.tick()
    assert run.status().recommendation.container_recommendations is None


def test_a_dropped_sample_makes_no_aggregate():
    """An aggregate that was forgotten is made anew for a sample that counts, not for one that is dropped."""
    run = Run(Settings(memory_aggregation_interval=hours(1), memory_aggregation_interval_count=1))
    run.tick(("web-1", "app", 380, 300 * MIB), vpas=[vpa()], pods=[pod()])
    run.tick(after=hours(2))
    run.tick(("web-1", "app", -1, -1))
    old = samples(START, ("web-1", "app", 380, 300 * MIB))
    run.state.apply(Delta(at=run.now, samples=old))
    assert run.state.aggregate_count() == 0
    run.tick(("web-1", "app", 380, -1))
    assert run.state.aggregate_count() == 1
    assert run.target()["cpu"] == "442m"


def test_memory_saver_tracks_no_pod_that_is_gone():
    """A pod that is deleted before a VPA selects it leaves no aggregate."""
    run = Run(Settings(memory_saver=True))
    run.tick(pods=[pod()])
    run.tick(vpas=[vpa()], gone_pods=[("shop", "web-1")])
    assert run.state.aggregate_count() == 0
    assert run.status().recommendation.container_recommendations is None


def test_jobs_that_come_and_go_leave_nothing_behind():
    """Pods with labels of their own leave no label set, no group and no row once their aggregates are dropped."""
    run = Run()
    run.tick(vpas=[vpa()], pods=[])
    for number in range(30):
        job = pod(f"job-{number}", {"job": str(number)}, phase="Succeeded")
        run.tick((job.name, "app", 100, 90 * MIB), pods=[job])
        run.tick(gone_pods=[("shop", job.name)])
    assert (run.state.aggregate_count(), len(run.state.labels.sets)) == (30, 30)
    rows = len(run.state.aggregates.count)
    run.tick(after=hours(9 * 24))
    assert (run.state.aggregate_count(), len(run.state.groups), len(run.state.labels.sets)) == (0, 0, 0)
    assert not run.state.aggregates.cpu.weights.any()
    assert len(run.state.aggregates.count) == rows


def test_a_record_decides_again_to_the_byte():
    """A core that begins at a full record decides the same as the one that was running."""
    first = ALGORITHM.core()
    start = Delta(at=START, vpas=[vpa()], pods=[pod(), pod("web-2")])
    first.apply(ALGORITHM.encode(start), full=False)
    for minute in range(1, 40):
        now = Instant(START + minutes(minute))
        rows = samples(now, ("web-1", "app", 37 * minute, minute * 31 * MIB), ("web-2", "app", 50, 90 * MIB))
        first.apply(ALGORITHM.encode(Delta(at=now, samples=rows)), full=False)
        first.decide(now)
        first.absorb(ALGORITHM.encode(Outcomes()), now)
    second = ALGORITHM.core()
    second.apply(ALGORITHM.encode(dump(first.state)), full=True)
    assert ALGORITHM.encode(dump(second.state)) == ALGORITHM.encode(dump(first.state))
    later = Instant(START + minutes(50))
    delta = ALGORITHM.encode(Delta(at=later, samples=samples(later, ("web-1", "app", 4000, 900 * MIB))))
    for core in (first, second):
        core.apply(delta, full=False)
    assert first.decide(later) == second.decide(later)
    assert ALGORITHM.encode(dump(first.state)) == ALGORITHM.encode(dump(second.state))


def test_a_container_is_explained():
    """The explanation has the numbers of each step, the cap, and a picture of what was used."""
    policy = ResourcePolicy(
        container_policies=(ContainerPolicy(container_name="app", min_allowed={"cpu": "1"}),)
    )
    run = Run()
    run.tick(("web-1", "app", 380, 300 * MIB), vpas=[vpa(policy=policy)], pods=[pod()])
    lines = "\n".join(explain(run.state, *WEB, "app"))
    assert "shop/web/app: 1 sample of CPU from 2026-03-02T08:01:00Z" in lines
    assert "cpu: percentile 0.9 of the target is 385m; with a margin of 0.15 it is 442m" in lines
    assert "cpu: the target 442m is below minAllowed 1" in lines
    assert "cpu: target 1, from 1 to 100G" in lines
    assert "100.0% ########################################  <- target (0.9)" in lines
    with pytest.raises(KeyError, match="shop/none is not served by recommender default; it serves 1 VPAs"):
        explain(run.state, "shop", "none", "app")


def test_settings_name_the_flag_that_is_wrong():
    """A half-life of zero and a quantity that is none are refused with the flag's name."""
    with pytest.raises(ValueError, match="cpu-histogram-decay-half-life must be greater than 0"):
        Settings(cpu_histogram_decay_half_life=minutes(0))
    with pytest.raises(ValueError, match="container-recommendation-max-allowed-cpu"):
        Settings(container_recommendation_max_allowed_cpu="much")


def test_percentiles_of_an_empty_table_are_empty():
    """A recommender without VPAs decides nothing."""
    state = State()
    state.apply(Delta(at=START))
    assert decide(state, START).statuses == ()
    assert state.aggregates.cpu.percentiles(np.empty(0, np.int64), [0.5]).shape == (1, 0)
