"""Series out of an answer that arrives in pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.cluster.metric_ports.series_stream import SeriesCutter
from kubetide.ports.errors import MetricsError

LABELS = st.dictionaries(
    st.text(max_size=6), st.text(alphabet=st.sampled_from('ab"\\{}[],:é ]'), max_size=12)
)
VALUES = st.lists(st.tuples(st.integers(0, 9).map(float), st.sampled_from(["1", "0.25", "NaN", "+Inf"])))
SERIES = st.lists(st.fixed_dictionaries({"metric": LABELS, "values": VALUES}), max_size=5)


def answer(series, kind="matrix"):
    return json.dumps(
        {"status": "success", "data": {"resultType": kind, "result": series}, "warnings": ["{"]}
    )


def cut(text, size):
    body = text.encode()
    cutter = SeriesCutter()
    found = [one for begin in range(0, len(body), size) for one in cutter.take(body[begin : begin + size])]
    cutter.end()
    return found


@given(SERIES, st.integers(1, 60))
def test_pieces_come_to_the_same_series(series, size):
    """However the bytes are cut, and whatever labels hold, the series are those of the answer."""
    found = [(one.metric, list(one.values)) for one in cut(answer(series), size)]
    assert found == [(one["metric"], [tuple(pair) for pair in one["values"]]) for one in series]


def test_an_instant_query_has_one_value_a_series():
    """A vector is read as a matrix with one point a series; histograms among the points are passed over."""
    text = answer(
        [{"metric": {"a": "b"}, "value": [5, "7"]}, {"histograms": [[1, {"count": "1"}]]}], "vector"
    )
    assert [(one.metric, one.values) for one in cut(text, 3)] == [({"a": "b"}, ((5.0, "7"),)), ({}, ())]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"status":"error","errorType":"bad_data","error":"parse error"}', "bad_data: parse error"),
        ("<html>", "not one of Prometheus' API"),
        ("", "not one of Prometheus' API"),
        (answer([{"metric": {}, "values": [[1, "2"]]}])[:-40], "broke off"),
        (answer([{"metric": {}, "values": [[1, 2]]}]), "not one of Prometheus' API: Expected `str`"),
    ],
)
def test_what_is_no_answer_is_an_error(text, words):
    """Refusals in Prometheus' own words; what breaks off is never taken for the whole."""
    with pytest.raises(MetricsError, match=words):
        cut(text, 7)


def test_a_series_without_end_is_not_read():
    """One series has a bound; the rest of the answer may be as long as it is."""
    cutter = SeriesCutter()
    list(cutter.take(b'{"data":{"result":[{"metric":{"a":"'))
    with pytest.raises(MetricsError, match="longer than 16Mi"):
        for _ in range(17):
            list(cutter.take(b"x" * (1 << 20)))


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_warnings_come_after_the_series(size):
    """Warnings of the server behind the series, such as that they are incomplete, are there at the end."""
    body = (
        b'{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["no answer of store 2"]}'
    )
    cutter = SeriesCutter()
    for start in range(0, len(body), size):
        assert list(cutter.take(body[start : start + size])) == []
    cutter.end()
    assert cutter.warnings() == ("no answer of store 2",)
