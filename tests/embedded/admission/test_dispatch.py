"""How webhooks are asked, in virtual time and without a socket."""

from __future__ import annotations

import asyncio

import pytest
from tests.embedded.admission.asking import (
    Answering,
    attributes,
    hooks,
    set_label,
    target,
    validating,
    webhook,
)

from kubetide.embedded.apiserver.admission import CallError, Dispatcher
from kubetide.embedded.apiserver.admission.review import Denied
from kubetide.ports.errors import InternalError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")


def mutate(say, *webhooks, asked=None, caller=None):
    """Return the resulting object, the webhooks that were called, and the warnings."""
    caller = caller or Answering(say)
    warnings = []

    async def main(_clock):
        return await Dispatcher(caller, 1).mutate(hooks(*webhooks), asked or attributes(), warnings.append)

    return run_virtual(main, start=START), caller, warnings


def again(name, **changes):
    return webhook(name, reinvocationPolicy="IfNeeded", **changes)


def labels(obj):
    return obj["metadata"]["labels"]


def test_each_sees_what_those_before_it_have_made():
    """Mutating webhooks are called one after the other, each with the object as it is by then."""
    only_after_a = {"objectSelector": {"matchLabels": {"a": "yes"}}}
    found, caller, _ = mutate(
        lambda name, _request: set_label(name[0]),
        webhook("a.x.y"),
        webhook("b.x.y", **only_after_a),
    )
    assert labels(found) == {"a": "yes", "b": "yes"}
    assert caller.names == ["a.x.y", "b.x.y"]
    assert labels(caller.asked[1][1]["object"]) == {"a": "yes"}
    uids = [request["uid"] for _, request in caller.asked]
    assert len(set(uids)) == 2


REINVOCATION = [
    # webhooks in order, who changes the object, who is asked
    ((again("a.x.y"), webhook("b.x.y")), "b", "aba"),
    ((again("a.x.y"), webhook("b.x.y")), "", "ab"),
    ((again("a.x.y"), webhook("b.x.y")), "a", "ab"),
    ((webhook("a.x.y"), webhook("b.x.y")), "b", "ab"),
    ((again("a.x.y"), again("b.x.y")), "ab", "aba"),
    ((again("a.x.y"), again("b.x.y"), webhook("c.x.y")), "c", "abcab"),
    ((webhook("a.x.y"), again("b.x.y"), webhook("c.x.y")), "ac", "abcb"),
]


@pytest.mark.parametrize(("webhooks", "changing", "order"), REINVOCATION)
def test_reinvocation(webhooks, changing, order):
    """A webhook with IfNeeded is called once more when a later one has changed the object; none a third time."""
    found, caller, _ = mutate(
        lambda name, _request: set_label(name[0]) if name[0] in changing else None, *webhooks
    )
    assert "".join(name[0] for name in caller.names) == order
    assert set(labels(found)) == set(changing)


def test_a_change_in_the_second_round_is_seen_by_those_after_it():
    """One that changes the object each time makes those be asked again that come after it."""
    counts = {"a": 0}

    def say(name, _request):
        if name[0] == "a":
            counts["a"] += 1
            return set_label("a", str(counts["a"]))
        return set_label("b")

    _, caller, _ = mutate(say, again("a.x.y"), again("b.x.y"))
    assert "".join(name[0] for name in caller.names) == "abab"


def test_a_deletion_cannot_be_changed():
    """A patch for an object that goes is refused, whatever the failure policy."""
    deletion = attributes(target=target("DELETE"), object=None, old={"metadata": {"name": "p", "labels": {}}})
    with pytest.raises(
        InternalError, match=r'"a.x.y" attempted to modify the object, which is not supported'
    ):
        mutate(lambda *_: set_label("a"), webhook("a.x.y", failurePolicy="Ignore"), asked=deletion)
    found, caller, _ = mutate(lambda *_: None, webhook("a.x.y"), asked=deletion)
    assert (found, caller.names) == (None, ["a.x.y"])


def test_a_time_out_is_the_clocks():
    """A webhook is waited for as many seconds as it says, of the cluster's time."""

    async def main(clock):
        async def forever():
            await clock.sleep(seconds(1000))

        dispatcher = Dispatcher(Answering(lambda *_: forever()), 1)
        before = clock.now()
        with pytest.raises(InternalError, match=r"a.x.y.timeout=7s.: context deadline exceeded"):
            await dispatcher.mutate(hooks(webhook("a.x.y", timeoutSeconds=7)), attributes(), print)
        assert clock.now() - before == seconds(7)

    run_virtual(main, start=START)


def test_validating_webhooks_are_asked_at_once():
    """All of them are asked, whatever the first says; of several refusals the first in order counts."""

    async def main(clock):
        async def answer(name):
            await clock.sleep(seconds({"a": 3, "b": 2, "c": 1}[name[0]]))
            return {"allowed": name[0] == "a", "status": {"message": name}, "warnings": [name]}

        caller = Answering(lambda name, _request: answer(name))
        warnings = []
        before = clock.now()
        with pytest.raises(Denied, match=r'"b.x.y" denied the request: b.x.y'):
            await Dispatcher(caller, 1).validate(
                validating(webhook("a.x.y"), webhook("b.x.y"), webhook("c.x.y")),
                attributes(),
                warnings.append,
            )
        assert clock.now() - before == seconds(3)
        assert sorted(warnings) == ["a.x.y", "b.x.y", "c.x.y"]

    run_virtual(main, start=START)


def test_without_a_caller_policies_decide():
    """A run that cannot call anybody fails the request under Fail and goes on under Ignore."""

    async def main(_clock):
        dispatcher = Dispatcher(None, 1)
        with pytest.raises(InternalError, match="failed to call webhook: no webhook caller in this run"):
            await dispatcher.validate(validating(webhook("a.x.y")), attributes(), print)
        await dispatcher.validate(validating(webhook("a.x.y", failurePolicy="Ignore")), attributes(), print)

    run_virtual(main, start=START)


def test_a_failed_call_is_passed_over_and_a_denial_is_not():
    """Ignore is for calls that fail."""

    class Failing:
        async def call(self, _address, _body):
            await asyncio.sleep(0)
            raise CallError("no")

    found, _, _ = mutate(None, webhook("a.x.y", failurePolicy="Ignore"), caller=Failing())
    assert labels(found) == {}
    with pytest.raises(InternalError, match=r'failed calling webhook "a.x.y": failed to call webhook: no'):
        mutate(None, webhook("a.x.y"), caller=Failing())
    with pytest.raises(Denied, match="denied the request without explanation"):
        mutate(lambda *_: {"allowed": False}, webhook("a.x.y", failurePolicy="Ignore"))


def test_uids_are_drawn_from_the_seed():
    """The same seed asks with the same uids."""

    def uids(seed):
        caller = Answering(lambda *_: None)

        async def main(_clock):
            await Dispatcher(caller, seed).mutate(hooks(webhook("a.x.y")), attributes(), print)

        run_virtual(main, start=START)
        return [request["uid"] for _, request in caller.asked]

    assert uids(1) == uids(1) != uids(2)


def test_the_older_review_is_spoken():
    """A webhook that takes v1beta1 only is called in it, and its uid is not checked, as upstream does not."""
    seen = []

    class Old:
        async def call(self, _address, body):
            seen.append(body)
            return b'{"response":{"allowed":true,"uid":"x"}}'

    mutate(None, webhook("a.x.y", admissionReviewVersions=["v2", "v1beta1", "v1"]), caller=Old())
    assert b'"apiVersion":"admission.k8s.io/v1beta1"' in seen[0]
