"""Webhooks that answer wrongly, late or not at all, and objects that change while one is asked."""

from __future__ import annotations

import asyncio

import pytest
from tests.cluster.hook_server import bundle
from tests.cluster.webhook_answers import RECORDED, recordable, same_but_words
from tests.cluster.webhook_bench import CONFIG, KINDS, WHERE, bench

from kubetide.objects.kinds import (
    CONFIG_MAPS,
    PODS,
    VALIDATING_WEBHOOKS,
)
from kubetide.ports.errors import ApiError, InternalError
from kubetide.testing import builders


@pytest.mark.slow
def test_answers_are_those_of_the_real_server():
    """Every answer of a webhook, good or broken, leads to what kube-apiserver answered."""

    async def main(b):
        for case, recorded in RECORDED.items():
            stage, path = case.split()
            await b.configure(stage, path, "configmaps")
            answer = recordable(*await b.ask("POST", CONFIG, {"metadata": {"name": "a"}}))
            await b.client.delete(KINDS[stage], "hooks")
            await b.ask("DELETE", CONFIG)
            assert same_but_words(path, answer, recorded), (case, answer, recorded)

    bench(main)


@pytest.mark.parametrize("stage", ["mutating", "validating"])
def test_a_hanging_webhook_delays_only_its_own_request(stage):
    """It is waited for as long as it says, and meanwhile everybody else is answered."""

    async def main(b):
        await b.configure(stage, "hang", "configmaps", timeoutSeconds=1)
        slow = asyncio.ensure_future(b.ask("POST", CONFIG, {"metadata": {"name": "a"}}))
        await b.hooks.hanging.wait()
        assert (await b.ask("GET", CONFIG))[0] == 200
        await b.client.create(PODS, builders.pod("p"), **WHERE)
        assert not slow.done()
        code, answer, _ = await slow
        text = (
            'failed calling webhook "a.hooks.example.com": failed to call webhook: '
            f'Post "{b.hooks.url}/hang?timeout=1s": context deadline exceeded'
        )
        assert (code, answer["reason"]) == (500, "InternalError")
        assert answer["message"] == f"Internal error occurred: {text}"
        assert answer["details"] == {"causes": [{"message": text}]}

    bench(main)


def test_under_ignore_a_failed_call_changes_nothing():
    """With failurePolicy Ignore the request goes on without the webhook; a denial still counts."""

    async def main(b):
        for name, path in (("a", "hang"), ("b", "e500"), ("c", "wronguid")):
            await b.configure(
                "mutating", path, "configmaps", called=name, timeoutSeconds=1, failurePolicy="Ignore"
            )
        await b.client.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
        await b.configure("mutating", "deny", "configmaps", called="d", failurePolicy="Ignore")
        with pytest.raises(ApiError, match="denied the request"):
            await b.client.create(CONFIG_MAPS, builders.config_map("b"), **WHERE)

    bench(main)


def test_calls_that_cannot_be_made():
    """No listener, a wrong authority, one that is no PEM, a Service, a redirect, an endless answer: 500 says which."""

    async def main(b):
        huge = "failed to call webhook: the answer is larger than 8388608 bytes"
        redirected = "failed to call webhook: the server answered 302, and redirects are not followed"
        for client_config, text in (
            (b.hooks.untrusted("allow"), "x509: certificate signed by unknown authority"),
            ({**b.hooks.client_config("allow"), "caBundle": "aGk="}, "unable to parse bytes as PEM block"),
            ({"url": "https://127.0.0.1:1/x", "caBundle": bundle()}, "connect: connection refused"),
            (
                {"service": {"namespace": "a", "name": "hooks"}},
                ':443/?timeout=10s": service "hooks" not found',
            ),
            (b.hooks.client_config("redirect"), redirected),
            (b.hooks.client_config("huge"), huge),
        ):
            await b.configure("validating", "", "configmaps", client_config=client_config)
            with pytest.raises(
                InternalError, match="Internal error occurred: failed calling webhook "
            ) as caught:
                await b.client.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
            assert caught.value.message.endswith(text), caught.value.message
            await b.client.delete(VALIDATING_WEBHOOKS, "hooks")
        assert b.hooks.requests("allow") == []

    bench(main)


def test_an_object_that_changes_meanwhile_is_reviewed_again():
    """A patch that waits for a webhook is applied to what is there afterwards, once that has been reviewed."""

    async def main(b):
        await b.client.create(CONFIG_MAPS, builders.config_map("a", data={"k": "v"}), **WHERE)
        await b.configure("validating", "hang", "configmaps", operations=["UPDATE"])
        patch = {"metadata": {"labels": {"mine": "yes"}}}
        slow = asyncio.ensure_future(b.client.patch(CONFIG_MAPS, "a", patch, **WHERE))
        await b.hooks.hanging.wait()
        await b.client.delete(VALIDATING_WEBHOOKS, "hooks")
        await b.client.patch(CONFIG_MAPS, "a", {"data": {"k": "w"}}, **WHERE)
        b.hooks.go_on.set()
        made = await slow
        assert (made.data, made.metadata.labels) == ({"k": "w"}, {"mine": "yes"})
        assert [request["object"]["data"] for request in b.hooks.requests("hang")] == [{"k": "v"}, {"k": "w"}]

    bench(main)


def test_a_stale_version_is_a_conflict():
    """Where the client names a resourceVersion, a change in between refuses its write."""

    async def main(b):
        made = await b.client.create(CONFIG_MAPS.untyped, builders.config_map("a"), **WHERE)
        await b.configure("validating", "hang", "configmaps", operations=["UPDATE"])
        slow = asyncio.ensure_future(b.client.replace(CONFIG_MAPS, {**made, "data": {"k": "v"}}))
        await b.hooks.hanging.wait()
        await b.client.delete(VALIDATING_WEBHOOKS, "hooks")
        await b.client.patch(CONFIG_MAPS, "a", {"data": {"k": "w"}}, **WHERE)
        b.hooks.go_on.set()
        with pytest.raises(ApiError, match="the object has been modified"):
            await slow

    bench(main)
