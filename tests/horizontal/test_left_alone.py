"""HPAs that another controller serves: nothing is decided about them, and people are told so."""

from __future__ import annotations

from kubetide.horizontal.core import HorizontalCore, decode_delta, encode_delta
from kubetide.horizontal.explain.entry import EXPLAINING
from kubetide.horizontal.explain.overview import OVERVIEW
from kubetide.horizontal.facts.views import LeftAloneView
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta
from kubetide.units.time import Instant

WHY = "kube-controller-manager writes its status"
NOW = Instant(1_772_438_400_000_000_000)


def core_of(*names: str) -> HorizontalCore:
    core = HorizontalCore()
    left_alone = [LeftAloneView("shop", name, WHY) for name in names]
    core.apply(encode_delta(Delta(settings=Settings(), left_alone=left_alone)), full=True)
    return core


def test_they_are_named_on_the_page_of_all():
    """A run that serves no HPA yet names those that it leaves alone."""
    (table,) = OVERVIEW.tables(core_of("cart", "web"), NOW)
    assert (table.rows, table.sentence) == (
        (),
        "HPAs left alone, as another controller may serve them: shop/cart, shop/web.",
    )


def test_each_says_whose_it_is():
    """In the place of an answer that there is no such HPA."""
    core = core_of("web")
    (explainer,) = EXPLAINING.explainers
    assert explainer.names(core) == ["shop/web"]
    assert explainer.lines(core, "shop/web", NOW, "") == [
        f"It is left alone: {WHY}.",
        "ask: kubetide handover shop/web --probe (whether another controller answers)",
    ]


def test_they_stay_until_a_delta_names_others():
    """Also in a state that was written whole and read again."""
    core = core_of("web")
    core.apply(encode_delta(Delta()), full=False)
    whole = core.state.dump()
    assert decode_delta(encode_delta(whole)).left_alone == [LeftAloneView("shop", "web", WHY)]
    core.apply(encode_delta(Delta(left_alone=[])), full=False)
    assert core.state.left_alone == {}
    assert core.state.dump().left_alone is None
