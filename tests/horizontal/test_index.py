"""An index gives what a dict of dicts would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubetide.horizontal.facts.index import Index


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3))))
def test_an_index_is_a_dict_of_dicts(steps):
    """An entry that is there goes, another one comes, each in its place."""
    index, plain = Index(), {}
    for key, entry in steps:
        entries = plain.setdefault(key, {})
        if entry in entries:
            del entries[entry]
            index.drop(key, entry)
        else:
            entries[entry] = None
            index.add(key, entry)
        for known in range(4):
            assert list(index.of(known)) == list(plain.get(known, ()))
            assert index.count(known) == len(plain.get(known, ()))
