"""Pods out: the horizontal loop (HPA). The controller is in ``kubetide.horizontal.controller``."""

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.explain import HpaExplanation, explain
from kubetide.horizontal.reasons import VOCABULARY
from kubetide.horizontal.settings import FeatureGates, Settings

__all__ = ["VOCABULARY", "FeatureGates", "HorizontalCore", "HpaExplanation", "Settings", "explain"]
