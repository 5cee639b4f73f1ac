"""A property's value as a str, by JMS's conversion to String: what ``getStringProperty`` gives in Java."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Final

from redelivery.model.values import Float, Value

_PLAIN: Final = range(-3, 7)  # decimal exponents that Java writes without an E
_FLOAT_DIGITS: Final = range(2, 10)


def property_string(value: Value) -> str | None:
    """``true`` or ``false``, a whole number in digits, a floating one as Java writes it (``1.0E10``), None for null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _floating(value)
    return value.hex().upper() if isinstance(value, bytes) else int.__repr__(value)


def _floating(value: float) -> str:
    """As Double.toString and Float.toString since Java 19: the fewest digits that mean this number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1, value) < 0 else ""
    number = Decimal(_fewest(abs(value)) if isinstance(value, Float) else float.__repr__(abs(value)))
    if len(number.as_tuple().digits) == 1:
        number = Decimal(f"{abs(value):.1e}")  # Java takes the best of two digits, where one would do
    if not number:
        return sign + "0.0"
    _, digits, _ = number.as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    exponent = number.adjusted()
    if exponent not in _PLAIN:
        return f"{sign}{text[0]}.{text[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{text}"
    return f"{sign}{text[: exponent + 1].ljust(exponent + 1, '0')}.{text[exponent + 1 :] or '0'}"


def _fewest(value: float) -> str:
    """The fewest digits that mean the same number of 32 bits."""
    wanted = struct.pack("<f", value)
    (value,) = struct.unpack("<f", wanted)
    for digits in _FLOAT_DIGITS:
        text = f"{value:.{digits}g}"
        try:
            if struct.pack("<f", float(text)) == wanted:
                return text
        except OverflowError:  # rounded up beyond the largest
            continue
    return float.__repr__(value)
