"""A pod in, its recommendation out."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from tests.vertical.recommender.live import story
from tests.vertical.recommender.running import Run, pod, vpa

from kubetide.units.time import minutes
from kubetide.vertical.recommender.pod_recommendation import answer_for_pod
from kubetide.vertical.targets import Target

USAGE = ("web-1", "app", 380, 1 << 29)


def a_pod(*containers, namespace="shop", **labels):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "web-", "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": name} for name in containers]},
    }


def asked(state, body, decided=()):
    found = answer_for_pod(state, dict(decided), json.dumps(body).encode())
    return found.status, json.loads(found.body)


def after_a_pass(*vpas):
    run = Run()
    run.tick(USAGE, vpas=list(vpas), pods=[pod(containers=("app", "log"))])
    return run.state


def test_a_pod_that_is_not_there_yet_gets_what_its_vpa_recommends():
    """Only its own containers are answered for, with the sentence that explains them."""
    status, answer = asked(after_a_pass(vpa(mode="Initial")), a_pod("app", "new", app="web", version="2"))
    assert status == 200
    [found] = answer["recommendations"]
    assert (found["namespace"], found["name"], found["updateMode"]) == ("shop", "web", "Initial")
    assert found["why"].startswith("It recommends cpu 442m and memory 600Mi for app")
    [container] = found["containerRecommendations"]
    assert container["containerName"] == "app"
    assert container["target"] == {"cpu": "442m", "memory": "628694953"}
    assert container.keys() == {"containerName", "target", "lowerBound", "upperBound", "uncappedTarget"}


def test_every_vpa_that_selects_the_pod_answers():
    """In the order of their names; one whose target is not there selects nothing."""
    lost = replace(vpa("lost"), target=Target(problem="no such object"))
    status, answer = asked(
        after_a_pass(vpa("b"), vpa("a"), vpa("c", "app=api"), lost), a_pod("app", app="web")
    )
    assert (status, [one["name"] for one in answer["recommendations"]]) == (200, ["a", "b"])


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (a_pod("app", app="api"), 404, "no VPA of namespace shop selects a pod with these labels: app=api"),
        (a_pod("app", namespace="", app="web"), 404, "no VPA of namespace default selects"),
        ({"kind": "Deployment", "spec": {}}, 400, "it is a Deployment, not a Pod"),
        ({"kind": "Pod", "spec": 3}, 400, "no pod as JSON: Expected `object`"),
        ([], 400, "no pod as JSON"),
    ],
    ids=["labels", "namespace", "kind", "form", "list"],
)
def test_what_cannot_be_answered_says_why(body, status, said):
    """A pod that no VPA selects, and what is no pod."""
    code, answer = asked(after_a_pass(vpa()), body)
    assert code == status
    assert answer["message"].startswith(said)


def test_advice_answers_once_a_pass_has_ended():
    """Without a right to write the answer is what would be written; before the first pass there is none."""

    async def main(world):
        body = json.dumps(a_pod("app", namespace="default", app="web")).encode()
        before = world.controller.answer_for_pod(body)
        assert (before.status, "no pass has ended" in before.body.decode()) == (503, True)
        await world.begin()
        await world.run_for(minutes(1.5))
        assert not (await world.status()).recommendation
        found = world.controller.answer_for_pod(body)
        [one] = json.loads(found.body)["recommendations"]
        assert (found.status, one["containerRecommendations"][0]["target"]["cpu"]) == (200, "442m")

    story(main, acts=False)
