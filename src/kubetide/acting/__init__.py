"""What controllers share when they write: events, and a bounded number of requests at once."""

from kubetide.acting.events import EventWriter
from kubetide.acting.parallel import in_parallel

__all__ = ["EventWriter", "in_parallel"]
