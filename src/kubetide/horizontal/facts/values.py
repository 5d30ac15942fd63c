"""Answers of the custom and external metrics APIs, as decisions read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kubetide.horizontal.facts.samples import ONE_ZERO
from kubetide.horizontal.metrics.types import Question
from kubetide.units.vectors import Int64Vector


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer of this tick.

    Attributes:
        question: What was asked.
        error: Why there is no value, as conditions quote it; empty when there is one.
        pods: (V,) names, for ``pods``; of equal names the last one holds. None: those of the last
            tick's answer to the question.
        milli: (V,) values in thousandths; of an object one.
        measured: When the oldest of them was measured, ns; 0 where the source does not say.
    """

    question: Question
    error: str = ""
    pods: Sequence[str] | None = ()
    milli: Int64Vector = ONE_ZERO
    measured: int = 0


Replies = Mapping[Question, Reply]


def shortened(reply: Reply, before: Replies) -> Reply:
    """Return the answer without names that the last answer to the query has too; names are most of a record."""
    last = before.get(reply.question)
    if last is None or not reply.pods or reply.pods != last.pods:
        return reply
    return msgspec.structs.replace(reply, pods=None)


def taken_over(replies: Sequence[Reply], before: Replies) -> dict[Question, Reply]:
    """Return this tick's answers by query, names included."""
    return {reply.question: _with_names(reply, before) for reply in replies}


def _with_names(reply: Reply, before: Replies) -> Reply:
    if reply.pods is not None:
        return reply
    return msgspec.structs.replace(reply, pods=before[reply.question].pods)
