"""Property tests try the same examples in every run; KUBETIDE_EXPLORE=1 tries new ones."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("KUBETIDE_EXPLORE") else "repeatable")
