"""Where kube-scheduler binds a pod we say that it fits there best, and where it refuses one we say its words."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.plane.scheduling import compare

from kubetide.scheduling import classify

pytestmark = pytest.mark.slow


def test_verdicts_are_those_of_kube_scheduler(patient):
    """No verdict and no word of a refusal differs for 160 random pods, some with claims, on 100 nodes that change.

    Each node that a pod is bound to is among those with the highest score.
    """
    found = compare(patient, nodes=100, pods=160, seed=1)
    assert found.disagreements == []
    assert found.bound > 75, found
    assert found.with_claims > 7, found
    assert found.chosen > 35, found
    assert found.refused > 18, found
    assert len(found.reasons) >= 12, found


def test_a_wrong_verdict_is_seen(patient):
    """A classifier that ignores tolerations disagrees."""

    def careless(pod):
        return classify(structs.replace(pod, spec=structs.replace(pod.spec, tolerations=None)))

    found = compare(patient, nodes=20, pods=30, seed=2, judged=careless)
    assert any("bound to" in one and "we say" in one for one in found.disagreements)
