"""Gathers what the recommender decides from, carries out what it decides, records."""

from kubetide.vertical.recommender.controller.controller import LOOP, RecommenderController

__all__ = ["LOOP", "RecommenderController"]
