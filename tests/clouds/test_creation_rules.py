"""The rules that clouds share when they create groups: names, marks, and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubetide.clouds.common.creation import (
    candidate_name,
    check_deletion,
    in_order,
    make_candidate,
    pattern_for,
    pattern_warnings,
    types_in,
    unlike_architecture,
)
from kubetide.ports.cloud import NodeGroup, NodeTemplate, Offering
from kubetide.ports.errors import CloudError

WORDS = st.text("abcdefghij-", min_size=1, max_size=60)


def candidate(pattern="workers", kind="m5.large", zone="a", *markets):
    offerings = tuple(Offering(instance_type=kind, zone=zone, market=one) for one in markets)
    return make_candidate(
        pattern,
        NodeGroup(template=NodeTemplate(source="here"), offerings=offerings),
        group_id=candidate_name(pattern, kind, zone),
        max_size=4,
        instance_type=kind,
        zone=zone,
    )


def test_a_mark_names_types_once_and_in_order():
    """Types are separated by spaces; a group without a mark, or with an empty one, is no pattern."""
    assert types_in(" m5.large  c5.large m5.large") == ("m5.large", "c5.large")
    assert types_in(None) == types_in("") == types_in("  ") == ()


def test_a_pattern_says_what_is_wrong_with_it():
    """An obstacle speaks for all types; without one each unknown type is named; no pattern, no warning."""
    known = {"m5.large"}
    assert pattern_warnings("tag x", ("m5.large", "c9"), "it is full", known) == [
        "tag x: no group can be created like this one: it is full"
    ]
    assert pattern_warnings("tag x", ("m5.large", "c9"), "", known) == [
        "tag x: instance type c9 is not known; correct it"
    ]
    assert pattern_warnings("tag x", (), "it is full", known) == []
    assert pattern_warnings("tag x", ("m5.large", "c9"), "", known, {"m5.large": "it is large"}) == [
        "tag x: instance type m5.large is left out: it is large",
        "tag x: instance type c9 is not known; correct it",
    ]


def test_architectures_are_compared_where_both_are_known():
    """A type of another architecture cannot run the pattern's image."""
    assert unlike_architecture("amd64", "arm64") == "it is arm64, and the pattern's machines are amd64"
    assert not any(unlike_architecture(*one) for one in (("amd64", "amd64"), ("", "arm64"), ("amd64", "")))


@given(pattern=WORDS, kind=WORDS, zone=WORDS, longest=st.integers(20, 63))
def test_names_fit_and_differ(pattern, kind, zone, longest):
    """A name is no longer than the cloud allows, the same each time, and unlike that of another zone."""
    name = candidate_name(pattern, kind, zone, longest=longest)
    assert len(name) <= longest
    assert name == candidate_name(pattern, kind, zone, longest=longest)
    assert name != candidate_name(pattern, kind, f"{zone}2", longest=longest)


def test_what_a_candidate_offers():
    """A candidate begins at zero, is spot where all its machines would be, and is none without a template."""
    one = candidate("workers", "m5.large", "a", "spot", "spot").offered
    assert (one.new.id, one.new.zones, one.new.market) == ("auto-workers-m5-large-a", ("a",), "spot")
    assert (one.group.exists, one.group.autoprovisioned, one.group.max_size) == (False, True, 4)
    assert candidate("workers", "m5.large", "a", "spot", "on-demand").offered.new.market == "on-demand"
    blind = make_candidate(
        "workers", NodeGroup(), group_id="x", max_size=4, instance_type="m5.large", zone="a"
    )
    assert blind is None
    assert in_order([None, candidate(zone="b"), candidate(zone="a")]) == (
        candidate(zone="a"),
        candidate(zone="b"),
    )


def test_whose_pattern_is_meant():
    """The pattern is that of the candidate whose id the group's begins with; names that are taken, and labels, are refused."""
    candidates = in_order([candidate("workers"), candidate("workers-2")])
    called = "a scale set"
    for one in candidates:
        for new in (one.offered.new, replace(one.offered.new, id=f"{one.offered.new.id}-3")):
            assert pattern_for(candidates, new, taken=False, called=called) == one.pattern
    new = candidates[0].offered.new
    wrong = {
        "no pattern for c5.large in a": replace(new, instance_type="c5.large"),
        "labels are those of the pattern": replace(new, labels={"a": "b"}),
        "no pattern": replace(new, id="other"),
    }
    for words, asked in wrong.items():
        with pytest.raises(CloudError, match=f"node group {asked.id}: .*{words}"):
            pattern_for(candidates, asked, taken=False, called=called)
    with pytest.raises(CloudError, match="there is a scale set of this name already"):
        pattern_for(candidates, new, taken=True, called=called)


def test_what_may_be_deleted():
    """Only a group that this program created, and only once it is empty."""
    check_deletion("g", is_ours=True, is_empty=True)
    with pytest.raises(CloudError, match="node group g: another made it"):
        check_deletion("g", is_ours=False, is_empty=True)
    with pytest.raises(CloudError, match="node group g: it has machines"):
        check_deletion("g", is_ours=True, is_empty=False)
