"""`bench bill`: what a made-up stretch costs, its bound, and what is wrong with files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.bill.__main__ import main, mean_of
from bench.bill.bound import bound_usd
from bench.bill.gap import MEANINGS, OF_WHOLE_NODES, PARTS, gap_usd
from bench.bill.rows import POD_COLUMNS, TYPE_COLUMNS, PodRow, TypeRow, read_pods
from bench.bill.use import NodeUse, Stay

TYPES = f"""{TYPE_COLUMNS}
small,4000,16384,0,,50,0.2
large,16000,65536,0,,110,0.7
gpu,8000,32768,1,T4,50,1.0
"""
PODS = f"""{POD_COLUMNS}
0,1800,2000,2048,0,,web,deployment
0,3000,2000,2048,0,,web,deployment
60,2400,1000,1024,0,,web-2,deployment
300,900,3000,4096,1,T4,train,job
600,1500,500,1024,0,,batch,job
"""


@pytest.fixture
def files(tmp_path):
    """A set of five pods and three types."""
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "types.csv").write_text(TYPES)
    return ["--pods", str(tmp_path / "pods.csv"), "--types", str(tmp_path / "types.csv")]


def played(capsys, *arguments):
    """The content of the last line."""
    assert main([*arguments, "--jobs", "1"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_stretch_is_played_to_figures_that_add_up(files, capsys):
    """Every pod gets a node, waits as long as nodes boot, and costs more than the bound; equal seeds, equal figures."""
    first, second = (played(capsys, *files, "--policy", "upstream", "--policy", "ours") for _ in range(2))
    assert first["set"] == "pods"
    for policies in (first["policies"], second["policies"]):
        for one in policies.values():
            assert one.pop("cpu_s") >= 0
    assert first == second
    for one in first["policies"].values():
        assert one["pods"] == 5
        assert one["left_pending"] == 0
        assert "violations" not in one
        assert 60 <= one["wait_s"][2] < 180
        assert one["cost_usd"] > one["bound_usd"] > 0
        assert one["ratio"] == pytest.approx(one["cost_usd"] / one["bound_usd"], abs=1e-3)
        assert one["deleted"] <= one["bought"] >= 2
        assert 0 <= one["nodes_bought_back_15m"] <= one["bought_back_15m"] <= one["deleted"]


def test_pods_that_fit_no_type_harm_no_other(files, capsys):
    """They are named and pend, the Deployment's until it leaves; the others get the same nodes, at the same bound."""
    policy = ("--policy", "upstream")
    without = played(capsys, *files, *policy)["policies"]["upstream"]
    with Path(files[1]).open("a") as file:
        file.write("0,10,64000,1,0,,huge,job\n0,1800,1,1,2,T4,huger,deployment\n")
    assert main([*files, *policy, "--jobs", "1"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out.splitlines()[-1])["policies"]["upstream"]
    assert "pods: pods of 64000m, 1 MiB, 0 GPUs fit no type (1 of them)" in told.err
    assert "pods: pods of 1m, 1 MiB, 2 T4 GPUs fit no type (1 of them)" in told.err
    assert (without["left_pending"], found["left_pending"]) == (0, 1)
    assert found["bound_usd"] == without["bound_usd"]
    assert found["bought"] == without["bought"]
    assert found["wait_s"][2] < 180


def test_a_part_is_played(files, capsys):
    """--hours cuts pods and bound alike."""
    found = played(capsys, *files, "--hours", "0.1", "--policy", "least-waste")["policies"]["least-waste"]
    assert found["pods"] == 4
    assert 0 < found["bound_usd"] < 0.2


def test_the_bound_is_that_of_the_time_in_each_step():
    """Half a node for a step and a half is three quarters of what a node costs in a step; a GPU's node as a whole."""
    types = [TypeRow("a", 4000, 8192, 0, "", 10, 1.2), TypeRow("g", 4000, 8192, 2, "T4", 10, 12.0)]
    half = PodRow(0.0, 450.0, 2000, 1024, 0, "", "x", "job")
    assert bound_usd([half], types, 1000.0) == pytest.approx(0.75 * 1.2 / 12)
    assert bound_usd([half], types, 300.0) == pytest.approx(0.5 * 1.2 / 12)
    model = PodRow(300.0, 600.0, 4000, 1024, 0, "T4", "x", "job")
    assert bound_usd([model], types, 1000.0) == pytest.approx(1.0)


CHEAP = TypeRow("cheap", 4000, 8192, 0, "", 10, 3.6)
DEAR = TypeRow("dear", 4000, 8192, 0, "", 10, 7.2)
HALF, WHOLE = (2000, 1024, 0, ""), (4000, 1024, 0, "")


def parts_of(*uses, cost=0.0, bound=0.0, types=(CHEAP, DEAR)):
    """The parts of the cost of these nodes, in thousandths of a USD; a cheap node is one a second."""
    found = gap_usd(uses, types, cost_usd=cost, bound_usd=bound, horizon_s=600.0)
    return {name: pytest.approx(usd * 1000, abs=0.1) for name, usd in found.items() if abs(usd) > 1e-9}


def test_the_time_of_a_node_is_charged_to_what_it_does():
    """Before it is ready, without pods between others and after the last, and half empty under a job that stays."""
    job = Stay(100.0, 300.0, HALF, may_move=False)
    node = NodeUse("cheap", 70.0, 600.0, (job, job._replace(begin_s=400.0, end_s=500.0)))
    assert parts_of(node, cost=0.6, bound=0.15) == {
        "bound": 150,
        "booting": 70,
        "idle_between": 30 + 100,
        "idle_after": 100,
        "empty_held": 300 / 2,
        OF_WHOLE_NODES: 300 / 2,
    }


def test_empty_parts_are_apart_by_whether_all_pods_may_move():
    """One job beside pods that may move holds the node, for as long as it stays."""
    moves = Stay(0.0, 200.0, HALF, may_move=True)
    job = Stay(0.0, 100.0, (1000, 512, 0, ""), may_move=False)
    found = parts_of(NodeUse("cheap", 0.0, 200.0, (moves, job)), cost=0.2, bound=0.125)
    assert (found["empty_held"], found["empty_movable"]) == (25, 100 / 2)


def test_a_type_is_dearer_by_what_no_pods_there_make_worth_its_price():
    """A full node of twice the price; with a GPU, only while no pod is there that needs one."""
    whole = Stay(0.0, 300.0, WHOLE, may_move=True)
    assert parts_of(NodeUse("dear", 0.0, 300.0, (whole,)), cost=0.6, bound=0.3) == {
        "bound": 300,
        "dearer_type": 300,
    }
    gpu = TypeRow("gpu", 4000, 8192, 1, "T4", 10, 7.2)
    model = Stay(300.0, 600.0, (1000, 1024, 1, "T4"), may_move=True)
    found = parts_of(
        NodeUse("gpu", 0.0, 600.0, (whole._replace(end_s=600.0),)),
        NodeUse("gpu", 300.0, 600.0, (model,)),
        cost=1.8,
        types=(CHEAP, gpu),
    )
    assert found["dearer_type"] == 300


def test_pods_that_run_for_less_time_than_they_are_there_cost_less():
    """The bound counts them from their arrival on."""
    late = Stay(100.0, 300.0, WHOLE, may_move=True)
    found = parts_of(NodeUse("cheap", 90.0, 300.0, (late,)), cost=0.3, bound=0.3)
    assert found == {"bound": 300, "shifted": -100, "booting": 90, "idle_between": 10}


def test_the_parts_of_what_was_played_add_up_to_its_cost(files, capsys):
    """--gap adds them to the figures and changes none of these."""
    policy = ("--policy", "ours")
    plain = played(capsys, *files, *policy)["policies"]["ours"]
    found = played(capsys, *files, *policy, "--gap")["policies"]["ours"]
    parts = found.pop("gap")
    for one in (plain, found):
        one.pop("cpu_s")
    assert found == plain
    assert parts.keys() == MEANINGS.keys()
    assert sum(parts[part] for part in PARTS) == pytest.approx(found["ratio"], abs=1e-3)
    assert all(parts[part] >= 0 for part in PARTS if part != "shifted")
    assert parts["booting"] > 0 < parts["empty_held"]
    assert parts[OF_WHOLE_NODES] <= parts["dearer_type"] + parts["empty_held"] + parts["empty_movable"] + 1e-3


def test_draws_are_played_to_their_mean(files, capsys):
    """--seeds plays each draw as --seed does, and what is compared is their mean."""
    policy = ("--policy", "least-cost")
    each = [played(capsys, *files, *policy, "--seed", seed)["policies"]["least-cost"] for seed in "34"]
    found = played(capsys, *files, *policy, "--seed", "3", "--seeds", "2")
    assert found["seeds"] == [3, 4]
    mean = found["policies"]["least-cost"]
    assert each[0]["wait_s"] != each[1]["wait_s"]
    assert mean["cost_usd"] == pytest.approx(sum(one["cost_usd"] for one in each) / 2, abs=1e-3)
    assert mean["wait_s"][2] == pytest.approx(sum(one["wait_s"][2] for one in each) / 2, abs=1e-3)
    assert [one["least-cost"]["cost_usd"] for one in found["by_seed"].values()] == [
        one["cost_usd"] for one in each
    ]


def test_the_mean_of_draws_leaves_violations_to_each_draw():
    """They are sentences, of another number in each draw."""
    draws = [{"cost": 1.0, "wait": [0, 2], "violations": ["a", "b"]}, {"cost": 2.0, "wait": [1, 4]}]
    assert mean_of(draws) == {"cost": 1.5, "wait": [0.5, 3]}
    assert mean_of(draws[::-1]) == mean_of(draws)
    assert mean_of([draws[0], draws[0]]) == {"cost": 1.0, "wait": [0, 2]}


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("0,10,1,1,0,,a,pod", "line 2: kind 'pod': give deployment or job"),
        ("0,0,1,1,0,,a,job", "line 2: departure_s 0 is not after arrival_s 0"),
        ("0,x,1,1,0,,a,job", "line 2: departure_s 'x': give a number of 0 or more"),
        ("0,10,1.5,1,0,,a,job", "line 2: cpu_m '1.5': give a whole number"),
        ("0,10,1", "line 2: not 8 values"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, reported):
    """With file, line, column and fix."""
    path = tmp_path / "pods.csv"
    path.write_text(f"{POD_COLUMNS}\n{line}\n")
    with pytest.raises(ValueError, match=r"pods\.csv") as error:
        read_pods(path)
    assert reported in str(error.value)


def test_what_cannot_be_played_is_said(files, capsys):
    """An unknown set, half of a pair of files, and numbers that make no sense."""
    for arguments, reported in (
        (["paris"], "no set paris; there are azure, surf, gpu, dlrm, azure-later, hpc, mix, pools, services"),
        (files[:2], "give --pods and --types together"),
        ([*files, "--hours", "0"], "--hours 0: give a number of hours above 0"),
        ([*files, "--seeds", "0"], "--seeds 0: give a number of draws, 1 or more"),
    ):
        assert main(list(arguments)) == 2
        assert reported in capsys.readouterr().err
