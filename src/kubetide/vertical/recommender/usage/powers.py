"""Powers as Go's math package computes them, so that weights and bucket bounds agree to the last digit.

NumPy's and the C library's functions differ from Go's in the last digit for one argument in ten. A
percentile that lies exactly on a bound then comes out one bucket off.

Source: Go 1.26 math.Exp2 and math.Pow, portable versions; the polynomial is that of FreeBSD's e_exp.c.
"""

from __future__ import annotations

import math

import numpy as np

from kubetide.units.vectors import Float64Vector

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_COEFFICIENTS = (
    4.13813679705723846039e-08,
    -1.65339022054652515390e-06,
    6.61375632143793436117e-05,
    -2.77777777770155933842e-03,
    1.66666666666666657415e-01,
)
_LEAST, _GREATEST = -1074.0, 1023.9999999999999


def exp2(x: Float64Vector) -> Float64Vector:
    """Return 2 to the power of each element; 0 below -1074, infinity from 1024 on."""
    bounded = np.clip(x, _LEAST, _GREATEST)
    whole = np.trunc(bounded + np.copysign(0.5, bounded))
    rest = bounded - whole
    high, low = rest * _LN2_HIGH, -rest * _LN2_LOW
    reduced = high - low
    square = reduced * reduced
    polynomial = np.full_like(square, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        polynomial = coefficient + square * polynomial
    c = reduced - square * polynomial
    y = 1 - ((low - (reduced * c) / (2 - c)) - high)
    result = np.ldexp(y, whole.astype(np.int32))
    result = np.where(x > _GREATEST, np.inf, result)
    return np.where(x < _LEAST, 0.0, result)


def power(base: float, exponent: int) -> float:
    """Return ``base`` to a whole power that is not negative, by squaring mantissas; ``base`` is positive."""
    mantissa, shift = math.frexp(base)
    result, total = 1.0, 0
    while exponent:
        if exponent & 1:
            result *= mantissa
            total += shift
        mantissa *= mantissa
        shift *= 2
        if mantissa < 0.5:
            mantissa += mantissa
            shift -= 1
        exponent >>= 1
    return math.ldexp(result, total)
