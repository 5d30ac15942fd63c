"""Upstream's recommender, updater and admission controller on a real control plane, and ours beside them, advising.

Nobody else changes anything there. Both recommenders are given the same usage, minute by minute; both webhooks are sent
the same reviews; both updaters look at the same pods.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from random import Random
from typing import Any, NamedTuple

import aiohttp
import pytest
from tests.conformance.vertical_admission import meaning_of
from tests.conftest import skip_without_plane
from tests.plane.running import ADMIN_TOKEN, running_plane
from tests.plane.vpa_advisor import Key, advisor, answering, chosen
from tests.plane.vpa_programs import series_of, skip_without_vpa_programs, upstream, upstream_webhook
from tests.plane.vpa_reviews import as_json, reviews
from tests.plane.vpa_stage import OURS, UPSTREAM, Stage, stage_on

from kubetide.objects.kinds import PODS
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.units.patch import json_patch
from kubetide.vertical.annotations import IN_PLACE_UPDATED
from kubetide.vertical.updater.decision import Evict

pytestmark = pytest.mark.slow

GATE = {"feature-gates": "PerVPAConfig=true"}
RECOMMENDER = {
    "recommender-interval": "200ms",
    "memory-aggregation-interval": "10m",
    "memory-aggregation-interval-count": "144",
    "cpu-histogram-decay-half-life": "20m",
    "memory-histogram-decay-half-life": "40m",
    "confidence-interval-cpu": "30m",
    "confidence-interval-memory": "30m",
    "container-recommendation-max-allowed-cpu": "2500m",
    # A few of them in each pass: upstream's writing of all takes seconds.
    "checkpoints-timeout": "1ms",
}
UPDATER = {"use-admission-controller-status": "false"}
HANDED_OVER = 3
"""Minutes that are played after each start from checkpoints."""


class Seen(NamedTuple):
    """The result of a stage.

    Attributes:
        recommended: What was recommended of each VPA, one thing after another, by ours and by upstream's: from nothing,
            and from checkpoints of upstream's and of ours.
        left: Statuses that ours would write at the end of the first play, beside upstream's.
        quality: How many samples of CPU were how far from what was recommended, by ours and by upstream's.
        answers: To each review, of ours and of upstream's.
        changes: What is done to pods, by ours and by upstream's: ``evict``, or the resources that they get.
    """

    recommended: dict[str, tuple[dict[Key, Any], dict[Key, Any]]]
    left: dict[Key, str]
    quality: tuple[dict[str, float], dict[str, float]]
    answers: list[tuple[dict[str, Any], dict[str, Any], Any]]
    changes: tuple[dict[Key, Any], dict[Key, Any]]


def seen_on(plane, *, seed, count, minutes):
    async def run(clock):
        async with stage_on(plane, clock, seed=seed, count=count, steps=minutes + 3 * HANDED_OVER) as stage:
            recommended, left, quality = await recommenders(stage, seed, minutes)
            answers = await webhooks(stage, seed)
            return Seen(recommended, left, quality, answers, await updaters(stage))

    return run_real(run)


async def recommenders(stage: Stage, seed: int, minutes: int):
    """Play the usage to both, with OOM kills half way; then let both begin from what the other has stored."""
    plane, clock, found = stage.plane, stage.clock, {}
    flags = {**RECOMMENDER, **GATE}
    # Ours is told when to make a pass; it waits for usage for as long as its interval, also on a busy machine.
    ours_flags = {**RECOMMENDER, "per-vpa-config": "true", "recommender-interval": "1m"}
    half = minutes // 2
    async with advisor(plane, clock, OURS, ours_flags) as ours:
        await ours.tick()  # before upstream writes anything that ours would begin from
        with upstream(plane, UPSTREAM, flags) as theirs:
            await stage.play_on(ours, 0, half)
            await stage.kill(Random(seed), len(stage.play.pods) // 10, half)
            await ours.tick()
            await stage.passes(2)
            await stage.play_on(ours, half + 1, minutes - 1)
            left = await ours.would_write()
            quality = cpu_quality(series_of(ours.registry.text())), cpu_quality(theirs.series())
            found["from nothing"] = ours.histories.of, stage.written.taken()
            await stage.checkpointed()
    found["from upstream's checkpoints"] = await begun_anew(stage, flags, ours_flags, minutes)
    # Ours takes over, and writes; it writes all checkpoints in each pass.
    first = minutes + HANDED_OVER
    stage.play.last, stage.play.asked[OURS] = first + HANDED_OVER - 1, first
    acting = {**ours_flags, "checkpoints-timeout": "1m"}
    async with advisor(plane, clock, OURS, acting, acts=True) as ours:
        for _ in range(HANDED_OVER):
            await ours.tick()
    stage.written.taken()
    found["from ours"] = await begun_anew(stage, flags, ours_flags, first + HANDED_OVER)
    return found, left, quality


def cpu_quality(series):
    """Return the counts of samples of CPU, of all modes together: of VPAs that share pods upstream's has that of any.

    A sample of memory counts again in each pass that it is played in.
    """
    found = Counter()
    for name, value in series.items():
        if re.match(r"vpa_quality_(cpu_\w+_(count|bucket)|usage\w+(count|bucket){.*resource=\"cpu\")", name):
            found[re.sub(r',?update_mode="\w*"', "", name)] += value
    return dict(found)


async def begun_anew(stage, flags, ours_flags, first):
    """Begin both from the checkpoints that are there; ours has read them before upstream's writes others."""
    async with advisor(stage.plane, stage.clock, OURS, ours_flags) as ours:
        stage.play.last, stage.play.asked[OURS] = first, first
        await ours.tick()
        with upstream(stage.plane, UPSTREAM, flags):
            await stage.play_on(ours, first, first + HANDED_OVER - 1)
            return ours.histories.of, stage.written.taken()


