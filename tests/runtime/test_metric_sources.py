"""Sources of external metrics from other packages: chosen by the selector, harmless when they fail, used by a run."""

from __future__ import annotations

import re
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from tests.cli.test_run import QUICK, line_with, running, story
from tests.docs.tables import DOCS

from kubetide.objects.kinds import HPAS
from kubetide.ports.errors import MetricsError, NoSeries
from kubetide.ports.metrics import ExternalValues
from kubetide.ports.plugins import PluginNotUsable
from kubetide.runtime.metric_sources import NamedSources, load_sources, open_sources
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339, seconds, to_seconds

NOON = parse_rfc3339("2026-03-02T12:00:00Z")
OURS = "horizontal.kubetide.io/source=own"


class Answers:
    """A source that answers what it was made with, or raises it, after a while."""

    def __init__(self, answer, clock=None, after=0):
        self.answer, self.clock, self.after, self.asked = answer, clock, after, []

    async def external_values(self, metric, *, namespace, selector=""):
        self.asked.append((metric, namespace, selector))
        if self.clock is not None:
            await self.clock.sleep(self.after)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def ask(own, others, selector):
    async def main(clock):
        sources = NamedSources({"own": own}, others, clock)
        return await sources.external_values("length", namespace="shop", selector=selector)

    return run_virtual(main, start=NOON)


@pytest.mark.parametrize(
    ("selector", "given"),
    [
        (OURS, ""),
        (f"{OURS},queue=orders", "queue=orders"),
        ("horizontal.kubetide.io/source in (own),queue in (a,b),!dead", "!dead,queue in (a,b)"),
    ],
)
def test_the_selector_chooses_and_the_source_gets_the_rest(selector, given):
    own, others = Answers(ExternalValues([7000], 1)), Answers(ExternalValues([1], 1))
    assert ask(own, others, selector).milli == [7000]
    assert (own.asked, others.asked) == ([("length", "shop", given)], [])


@pytest.mark.parametrize(
    "selector",
    ["", "queue=orders", "horizontal.kubetide.io/source=prometheus", "horizontal.kubetide.io/source!=own"],
)
def test_other_metrics_come_from_where_they_came_from(selector):
    own, others = Answers(ExternalValues([7000], 1)), Answers(ExternalValues([1], 1))
    assert ask(own, others, selector).milli == [1]
    assert (own.asked, others.asked) == ([], [("length", "shop", selector)])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (MetricsError("queue is gone"), "queue is gone"),
        (NoSeries("none"), "none"),
        (KeyError("length"), "the source of metrics own failed: KeyError: 'length'"),
        (None, "the answer is a NoneType, not ExternalValues"),
        (ExternalValues([], 1), "the answer has no series"),
        (ExternalValues([1.5], 1), "no whole number of 64 bits: (1.5, 1)"),
        (ExternalValues([2**63], 1), "no whole number of 64 bits"),
    ],
)
def test_whatever_goes_wrong_is_a_failure_of_that_metric(answer, said):
    kind = NoSeries if isinstance(answer, NoSeries) else MetricsError
    with pytest.raises(MetricsError, match=r"^unable to fetch metrics from own: length: ") as raised:
        ask(Answers(answer), Answers(None), OURS)
    assert said in str(raised.value)
    assert type(raised.value) is kind


def test_one_that_does_not_answer_is_left_alone_and_holds_up_no_other():
    """Three requests time out; the fourth is not sent, and other metrics have their answers all the time."""

    async def main(clock):
        slow, others = Answers(ExternalValues([1], 1), clock, seconds(60)), Answers(ExternalValues([2], 1))
        sources = NamedSources({"own": slow}, others, clock)
        begun = clock.now()
        for _ in range(3):
            with pytest.raises(MetricsError, match="did not answer within 5s"):
                await sources.external_values("length", namespace="a", selector=OURS)
        with pytest.raises(MetricsError, match="did not answer 3 questions in a row"):
            await sources.external_values("length", namespace="a", selector=OURS)
        assert to_seconds(clock.now() - begun) == 15
        assert (await sources.external_values("length", namespace="a")).milli == [2]

    run_virtual(main, start=NOON)


@asynccontextmanager
async def shut(clock):
    raise OSError("no way in")
    yield clock


number = 7
prometheus = shut


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (("wish",), r"--metric-sources: there is no 'wish'"),
        ((f"{__name__}:number",), r"is no metric source"),
        ((f"{__name__}:shut", f"{__name__}:shut"), r"cannot be called 'shut'"),
        ((f"{__name__}:prometheus",), r"cannot be called 'prometheus'"),
    ],
)
def test_what_cannot_be_used_is_named(named, said):
    with pytest.raises(PluginNotUsable, match=said):
        load_sources(named)


def test_one_that_does_not_open_is_named():
    async def main(clock):
        async with AsyncExitStack() as stack:
            with pytest.raises(PluginNotUsable, match=r":shut does not open: OSError: no way in"):
                await open_sources(load_sources((f"{__name__}:shut",)), clock, stack)

    run_virtual(main, start=NOON)


def test_a_run_scales_by_the_source_of_the_docs(tmp_path, monkeypatch):
    """Twelve files wait, three a pod: four pods; an HPA whose folder is missing is left as it is, and says so."""
    page = (DOCS / "extending.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n# package of its own: spool.py\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "spool.py").write_text(code, encoding="utf-8")
    folder = tmp_path / "files" / "default" / "waiting"
    folder.mkdir(parents=True)
    for number in range(12):
        (folder / f"{number}.csv").touch()
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    monkeypatch.setenv("SPOOL", str(tmp_path / "files"))

    def external(name):
        selector = {"matchLabels": {"horizontal.kubetide.io/source": "opened"}}
        target = {"type": "AverageValue", "averageValue": "3"}
        return {
            "type": "External",
            "external": {"metric": {"name": name, "selector": selector}, "target": target},
        }

    async def main(cluster, config):
        spec = {"metrics": [external("waiting"), external("missing")]}
        await cluster.patch(HPAS, "web", {"spec": spec}, namespace="default")
        async with running(config, tmp_path / "out", QUICK, "--metric-sources=spool:opened") as process:
            assert "would be scaled from 2 to 4" in await line_with(process, "default/web: would be scaled")

    story(main, tmp_path)
