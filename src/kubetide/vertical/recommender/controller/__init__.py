"""The recommender's controller: gathers, carries out, records."""

from kubetide.vertical.recommender.controller.controller import LOOP, RecommenderController

__all__ = ["LOOP", "RecommenderController"]
