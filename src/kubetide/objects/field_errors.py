"""One violated rule of an object, in the API server's words, and the checks that all kinds share.

Source: apimachinery v1.36, util/validation/field and api/validation.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubetide.units.names import label_key_errors, label_value_errors
from kubetide.units.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kubetide.objects.base import Json

REQUIRED = "Required value"
INVALID = "Invalid value"
NOT_SUPPORTED = "Unsupported value"
FORBIDDEN = "Forbidden"
TYPE_INVALID = "Type invalid"  # said as an invalid value; its cause has a reason of its own
TOO_LONG = "Too long"
TOO_MANY = "Too many"
DUPLICATE = "Duplicate value"
NOT_FOUND = "Not found"
INTERNAL = "Internal error"

CAUSE_REASONS = {
    DUPLICATE: "FieldValueDuplicate",
    FORBIDDEN: "FieldValueForbidden",
    INTERNAL: "InternalError",
    INVALID: "FieldValueInvalid",
    NOT_FOUND: "FieldValueNotFound",
    REQUIRED: "FieldValueRequired",
    TOO_LONG: "FieldValueTooLong",
    TOO_MANY: "FieldValueTooMany",
    TYPE_INVALID: "FieldValueTypeInvalid",
    NOT_SUPPORTED: "FieldValueNotSupported",
}
"""What the types are called in the causes of a Status."""

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"

_PERCENT = re.compile("[0-9]+%", re.ASCII)


@dataclass(frozen=True, slots=True)
class FieldError:
    """A rule that a field breaks; ``str`` gives it as the API server words it."""

    field: str
    type: str
    value: Any = None
    detail: str = ""

    def __str__(self) -> str:
        text = f"{self.field}: {INVALID if self.type == TYPE_INVALID else self.type}"
        if self.type not in {REQUIRED, FORBIDDEN, TOO_LONG, INTERNAL}:
            text += f": {_shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, REQUIRED, None, detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, INVALID, value, detail)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, FORBIDDEN, None, detail)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, DUPLICATE, value)


def not_found(field: str, value: Any) -> FieldError:
    return FieldError(field, NOT_FOUND, value)


def too_long(field: str, limit: int) -> FieldError:
    """Say that a text, or what stands in a map together, has more than ``limit`` bytes."""
    return FieldError(field, TOO_LONG, None, f"may not be more than {limit} bytes")


def too_many(field: str, number: int, limit: int) -> FieldError:
    """Say that a list has more than ``limit`` items."""
    return FieldError(field, TOO_MANY, number, f"must have at most {limit} items")


def unsupported(field: str, value: Any, supported: Iterable[str], *, in_order: bool = False) -> FieldError:
    """Say which values there are: sorted, or ``in_order`` where upstream keeps an order of its own."""
    names = supported if in_order else sorted(supported)
    return FieldError(field, NOT_SUPPORTED, value, "supported values: " + ", ".join(f'"{n}"' for n in names))


# ── Checks that many kinds share ────────────────────────────────────────────────────────────────


def check_choice(
    field: str,
    value: Any,
    supported: Iterable[str],
    *,
    missing: str | None = None,
    in_order: bool = False,
) -> list[FieldError]:
    """Check that a value is one of a few; ``missing`` is the detail where it has to be given."""
    if not value:
        return [] if missing is None else [required(field, missing)]
    return [] if value in supported else [unsupported(field, value, supported, in_order=in_order)]


def check_not_negative(field: str, value: Any) -> list[FieldError]:
    if isinstance(value, int) and value < 0:
        return [invalid(field, value, NOT_NEGATIVE)]
    return []


def check_labels(field: str, labels: Mapping[str, str] | None) -> list[FieldError]:
    errors = []
    for key, value in (labels or {}).items():
        errors += [invalid(field, key, text) for text in label_key_errors(key)]
        errors += [invalid(field, value, text) for text in label_value_errors(value)]
    return errors


def check_selector(field: str, selector: Json | None) -> list[FieldError]:
    """Check a ``LabelSelector``."""
    errors = check_labels(f"{field}.matchLabels", (selector or {}).get("matchLabels"))
    for index, term in enumerate((selector or {}).get("matchExpressions") or ()):
        at = f"{field}.matchExpressions[{index}]"
        values = term.get("values") or []
        operator = term.get("operator") or ""
        if operator in {"In", "NotIn"}:
            if not values:
                errors.append(
                    required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
                )
        elif operator in {"Exists", "DoesNotExist"}:
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{at}.values", detail))
        else:
            errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        errors += [
            invalid(f"{at}.key", term.get("key") or "", text)
            for text in label_key_errors(term.get("key") or "")
        ]
        for place, value in enumerate(values):
            errors += [invalid(f"{at}.values[{place}]", value, text) for text in label_value_errors(value)]
    return errors


def read_quantity(field: str, value: str | float, errors: list[FieldError]) -> Quantity | None:
    """Read a quantity that may not be negative; what is wrong is added to ``errors``."""
    try:
        quantity = Quantity.parse(value)
    except QuantityError as exc:
        errors.append(invalid(field, value, str(exc).partition(" is not a quantity: ")[2] or str(exc)))
        return None
    if quantity.sign() < 0:
        errors.append(invalid(field, str(quantity), NOT_NEGATIVE))
    return quantity


def check_int_or_percent(field: str, value: Any, *, at_most_100: bool = False) -> list[FieldError]:
    """Check a count or a percentage such as ``25%``."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            detail = (
                "a valid percent string must be a numeric string followed by an ending '%' "
                "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            )
            return [invalid(field, value, detail)]
        if at_most_100 and (len(value) > 4 or int(value[:-1]) > 100):
            return [invalid(field, value, "must not be greater than 100%")]
        return []
    return check_not_negative(field, value)


def is_zero_count(value: Any) -> bool:
    """Return whether a count or a percentage is zero."""
    return value == 0 or (isinstance(value, str) and value.rstrip("%").strip("0") == "")
