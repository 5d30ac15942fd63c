"""CEL selectors of devices: recorded answers of Kubernetes v1.36.2, and input that nobody should send."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.objects.resource import Device
from kubetide.scheduling.devices.selectors import (
    SelectorError,
    compile_problem,
    matches,
    variables_of,
)

RECORDED = Path(__file__).parent / "data" / "cel.json.gz"


def answer(expression, variables):
    problem = compile_problem(expression)
    if problem:
        return {"compile": problem}
    try:
        return {"result": matches(expression, variables)}
    except SelectorError as error:
        return {"err": str(error)}


def test_recorded_answers():
    """Compile errors, runtime errors and results are upstream's: in its words, but for those marked."""
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    variables = variables_of(recorded["driver"], msgspec.convert(recorded["device"], Device))
    in_words = 0
    for one in recorded["answers"]:
        expression, words = one.pop("expression"), one.pop("words", "")
        found = answer(expression, variables)
        if words:
            assert found.keys() == one.keys() <= {"compile", "err"}, expression
        else:
            assert found == one, expression
            in_words += 1
    assert in_words > 1500


WORDS = """
device . driver [ ] ( ) { } ? : , + - * / % ! && || == != < in "a" 'b' 1 2.5 3u x has all
exists map true null \\ ` " r" b" 0x é .? [? quantity semver size cel.bind
"""
PIECES = st.sampled_from([*WORDS.split(), "\n", "\x00", 'device.attributes["a.com"].model'])


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=14).map(" ".join), st.text(max_size=40)))
def test_any_text_has_an_answer(expression):
    """Any selector is true, false or refused with words."""
    found = answer(expression, variables_of("a.com", Device(name="d")))
    assert found.get("result") is not None or all(found.values())


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000,
        "[" * 5000 + "]" * 5000,
        "!" * 5000 + "true",
        "-" * 5000 + "1",
        "1" + "+1" * 5000 + " == 1",
        "device" + ".a" * 5000,
        "true" + " ? true : true" * 5000,
        "true" + " && true" * 5000,
        "[1].map(x, " * 200 + "1" + ")" * 200 + " == 1",
        '"' + "a" * 1_000_000 + '" == device.driver',
        "9" * 100_000 + " == 1",
        "lists.range(3000).all(x, lists.range(3000).all(y, true))",
        '"a".matches("' + "(" * 1000 + '")',
        '"a".matches("(a{1000}){1000}")',
        '"' + "a" * 64 + '!".matches("(a+)+$")',
    ],
    ids=lambda expression: expression[:20],
)
def test_hostile_expressions_end(expression):
    """Deep, long and endless expressions get an answer, in bounded time."""
    assert answer(expression, variables_of("a.com", Device(name="d")))


@pytest.mark.parametrize(
    "attribute",
    [{}, {"version": "1.0"}, {"version": "v1.0.0"}, {"version": ""}],
)
def test_attributes_that_mean_nothing(attribute):
    """An attribute without a value, or whose version is none, is an error that names it."""
    device = msgspec.convert({"name": "d", "attributes": {"a": attribute}}, Device)
    with pytest.raises(SelectorError, match="attribute a: "):
        variables_of("a.com", device)
