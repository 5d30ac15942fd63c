"""The field ``advanced`` of ScaledObjects: the HPA's name and behavior, in the HPA that is shown and wherever it is named."""

from __future__ import annotations

import msgspec
import pytest
from tests.elastic.running import HOME
from tests.elastic.scaled_objects import EXTERNAL, NOW, START, source
from tests.elastic.test_keda_mixed import HALF, add, at, run, said, status

from kubetide.elastic.keda.core import ALGORITHM
from kubetide.elastic.keda.decide import decide
from kubetide.elastic.keda.hpas import hpa_of
from kubetide.elastic.keda.outcomes import absorb
from kubetide.elastic.keda.outlook import lines
from kubetide.elastic.keda.state import Delta
from kubetide.objects.hpa import HpaStatus
from kubetide.objects.kinds import HPAS, SCALED_OBJECTS
from kubetide.units.time import Instant, seconds

SLOW = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}


def advanced(trigger=EXTERNAL, **config):
    """An object whose HPA is so configured."""
    return source(trigger, advanced={"horizontalPodAutoscalerConfig": config})


def test_behavior_and_name_are_those_of_the_hpa():
    """They are passed on as they are; without them there is KEDA's name, and no behavior."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 30, "selectPolicy": "Min"}, **SLOW}
    found = advanced(name="web-load", behavior=behavior)
    assert found.refused == ()
    hpa = hpa_of(found, (), HpaStatus())
    assert hpa.metadata.name == "web-load"
    assert msgspec.json.decode(msgspec.json.encode(hpa.spec.behavior)) == behavior
    plain = hpa_of(source(advanced={"restoreToOriginalReplicaCount": False}), (), HpaStatus())
    assert (plain.metadata.name, plain.spec.behavior) == ("keda-hpa-worker", None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (advanced(name="Web Load"), "advanced.horizontalPodAutoscalerConfig.name: 'Web Load' cannot be"),
        (advanced(name=7), "advanced.horizontalPodAutoscalerConfig.name: 7 cannot be"),
        (
            advanced(behavior={"scaleUp": {"stabilizationWindowSeconds": "long"}}),
            "advanced.horizontalPodAutoscalerConfig.behavior: Expected `int | null`, got `str`",
        ),
        (
            advanced(behavior={"scaleUp": {"selectPolicy": "Largest"}}),
            'advanced.horizontalPodAutoscalerConfig.behavior.scaleUp.selectPolicy: Unsupported value: "Largest"',
        ),
        (
            advanced(behavior={"scaleDown": {"policies": [{"type": "Pods", "value": 0}]}}),
            "advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.policies[0].value: Invalid value: 0",
        ),
        (
            advanced(behavior={"scaleDown": {"policies": [{"type": "Pods", "value": 2}]}}),
            "advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 0",
        ),
        (
            source(advanced={"horizontalPodAutoscalerConfig": "none"}),
            "advanced.horizontalPodAutoscalerConfig: write name and behavior into it",
        ),
    ],
)
def test_what_cannot_be_in_an_hpa_is_refused_by_name(given, words):
    """In the words of the API server where it would refuse the HPA."""
    assert words in "; ".join(given.refused)


def test_of_two_objects_with_one_hpa_the_older_one_is_followed():
    """The younger names the older and the field; it is followed once the older has another name."""
    config = {"horizontalPodAutoscalerConfig": {"name": "load"}}
    old = source(name="b", advanced=config)
    new = source(
        name="a",
        created=Instant(START + seconds(9)),
        advanced=config,
        scaleTargetRef={"name": "other"},
    )
    state = ALGORITHM.core().state
    state.apply(Delta(sources=(new, old)))
    assert [key for key in state.sources if state.follows(key)] == [old.key]
    commands = decide(state, NOW)
    [notice] = commands.notices
    assert notice.message == (
        "ScaledObject b, which is older, has the HPA name load: "
        "write another advanced.horizontalPodAutoscalerConfig.name"
    )
    absorb(state, commands, [], NOW)
    assert state.due(NOW) == []
    state.apply(Delta(sources=(source(name="b"),)))
    assert state.follows(new.key)
    assert new.key in state.due(NOW)


def test_the_name_stands_wherever_the_hpa_is_named():
    """In the status, and in what explain says."""
    core, found = ALGORITHM.core(), advanced(name="web-load")
    core.state.apply(Delta(sources=(found,)))
    [(_, raw)] = decide(core.state, NOW).statuses
    assert msgspec.json.decode(raw)["hpaName"] == "web-load"
    assert lines(core, "shop/worker", NOW, "")[-1].endswith("kubetide explain hpa web-load -n shop")


def test_the_hpa_that_is_shown_has_the_name_and_goes_by_the_behavior():
    """One pod a minute, and events about the object; a new name in its place is another HPA, and the old one is gone."""

    async def story(world):
        world.usage.milli = 200
        config = {"name": "web-load", "behavior": SLOW}
        await add(world, HALF, minReplicaCount=1, advanced={"horizontalPodAutoscalerConfig": config})
        async with world.running():
            assert await at(world, "08:00:50") == 3
            assert await at(world, "08:01:50") == 4
            assert (await status(world))["hpaName"] == "web-load"
            config = {"horizontalPodAutoscalerConfig": {"name": "renamed"}}
            patch = {"spec": {"advanced": config}}
            await world.cluster.patch(SCALED_OBJECTS, "web", patch, namespace=HOME)
            await at(world, "08:03:50")
            assert (await status(world))["hpaName"] == "renamed"
        assert ("ScaledObject", "web", "SuccessfulRescale") in await world.events()
        hpas = {
            key
            for record in world.records.lines
            if record.loop == "horizontal"
            for key in ("web-load", "renamed", "keda-hpa-web")
            if key.encode() in bytes(record.state)
        }
        assert hpas == {"web-load", "renamed"}

    run(story)


def test_an_hpa_of_the_name_in_the_cluster_is_kedas():
    """The object is left alone, and says which HPA is there."""

    async def story(world):
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        body = {"metadata": {"name": "web-load"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
        await world.cluster.create(HPAS, body, namespace=HOME)
        config = {"horizontalPodAutoscalerConfig": {"name": "web-load"}}
        await add(world, HALF, minReplicaCount=1, advanced=config)
        async with world.running():
            await at(world, "08:01:00")
            assert (await said(world))["Ready"] == "ScaledObjectCheckFailed"
            [ready, _] = (await status(world))["conditions"]
            assert ready["message"].startswith("HorizontalPodAutoscaler web-load is there")

    run(story, ("scaledobjects", "horizontal"))
