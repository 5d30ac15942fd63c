"""How full a node's own devices are: whole ones by number, parts of one by the fullest counter."""

from __future__ import annotations

import msgspec
import pytest

from kubetide.nodes.scale_down.unneeded.device_utilization import UtilizationError, fullest_pool
from kubetide.objects.resource import ResourceSlice


def piece(name="s", *, devices=(), counters=(), pool="p", count=1, driver="gpu.test"):
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": count},
        "nodeName": "n1",
        "devices": list(devices),
        "sharedCounters": list(counters),
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def part(name, card, **amounts):
    counters = {counter: {"value": amount} for counter, amount in amounts.items()}
    return {"name": name, "consumesCounters": [{"counterSet": card, "counters": counters}]}


def card(name, **amounts):
    return {"name": name, "counters": {counter: {"value": amount} for counter, amount in amounts.items()}}


def held(*names, pool="p"):
    return {("gpu.test", pool, name) for name in names}


WHOLE = [{"name": "a"}, {"name": "b"}]
PARTS = [part("x", "card", memory="40Gi", cores="1"), part("y", "card", memory="20Gi", cores="4")]
CARDS = [card("card", memory="80Gi", cores="8")]


@pytest.mark.parametrize(
    ("devices", "taken", "share"),
    [
        (WHOLE, (), 0.0),
        (WHOLE, ("a",), 0.5),
        (WHOLE, ("a", "b"), 1.0),
        (PARTS, ("x",), 0.5),
        (PARTS, ("x", "y"), 0.75),
        ([*WHOLE, *PARTS], ("x",), 0.5),
        ([*WHOLE, *PARTS], ("a",), 0.5),
        ([*WHOLE, *PARTS], ("a", "b", "x"), 0.5 * (1 / 3) + 1.0 * (2 / 3)),
        ([], (), 0.0),
    ],
)
def test_the_share_of_a_pool(devices, taken, share):
    """Of parts the fullest counter of their card; both kinds by how many cards and devices there are."""
    slices = [piece(devices=devices, count=2), piece("c", counters=CARDS, count=2)]
    assert fullest_pool(slices, held(*taken)) == ("gpu.test/p", share)


def test_the_fullest_pool_counts():
    """Devices in use of another pool or driver are not in use in this one."""
    slices = [piece(devices=WHOLE), piece("t", devices=WHOLE, pool="q")]
    assert fullest_pool(slices, held("a") | held("a", "b", pool="q")) == ("gpu.test/q", 1.0)
    assert fullest_pool(slices[:1], {("nic.test", "p", "a")}) == ("gpu.test/p", 0.0)


def test_a_pool_with_slices_missing_cannot_be_judged():
    """In upstream's words."""
    said = 'pool "p" error: newest generation: 1, slice count: 2 - found only 1 slices'
    with pytest.raises(UtilizationError) as found:
        fullest_pool([piece(devices=WHOLE, count=2)], set())
    assert str(found.value) == said


def test_an_amount_that_cannot_be_read_cannot_be_judged():
    """The error names the pool."""
    with pytest.raises(UtilizationError, match=r'pool "p" error: .*"lots" is not a quantity'):
        fullest_pool([piece(devices=[part("x", "card", memory="lots")])], held("x"))
