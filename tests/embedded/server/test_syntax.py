"""The words about a text that is no JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.embedded.apiserver.http.syntax import excerpt, fault_in

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def is_json(text):
    def refuse(word):
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


@given(
    values,
    st.integers(0, 60),
    st.sampled_from(
        ["", "{", "}", "[", "]", ",", ":", '"', "\\", "-", ".", "e", "0", "x", " ", "\n", "nul", "tru"]
    ),
    st.booleans(),
)
def test_a_text_has_a_fault_when_it_is_no_json(value, at, more, cut):
    """Whatever is put into a text or cut off it, a fault is found just when another parser finds one."""
    text = json.dumps(value)
    spoilt = text[:at] + more + ("" if cut else text[at:])
    assert (fault_in(spoilt.encode()) == "") == is_json(spoilt)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "unexpected end of JSON input"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ("nulx", "invalid character 'x' in literal null (expecting 'l')"),
        ('"\\u12G4"', "invalid character 'G' in \\u hexadecimal character escape"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
)
def test_the_words_are_gos(text, fault):
    """The first fault is named as Go's scanner names it."""
    assert fault_in(text.encode()) == fault


def test_how_a_text_is_shown():
    """An object by its first thirty characters, anything else in hexadecimal digits."""
    assert excerpt(b'{"a":1}') == '{"a":1}'
    assert excerpt(b"{" + b"x" * 40) == "{" + "x" * 29 + " ..."
    assert excerpt(b"hi") == "6869"
    assert excerpt(b"") == "<empty>"
