"""The recorded cases of the vertical suite, as part of the test suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance import vertical
from tests.conformance.cases import Selection, case_files, read_document, selected_cases

from kubetide.vertical.recommender.usage.buckets import CPU_BUCKETS, MEMORY_BUCKETS

DATA = Path(__file__).parent / "data" / "vertical"
QUICK = ("histogram-systematic.json.gz", "histogram-random.json.gz", "recommender-release-1.7.json.gz")


def _file(path):
    return pytest.param(
        path, id=path.name.split(".json")[0], marks=[] if path.name in QUICK else [pytest.mark.slow]
    )


@pytest.mark.parametrize("path", [_file(path) for path in sorted(case_files([DATA]))])
def test_recorded_cases(path):
    """Every recorded pass and every recorded operation comes out the same."""
    cases = list(selected_cases(vertical, [path], Selection()))
    assert cases
    found = {vertical.case_id(case): vertical.first_difference(case) for case in cases}
    assert {case: difference for case, difference in found.items() if difference} == {}


@pytest.mark.parametrize(("resource", "ours"), [("cpu", CPU_BUCKETS), ("memory", MEMORY_BUCKETS)])
def test_the_bounds_of_buckets_are_exact(resource, ours):
    """Bucket bounds, the first amount of each bucket and what a percentile gives are upstream's to the last digit."""
    table = read_document(DATA / "bucket-table.json.gz")["buckets"][resource]
    assert len(table) == ours.buckets.count
    assert [row["start"] for row in table] == ours.buckets.starts.tolist()
    assert [row["percentileAmount"] for row in table] == ours.ends.tolist()
    assert all(row["firstAmount"] in {-1, ours.firsts[row["bucket"]]} for row in table)


def test_a_changed_answer_is_found():
    """The comparison sees a single recommendation that differs."""
    [case] = selected_cases(
        vertical,
        [DATA / "recommender-systematic.json.gz"],
        Selection(ids=("recommender/target-ref/kind-CronJob",)),
    )
    assert vertical.first_difference(case) is None
    [container] = case["expect"]["at"][0]["vpas"]["default/vpa"]["recommendation"]["containerRecommendations"]
    container["target"]["cpu"] = "411m"
    assert "target.cpu: expected" in vertical.first_difference(case)
