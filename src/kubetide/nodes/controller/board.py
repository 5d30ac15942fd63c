"""The node loop's side of the board: what others announce, and its answers."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubetide.nodes.facts.new_pods import counts_new_pods
from kubetide.nodes.records.delta import Delta
from kubetide.nodes.scale_up.reporting.answers import replacement_waits
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.nodes.templates.sizes import node_sizes
from kubetide.plan.board import Board, Capacity, Workload


def with_announced(delta: Delta, board: Board, known: State) -> Delta:
    """Return a delta with what is announced and not yet in the state."""
    intents, new_pods, replacements = board.intents(), board.new_pods, board.replacements
    return replace(
        delta,
        intents=intents if intents != known.intents else None,
        new_pods=new_pods if new_pods != known.announced_new_pods else None,
        replacements=replacements if replacements != known.replacements else None,
    )


class BoardAnswers:
    """Writes the loop's answers on the board; without one nobody asks."""

    def __init__(self, board: Board | None, settings: Settings) -> None:
        self._board = board or Board()
        self._board.tells_sizes = self._board.answers_replacements = True
        self._board.asks_new_pods |= counts_new_pods(settings)
        self._capacity: dict[Workload, Capacity] = {}

    def answer(self, answers: Sequence[Capacity], state: State) -> None:
        """Say what capacity is missing, for replicas to come and for replacements of pods, in place of what was said before."""
        new = {answer.workload: answer for answer in answers}
        for workload in self._capacity:
            if workload not in new:
                self._board.clear_answer(workload)
        for workload, answer in new.items():
            if self._capacity.get(workload) != answer:
                self._board.answer(answer)
        self._capacity = new
        self._board.replacement_waits = replacement_waits(state)

    def show_sizes(self, state: State) -> None:
        """Say what new nodes have free, where somebody asks."""
        if self._board.asks_sizes:
            self._board.sizes = node_sizes(state)
