"""The table of rules over recorded usage, on usage made by hand."""

from __future__ import annotations

import numpy as np
from bench.sizes import MEMORY, Trace, main, play, rules

GIB = 1 << 30


def trace(cpu, memory):
    count = len(cpu)
    return Trace("made", 300, cpu, memory, np.full(count, 4000.0), np.full(count, MEMORY))


def lines(one):
    return {rule.name: play(one, rule) for rule in rules(one)}


def test_flat_usage_is_met_with_the_margins_of_each_rule():
    """Two days of one core and one GiB: nothing is above, and slack is what a rule adds."""
    found = lines(trace(np.full((3, 576), 1000.0), np.full((3, 576), 1.0 * GIB)))
    assert found["none"][2:6] == ("75.0%", "0.00%", "93.8%", "0.00%")
    assert found["KRR"][2:6] == ("0.0%", "0.00%", "13.0%", "0.00%")
    assert found["upstream"] == ("made", "upstream", *found["ours"][2:])
    assert found["upstream"][3] == found["upstream"][5] == "0.00%"
    assert 13.0 < float(found["upstream"][2].rstrip("%")) < 20.0


def test_memory_above_the_request_is_one_kill_until_it_falls_below():
    """A step to twice the memory is one OOM-equivalent a container, and the recommender answers it."""
    memory = np.full((2, 576), 1.0 * GIB)
    memory[:, 500:] = 2.0 * GIB
    found = lines(trace(np.full((2, 576), 100.0), memory))
    assert found["none"][6] == "0.0"
    # Two containers, one day that counts: a kill each is 1000 in 1000 days.
    assert abs(float(found["KRR"][6]) - 1000) < 10
    assert float(found["upstream"][5].rstrip("%")) < float(found["KRR"][5].rstrip("%"))


def test_gaps_and_missing_resources_are_left_out():
    """Containers with few measurements neither count nor stop the others."""
    cpu = np.full((2, 288), 500.0)
    cpu[1, 10:] = np.nan
    found = lines(trace(cpu, None))
    assert [line[4:7] for line in found.values()] == [("-", "-", "-")] * 4
    assert found["none"][2] == "87.5%"


def test_without_the_traces_it_says_so(tmp_path, monkeypatch, capsys):
    """Data that is not there is named, and the table is empty."""
    monkeypatch.setattr("sys.argv", ["sizes", "--data", str(tmp_path)])
    assert main() == 0
    said = capsys.readouterr()
    assert "planetlab-2011: no folder" in said.err
    assert len(said.out.splitlines()) == 1
