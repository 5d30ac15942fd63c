"""A cached state answers later questions as a state that was decided again for each question alone."""

from __future__ import annotations

import itertools
import random
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.simulate.worlds import MANIFEST, small

from kubetide.horizontal.explain.one_hpa import OneHpaCore
from kubetide.loop import loop_entry
from kubetide.runtime.recording.records import read_records, recorded_loops, segments
from kubetide.simulate.answers.ahead import plan_ahead
from kubetide.simulate.answers.moments import Moments, NotBegun
from kubetide.simulate.answers.status import status_of
from kubetide.simulate.answers.when import Moment, read_moment, start_of_records
from kubetide.simulate.answers.why import answer_about, objects_of, scalers_of
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import DailySpec, LoadSpec, load_scenario
from kubetide.units.time import hours, minutes

SCENARIO = Path(__file__).parents[2] / "examples" / "from-zero-wrong-catalogue.yaml"
KINDS = ("hpa", "pod", "node", "nodegroup")


@pytest.fixture(scope="module", params=["grows and shrinks", "waits"])
def run(request, tmp_path_factory):
    """A cluster that gives nodes back, and one with pods that no group takes."""
    out = tmp_path_factory.mktemp("run")
    if request.param == "waits":
        scenario = replace(load_scenario(SCENARIO), duration="9m")
        run_simulation(scenario, base=SCENARIO.parent, out=out, seed=1, warn=pytest.fail)
    else:
        run_simulation(small(duration="14m"), base=out, out=out, seed=1, warn=pytest.fail)
    return out


def asked(moments: Moments | Path, question: str, at: Moment | None) -> object:
    """Return all that can be asked of one kind at a moment."""
    match question:
        case "status":
            return status_of(moments, at)
        case "plan":
            return plan_ahead(moments, hours(1), at)
        case "scalers":
            return scalers_of(moments, "Deployment/default/web", at)
    names = objects_of(moments, at, (question,)).get(question, [])
    return names, [
        answer_about(moments, question, name.rpartition("/")[2], namespace="default", at=at) for name in names
    ]


def moments_of(run: Path, random_of: random.Random) -> list[Moment | None]:
    start = start_of_records(run)
    texts = [f"{random_of.randrange(30, 540)}s" for _ in range(3)]
    return [None, *(read_moment(text, start) for text in texts)]


@pytest.mark.parametrize("seed", range(2))
def test_answers_do_not_depend_on_what_was_asked_before(run, seed):
    """Questions in any order, about moments forwards and back, get the answers of a fresh start."""
    random_of = random.Random(seed)
    cached = Moments(run)
    at = moments_of(run, random_of)
    for _ in range(14):
        question = random_of.choice((*KINDS, "status", "plan", "scalers"))
        moment = random_of.choice(at)
        assert asked(cached, question, moment) == asked(run, question, moment)


def test_one_hpa_is_followed_alone(tmp_path):
    """A core that follows one HPA decides as the whole core; an HPA with a forecast is left to the whole core."""
    api, jobs = (MANIFEST.replace("web", name) for name in ("api", "jobs"))
    hpas = [
        MANIFEST.partition("---\n")[2].replace("name: web}\nspec", "name: second}\nspec"),
        api
        + "  behavior: {scaleUp: {stabilizationWindowSeconds: 60, policies: [{type: Pods, value: 1, periodSeconds: 45}]}}\n",
        jobs.replace(
            "{name: jobs}\nspec:\n  scaleT",
            "{name: jobs, annotations: {horizontal.kubetide.io/forecast: calendar}}\nspec:\n  scaleT",
        ),
    ]
    scenario = small(duration="12m")
    (service,) = scenario.services
    more = [
        replace(service, deployment=name, load=LoadSpec(daily=DailySpec(low=10, peak=60)))
        for name in ("api", "jobs")
    ]
    scenario = replace(scenario, services=(service, *more), manifests=(MANIFEST, *hpas))
    run_simulation(scenario, base=tmp_path, out=tmp_path, seed=2, warn=lambda _: None)
    whole, start = Moments(tmp_path), start_of_records(tmp_path)
    for moment in (None, *(read_moment(text, start) for text in ("20s", "4m", "7m30s"))):
        for name in ("web", "second", "api", "jobs"):
            asked_alone, asked_of_all = (
                answer_about(one, "hpa", name, namespace="default", at=moment) for one in (tmp_path, whole)
            )
            assert asked_alone == asked_of_all
            alone = partial(OneHpaCore, ("default", name))
            with Moments(tmp_path).state("horizontal", moment, alone=alone) as state:
                assert isinstance(state.core, OneHpaCore) == (name != "jobs")
        assert asked(tmp_path, "scalers", moment) == asked(whole, "scalers", moment)


