"""Types of numpy's arrays with one axis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BoolVector = NDArray[np.bool_]
Float64Vector = NDArray[np.float64]
Int64Vector = NDArray[np.int64]
