"""What controllers share for writing: leases, events, and a bounded number of parallel requests."""

from kubetide.acting.election import Elector, Fence, LeaseLost
from kubetide.acting.events import EventWriter, cut_note
from kubetide.acting.lease import LeaseTimes
from kubetide.acting.parallel import both, in_parallel
from kubetide.acting.turns import in_turns
from kubetide.acting.unread import UnreadObjects
from kubetide.acting.update import update_object
from kubetide.acting.waiting import within

__all__ = [
    "Elector",
    "EventWriter",
    "Fence",
    "LeaseLost",
    "LeaseTimes",
    "UnreadObjects",
    "both",
    "cut_note",
    "in_parallel",
    "in_turns",
    "update_object",
    "within",
]