def test_asking_changes_nothing(run):
    """After every question that there is the records behind decide as they were recorded."""
    start = start_of_records(run)
    for loop in recorded_loops(run):
        entry = loop_entry(loop)
        with Moments(run).state(loop, read_moment("7m", start)) as state:
            core, now = state.core, state.last.now
            for explainer in entry.explainers:
                for name in explainer.names(core):
                    for view in ("", *explainer.views):
                        explainer.lines(core, name, now, view)
            entry.status.tables(core, now)
            if entry.outlook is not None:
                entry.outlook(core, now, hours(1))
            records = iter(read_records(run, loop))
            while next(records) != state.last:
                pass
            behind = list(itertools.takewhile(lambda record: not record.full, records))
            assert len(behind) > 5
            for record in behind:
                core.apply(bytes(record.state), full=False)
                assert core.decide(record.now) == bytes(record.commands)
                assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result)


def test_a_run_that_goes_on_is_followed(run, tmp_path):
    """The cached state follows records that are written later."""
    for loop in recorded_loops(run):
        (path,) = segments(run, loop)
        lines = path.read_bytes().splitlines(keepends=True)
        grown = tmp_path / "records" / path.name
        grown.parent.mkdir(exist_ok=True)
        grown.write_bytes(b"".join(lines[:40]))
        index = path.with_suffix(".index").read_bytes().splitlines(keepends=True)
        cached = Moments(tmp_path)
        for count in (40, 41, 43, 60, 130):
            grown.write_bytes(b"".join(lines[:count]))
            grown.with_suffix(".index").write_bytes(b"".join(index[: count - 1]))
            for decided in (False, True):
                with (
                    cached.state(loop, None, decided=decided) as one,
                    Moments(tmp_path).state(loop, None, decided=decided) as other,
                ):
                    assert one.last == other.last
                    tables = loop_entry(loop).status.tables
                    assert tables(one.core, one.last.now) == tables(other.core, other.last.now)


def test_another_run_in_the_folder_is_reported_apart(tmp_path):
    """A run that takes the place of another one, with the same names of files and times, is read anew."""
    cached = Moments(tmp_path)
    for nodes in (3, 2):
        run_simulation(
            small(duration="2m", nodes=nodes), base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail
        )
        assert status_of(cached) == status_of(tmp_path)
        assert len(objects_of(cached, None)["node"]) == nodes


def test_few_states_are_cached(run):
    """However many moments are asked about, two states of a loop stay."""
    cached = Moments(run)
    seen = {}
    for text in ("2m", "4m", "6m", "3m", "4m"):
        with cached.state("nodes", read_moment(text, start_of_records(run))) as state:
            seen.setdefault(id(state.core), state.core)
    assert sum(map(len, cached._cached.values())) == 2
    with cached.state("nodes", read_moment("4m", start_of_records(run))) as state:
        assert id(state.core) in seen


def test_before_the_first_record_there_is_no_state(run):
    """A moment before the run is reported otherwise than one without records."""
    before = Moment(read_moment("0s", start_of_records(run)).at - minutes(5))
    with pytest.raises(NotBegun, match="the run begins at"), Moments(run).state("nodes", before):
        pytest.fail("there was a state")
