"""What controllers share for writing: leases, events, and a bounded number of parallel requests."""

from kubetide.acting.background import BackgroundWrites, Unfinished
from kubetide.acting.correlating import SpamFilter, of_one_object
from kubetide.acting.election import Elector, Fence, LeaseLost
from kubetide.acting.events import Event, EventWriter, cut_note, reference_to
from kubetide.acting.lease import LeaseTimes
from kubetide.acting.parallel import both, in_parallel
from kubetide.acting.reads import UNANSWERED, in_time
from kubetide.acting.turns import in_turns
from kubetide.acting.unread import UnreadObjects
from kubetide.acting.update import update_object

__all__ = [
    "UNANSWERED",
    "BackgroundWrites",
    "Elector",
    "Event",
    "EventWriter",
    "Fence",
    "LeaseLost",
    "LeaseTimes",
    "SpamFilter",
    "Unfinished",
    "UnreadObjects",
    "both",
    "cut_note",
    "in_parallel",
    "in_time",
    "in_turns",
    "of_one_object",
    "reference_to",
    "update_object",
]
