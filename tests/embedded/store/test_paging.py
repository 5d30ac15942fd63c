"""Lists in parts."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import Options, Request, Rest, Store
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.errors import BadRequest, Expired
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339


class Clock:
    def now(self):
        return parse_rfc3339("2026-03-02T08:00:00Z")


def world(names="abcde", **store):
    rest = Rest(Store(**store), Clock(), seed=1)
    for name in names:
        create(rest, name)
    return rest


def create(rest, name, value="0"):
    rest.handle(Request("create", CONFIG_MAPS, "default", body=builders.config_map(name, data={"v": value})))


def page(rest, **options):
    return rest.handle(Request("list", CONFIG_MAPS, "default", options=Options(**options)))


def shown(response):
    return [(item.key[1], item.json["data"]["v"]) for item in response.listing]


def names(response):
    return [item.key[1] for item in response.listing]


def test_parts_make_the_whole():
    """The parts follow one another, count down what remains, and the last has no token."""
    rest = world()
    first = page(rest, limit=2)
    assert (names(first), first.remaining) == (["a", "b"], 3)
    second = page(rest, limit=2, continue_token=first.continue_token)
    assert (names(second), second.remaining) == (["c", "d"], 1)
    last = page(rest, limit=2, continue_token=second.continue_token)
    assert (names(last), last.remaining, last.continue_token) == (["e"], None, "")
    assert page(rest, limit=5).continue_token == ""


def test_with_a_selector_nobody_counts_what_remains():
    """A list with a selector goes on, but says no count."""
    first = page(world(), limit=1, fields="metadata.name!=b")
    assert first.continue_token
    assert first.remaining is None


def test_later_writes_do_not_show():
    """Later parts show the version of the first, whatever was written since."""
    rest = world()
    first = page(rest, limit=1)
    create(rest, "bb")
    rest.handle(Request("delete", CONFIG_MAPS, "default", "c"))
    rest.handle(Request("patch", CONFIG_MAPS, "default", "d", body={"data": {"v": "1"}}))
    rest.handle(Request("patch", CONFIG_MAPS, "default", "d", body={"data": {"v": "2"}}))
    rest_of_it = page(rest, continue_token=first.continue_token)
    assert rest_of_it.version == first.version
    assert shown(rest_of_it) == [("b", "0"), ("c", "0"), ("d", "0"), ("e", "0")]
    assert shown(page(rest)) == [("a", "0"), ("b", "0"), ("bb", "0"), ("d", "2"), ("e", "0")]


def test_a_token_too_old_comes_with_another():
    """When the history was dropped, the refusal's own token goes on with the current objects."""
    rest = world(history=3)
    first = page(rest, limit=2)
    rest.handle(Request("delete", CONFIG_MAPS, "default", "d"))
    for value in "1234":
        rest.handle(Request("patch", CONFIG_MAPS, "default", "c", body={"data": {"v": value}}))
    with pytest.raises(Expired, match="The provided continue parameter is too old") as error:
        page(rest, limit=1, continue_token=first.continue_token)
    status = error.value.status()
    assert (status["code"], status["reason"]) == (410, "Expired")
    going_on = page(rest, limit=1, continue_token=status["metadata"]["continue"])
    assert shown(going_on) == [("c", "4")]
    assert going_on.version == rest.store.version
    assert names(page(rest, continue_token=going_on.continue_token)) == ["e"]


@pytest.mark.parametrize("text", ["{", "[]", '{"v":"meta.k8s.io/v1"}', '{"v":"v0","rv":1,"start":"a/b"}'])
def test_tokens_that_are_none(text):
    """A text that is no token is refused as such."""
    token = base64.urlsafe_b64encode(text.encode()).decode()
    for bad in (token, "%%%"):
        with pytest.raises(BadRequest, match="invalid continue token"):
            page(world(), continue_token=bad)


def test_a_token_names_its_own_version():
    """A version beside a token is refused."""
    rest = world()
    token = page(rest, limit=1).continue_token
    with pytest.raises(BadRequest, match="specifying resource version is not allowed when using continue"):
        page(rest, continue_token=token, resource_version="5")


writes = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["put", "delete"])), max_size=12)


@given(writes, writes, st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_any_writes_in_between(before, meanwhile, limit):
    """Whatever is written between the parts, together they are the list at the first part's version."""
    rest = world("")

    def write(name, verb):
        there = rest.store.get(CONFIG_MAPS, ("default", name))
        if verb == "put" and there is None:
            create(rest, name)
        elif verb == "put":
            rest.handle(
                Request("patch", CONFIG_MAPS, "default", name, body={"data": {"v": str(rest.store.version)}})
            )
        elif there is not None:
            rest.handle(Request("delete", CONFIG_MAPS, "default", name))

    for step in before:
        write(*step)
    expected = shown(page(rest))
    part = page(rest, limit=limit)
    parts = shown(part)
    steps = iter(meanwhile)
    while part.continue_token:
        for step in (next(steps, None), next(steps, None)):
            if step:
                write(*step)
        part = page(rest, limit=limit, continue_token=part.continue_token)
        parts += shown(part)
    assert parts == expected
