"""Decisions of a record, and each of them as a CloudEvent or as a message for Slack."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal

import msgspec

from kubetide.explain.reasons import Field, Vocabulary
from kubetide.explain.records import Record
from kubetide.units.time import Instant, format_rfc3339

Format = Literal["cloudevents", "slack"]

CONTENT_TYPES: Final[dict[Format, str]] = {
    "cloudevents": "application/cloudevents+json",
    "slack": "application/json",
}
TYPE_PREFIX: Final = "dev.kubetide.decision."

_MOST_REASONS = 10
_MOST_CHARACTERS = 500
"""Of one sentence."""


class Decision(msgspec.Struct, frozen=True):
    """A decision to send; ``place`` is its position among those of its record."""

    at: Instant
    loop: str
    tick: int
    phase: int
    place: int
    reason: str
    subject: str
    text: str
    why: tuple[str, ...]
    fields: dict[str, Field]


def decisions_of(record: Record, vocabulary: Vocabulary, reasons: Collection[str]) -> list[Decision]:
    """Return the decisions of a record to send: those of these codes, or without codes all that acted."""
    found = []
    for place, action in enumerate(record.reasons):
        if not vocabulary.is_action(action):
            continue
        if not (action.code in reasons if reasons else not vocabulary.is_fruitless(action)):
            continue
        others = [
            one for one in record.reasons if one.subject == action.subject and not vocabulary.is_action(one)
        ]
        why = tuple(_plain(vocabulary.text(one)) for one in vocabulary.telling(others)[:_MOST_REASONS])
        found.append(
            Decision(
                record.now,
                record.loop,
                record.tick,
                record.phase,
                place,
                action.code,
                _plain(action.subject),
                _plain(vocabulary.text(action)),
                why,
                dict(action.fields),
            )
        )
    return found


def encoded(decision: Decision, form: Format, *, source: str, left_out: int = 0) -> bytes:
    """Return the body of the request that sends a decision.

    Args:
        decision: What to send.
        form: ``cloudevents`` is structured JSON of CloudEvents 1.0, ``slack`` that of an incoming webhook.
        source: The API server of the cluster.
        left_out: Decisions before it that were not sent, as there were too many.
    """
    return _slack(decision, left_out) if form == "slack" else _cloud_event(decision, source, left_out)


def _cloud_event(decision: Decision, source: str, left_out: int) -> bytes:
    data: dict[str, object] = {
        "loop": decision.loop,
        "reason": decision.reason,
        "object": decision.subject,
        "text": decision.text,
        "why": decision.why,
        "fields": decision.fields,
    }
    if left_out:
        data["leftOut"] = left_out
    event = {
        "specversion": "1.0",
        "id": f"{decision.at}-{decision.loop}-{decision.tick}-{decision.phase}-{decision.place}",
        "source": source,
        "type": f"{TYPE_PREFIX}{decision.reason}",
        "subject": f"{decision.loop}/{decision.subject}",
        "time": format_rfc3339(decision.at),
        "datacontenttype": "application/json",
        "data": data,
    }
    return msgspec.json.encode(event)


def _slack(decision: Decision, left_out: int) -> bytes:
    lines = [f"*{decision.loop}* {_escaped(decision.text)}", *(f"• {_escaped(one)}" for one in decision.why)]
    if left_out:
        lines.append(f"_{left_out} earlier decisions were not sent, as there were too many_")
    return msgspec.json.encode({"text": "\n".join(lines)})


def _escaped(text: str) -> str:
    """Return a text in which Slack sees no link, mention or entity."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str) -> str:
    """Return a text without control characters, and not endlessly long."""
    shown = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return shown if len(shown) <= _MOST_CHARACTERS else f"{shown[: _MOST_CHARACTERS - 3]}..."
