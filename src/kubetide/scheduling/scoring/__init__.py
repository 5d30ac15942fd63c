"""Scoring: which of the feasible nodes is best, as kube-scheduler scores and chooses."""

from __future__ import annotations

from kubetide.scheduling.scoring.base import Incoming, Scored, ScoreError, Scorer
from kubetide.scheduling.scoring.choice import NodeChooser
from kubetide.scheduling.scoring.default_spread import OwnerKey, OwnerSelectors, default_selector
from kubetide.scheduling.scoring.incoming import incoming
from kubetide.scheduling.scoring.profile import DEFAULT, PROFILES, Profile, profile_of
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot

__all__ = [
    "DEFAULT",
    "PROFILES",
    "Incoming",
    "NodeChooser",
    "OwnerKey",
    "OwnerSelectors",
    "Profile",
    "ScoreError",
    "Scored",
    "ScoredSnapshot",
    "Scorer",
    "default_selector",
    "incoming",
    "profile_of",
]
