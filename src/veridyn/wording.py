"""Numbers, units, counts and lists as people read them: words of verdicts, reports and pages."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

DIGITS = 15  # that a double has for certain
LEAST_POWER = -300  # of ten; numbers below 10⁻³⁰⁸ have fewer digits
_UNIT = {"*": "·", "^2": "²", "^3": "³"}
_NAME = r"(?:kg|rad|deg|Hz|N|A|V|W|J|m|s)(?:\^[23])?"
_UNITS = re.compile(rf"(?<![\w*/^.\[]){_NAME}(?:[*/]{_NAME})*(?![\w*/^(])")


def unit_text(unit: str) -> str:
    """For the eye: kg*m^2 becomes kg·m²."""
    return re.sub("|".join(re.escape(k) for k in _UNIT), lambda m: _UNIT[m[0]], unit)


def units_in(text: str) -> str:
    """Units within a sentence as :func:`unit_text` writes them; names, headers such as tau1 [N*m] and formulas stay as they are."""
    return _UNITS.sub(lambda m: unit_text(m[0]), text)


def number(value: float, digits: int = 4) -> str:
    """A few significant digits, a power of ten from a million on; "–" where there is no number."""
    if not math.isfinite(value):
        return "–"
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    if power and 0 < int(power) < 6:
        mantissa, power = f"{float(f'{value:.{digits}g}'):.0f}", ""
    if not float(mantissa):
        return "0"
    return mantissa.replace("-", "−") + (f"·10{superscript(int(power))}" if power else "")


def superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def measured(value: float, sigma: float) -> tuple[str, str]:
    """Value and deviation to the same place: two digits of the deviation. One below a double's rounding of the value stands alone."""
    if not (math.isfinite(value) and math.isfinite(sigma)) or sigma <= 0.0:
        return number(value, 6), number(sigma, 2)
    exponent = math.floor(math.log10(sigma))
    if float(f"{sigma:.1e}") >= 10.0 ** (exponent + 1):  # rounding carried it into the next decade
        exponent += 1
    power = math.floor(math.log10(max(abs(value), sigma)))
    if power - exponent + 2 > DIGITS or power < LEAST_POWER:
        return number(value, DIGITS), number(sigma, 2)
    places = 1 - exponent
    if places > 8 or places < -3:
        if float(f"{max(abs(value), sigma) / 10.0**power:.{max(power - exponent, -1) + 1}f}") >= 10.0:
            power += 1
        times = f"·10{superscript(power)}" if power else ""
        shown = [_plain(x / 10.0**power, power - exponent + 1) + times for x in (value, sigma)]
        return shown[0], shown[1]
    if places < 0:
        value, sigma, places = round(value, places), round(sigma, places), 0
    return _plain(value, places), _plain(sigma, places)


def like(value: float, sigma: float) -> str:
    """Another value of the same quantity, to the place where the deviation begins to matter."""
    return "0" if value == 0.0 else measured(value, sigma)[0] if math.isfinite(value) else "–"


def percent(value: float) -> str:
    """Percent with two digits: 0.04, 0.84, 3.1, 18; above 999 the digits do not matter."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "> 999" if value > 0.0 else "< −999"
    if value > 999.0:
        return "> 999"
    if value < 0.0:
        return "< −999" if value < -999.0 else "−" + percent(-value)
    if value < 0.095:
        return number(value, 1)
    return f"{value:.{0 if value >= 9.95 else 1 if value >= 0.995 else 2}f}"


def count(n: int, one: str, many: str = "") -> str:
    """The number with its noun: 1 row, 3 rows."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """All of them, as in a, b and c; or the first and how many more."""
    if len(names) > most:
        return ", ".join(names[:most]) + f" and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _plain(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.replace("-", "−") if float(text) else text.replace("-", "")
