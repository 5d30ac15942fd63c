"""CEL, the expression language of the Kubernetes API: reading, checking, running."""

from __future__ import annotations

from kubetide.cel import kubernetes, standard, texts_and_lists
from kubetide.cel.declarations import Functions, merged
from kubetide.cel.program import Program, compile_expression
from kubetide.cel.syntax import CelError
from kubetide.cel.values import EvaluationError, OpenMap, Version

FUNCTIONS: Functions = merged(standard.LIBRARY, texts_and_lists.LIBRARY, kubernetes.LIBRARY)
"""What Kubernetes v1.36 offers to every expression, but for what ``kubernetes`` names as left out."""

__all__ = [
    "FUNCTIONS",
    "CelError",
    "EvaluationError",
    "Functions",
    "OpenMap",
    "Program",
    "Version",
    "compile_expression",
]