async def webhooks(stage: Stage, seed: int):
    """Ask both."""
    found = []
    with upstream_webhook(stage.plane, GATE) as (url, tls):
        async with (
            answering(stage.plane, stage.clock, GATE) as ours,
            aiohttp.ClientSession(connector=make_connector(ssl=tls)) as session,
        ):
            for review in reviews(stage, seed):
                body = json.dumps(review).encode()
                theirs = await asked(session, url, body)
                found.append((review, meaning_of(review, ours(body)), theirs and meaning_of(review, theirs)))
    return found


async def asked(session, url, body):
    """Return the answer; nothing where the program fails over it, which closes the connection."""
    headers = {"Content-Type": "application/json"}
    try:
        async with session.post(url, data=body, headers=headers) as said:
            return await said.read()
    except aiohttp.ServerDisconnectedError:
        return b""


async def updaters(stage: Stage):
    """Let ours say what it would do, and upstream's do it, in one loop.

    A resize that the API server would refuse counts as the eviction that comes of it.
    """
    before = {key: as_json(pod) for key, pod in stage.pods.objects.items()}
    # Also how long the loop may take; upstream's needs a tenth of a second for an eviction.
    flags = {**UPDATER, "updater-interval": f"{max(5, len(before) // 20)}s"}
    ours: dict[Key, Any] = {}
    for command in await chosen(stage.plane, stage.clock, flags):
        if isinstance(command, Evict) or await is_refused(stage.plane, command):
            ours[command.pod] = "evict"
        else:
            ours[command.pod] = resources_of(json_patch(before[command.pod], command.resources))
    with upstream(stage.plane, "vpa-updater", flags | GATE) as updater:
        total = 'vpa_updater_execution_latency_seconds_count{step="total"}'
        await stage.until("a loop is over", lambda: updater.series().get(total, 0) >= 1)
    theirs: dict[Key, Any] = {}
    for pod in (await stage.cluster.list(PODS)).items:
        key = pod.metadata.namespace, pod.metadata.name
        if pod.metadata.deletion_timestamp is not None:
            theirs[key] = "evict"
        elif IN_PLACE_UPDATED in (pod.metadata.annotations or {}):
            theirs[key] = resources_of(as_json(pod))
    return ours, theirs


async def is_refused(plane, command):
    """Return whether the API server takes a resize for an invalid one; nothing is changed."""
    namespace, name = command.pod
    url = f"{plane.url}/api/v1/namespaces/{namespace}/pods/{name}/resize?dryRun=All"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json-patch+json"}
    data = json.dumps(list(command.resources))
    async with (
        aiohttp.ClientSession(connector=make_connector(ssl=plane.connection.tls())) as session,
        session.patch(url, data=data, headers=headers) as said,
    ):
        assert said.status in {200, 422}, await said.text()
        return said.status == 422


def resources_of(pod):
    return {one["name"]: one.get("resources") for one in pod["spec"]["containers"]}


def played(folder, **how):
    """Play all of it on a plane of its own; skips without the programs."""
    skip_without_plane()
    skip_without_vpa_programs()
    with running_plane(folder, controllers=False) as plane:
        return seen_on(plane, **how)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The result for some VPA objects after eight minutes."""
    return played(tmp_path_factory.mktemp("still-plane"), seed=7, count=30, minutes=8)


def check_recommendations(seen):
    assert list(seen.recommended) == ["from nothing", "from upstream's checkpoints", "from ours"]
    for start, (ours, theirs) in seen.recommended.items():
        assert ours, start
        assert ours == theirs, start
    assert seen.left == {}


def check_answers(seen):
    for review, ours, theirs in seen.answers:
        assert ours == theirs, review


def test_each_pass_recommends_the_same(seen):
    """From nothing and through OOM kills, from upstream's checkpoints, and from those that ours has written."""
    check_recommendations(seen)


def test_reviews_are_answered_alike(seen):
    """Pods get the same patches, and of VPA objects the same ones are refused, in the same words."""
    check_answers(seen)
    assert {ours["allowed"] for _, ours, _ in seen.answers} == {True, False}
    assert any("patch" in ours for review, ours, _ in seen.answers if is_pod(review))


def test_as_much_usage_is_as_far_from_what_is_recommended(seen):
    """By the series of upstream's names."""
    ours, theirs = seen.quality
    assert len(theirs) > 100
    assert ours == theirs


def is_pod(review):
    return review["request"]["resource"]["resource"] == "pods"


def test_the_same_pods_are_changed(seen):
    """Those are evicted, and those are resized to the same amounts."""
    ours, theirs = seen.changes
    assert ours == theirs
    assert {one == "evict" for one in ours.values()} == {True, False}


@pytest.mark.long
def test_two_hundred_over_an_hour(tmp_path):
    """The same of 200 VPA objects; of pods that are equally urgent upstream takes any, so they are counted by VPA."""
    seen = played(tmp_path, seed=11, count=200, minutes=60)
    check_recommendations(seen)
    check_answers(seen)
    print(figures(seen))
    ours, theirs = (Counter(name.rpartition("-")[0] for _, name in found) for found in seen.changes)
    assert ours == theirs


def figures(seen):
    """Say how much was compared."""
    ours, theirs = seen.changes
    reported = {start: sum(map(len, found.values())) for start, (found, _) in seen.recommended.items()}
    pods = sum(is_pod(review) for review, _, _ in seen.answers)
    other = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
    return (
        f"{len(seen.recommended['from nothing'][0])} VPAs with recommendations: {reported}; reviews of {pods} pods and "
        f"{len(seen.answers) - pods} VPAs; changes of {len(ours)} pods, other ones: {other}"
    )
