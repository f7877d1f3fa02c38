"""What methods take: the plain value of an argument, or a ValidationError that names it, what was given, and what is
wanted. Numbers of numpy count as the numbers of Python that they are; numpy itself is not needed."""

from __future__ import annotations

import itertools
import math
import operator
import os
import reprlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from kumiki.errors import ValidationError

#: How deep the values of a mapping may be nested: the engine takes 32, of which the command has three.
DEPTH_MAX = 29
#: Texts of a list at most; the engine's own limits are far below.
TEXTS_MAX = 1_000
#: Seconds that anything may be waited for at most, if not without end: more than three years.
SECONDS_MAX = 100_000_000
#: Digits before and after the point of an amount; the engine's own limits are far below.
_DIGITS_MAX = 100
#: What a JSON number of the engine holds exactly.
_LEAST, _MOST = -(2**63), 2**64 - 1

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80


def wrong(name: str, given: object, wanted: str) -> ValidationError:
    """The error of an argument."""
    seen = " ".join(_short.repr(given).split())
    return ValidationError(
        f"{name}: {seen} ({type(given).__name__}) was given; give {wanted}", code="validation_error"
    )


def plain(value: Any) -> Any:
    """The number, bool or text of Python that a scalar of numpy is; everything else as it is."""
    kind = type(value)
    is_scalar = kind.__module__.split(".")[0] == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if is_scalar and not is_numpy_time(value) else value


def is_numpy_time(value: object) -> bool:
    """Whether it is a time or a span of numpy, which `item()` would make a bare number of."""
    kind = type(value)
    return kind.__module__.split(".")[0] == "numpy" and kind.__name__ in ("datetime64", "timedelta64")


def text(name: str, value: Any, wanted: str = "a text") -> str:
    """A text that can be sent."""
    value = plain(value)
    if not isinstance(value, str):
        raise wrong(name, value, wanted)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong(name, value, f"{wanted} of whole characters; this is no UTF-8") from None
    return value


def secret(name: str, value: Any) -> str:
    """A text that no error shows."""
    try:
        return text(name, value)
    except ValidationError:
        raise ValidationError(f"{name}: give a text", code="validation_error") from None


def texts(name: str, values: Any, wanted: str) -> list[str]:
    """Some texts; one text is not taken for its letters."""
    values = plain(values)
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise wrong(name, values, wanted)
    some = list(itertools.islice(values, TEXTS_MAX + 1))
    if len(some) > TEXTS_MAX:
        raise wrong(name, values, f"{wanted}, {TEXTS_MAX:,} at most")
    return [text(f"{name}[{place}]", value) for place, value in enumerate(some)]


def whole(name: str, value: Any, wanted: str = "a whole number") -> int:
    """A whole number."""
    number = _index(plain(value))
    if number is None:
        raise wrong(name, value, wanted)
    return number


def flag(name: str, value: Any) -> bool:
    """True or False."""
    value = plain(value)
    if not isinstance(value, bool):
        raise wrong(name, value, "True or False")
    return value


def seconds(name: str, value: Any, *, is_above_0: bool = False) -> float:
    """A time to wait."""
    value = plain(value)
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        if (0 < value if is_above_0 else 0 <= value) and value <= SECONDS_MAX:
            return float(value)
    above = "above 0" if is_above_0 else "from 0"
    raise wrong(name, value, f"seconds as a number {above} to {SECONDS_MAX:,}")


def maybe_seconds(name: str, value: Any) -> float | None:
    """A time to wait, or None."""
    return None if value is None else seconds(name, value)


def amount(name: str, value: Any) -> Decimal:
    """An exact number: yen or shares."""
    wanted = "an exact amount: an int, a Decimal or a text"
    value = plain(value)
    if isinstance(value, (bool, float)):
        raise wrong(name, value, wanted)
    if not isinstance(value, (str, Decimal)):
        value = whole(name, value, wanted)
        if value.bit_length() > 4 * _DIGITS_MAX:
            raise wrong(name, value, f"{wanted} of at most {_DIGITS_MAX} digits")
    try:
        number = Decimal(value)
    except ArithmeticError:
        raise wrong(name, value, f"{wanted}; this is no number") from None
    if not number.is_finite():
        raise wrong(name, value, f"{wanted}; this is no number")
    # As 1E+999999999, which would be that long.
    if len(number.as_tuple().digits) > _DIGITS_MAX or abs(number.adjusted()) > _DIGITS_MAX:
        raise wrong(name, value, f"{wanted} of at most {_DIGITS_MAX} digits")
    return number


def place(name: str, value: Any) -> str:
    """A path."""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(path, str) or "\0" in path:
        raise wrong(name, value, "a path, as a text or a pathlib.Path")
    return path


def maybe_place(name: str, value: Any) -> str | None:
    """A path, or None."""
    return None if value is None else place(name, value)


def function(name: str, value: Any) -> None:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise wrong(name, value, "a function of one argument, or None")


def multiplier(value: Any) -> int | str:
    """The speed of a run; the engine knows how fast it may be."""
    wanted = 'a whole number of 1 to 1,000,000, or "max"'
    return text("multiplier", value) if isinstance(value, str) else whole("multiplier", value, wanted)


def values(name: str, given: Any, wanted: str) -> dict[str, Any]:
    """Values by their names, as JSON has them."""
    if not isinstance(given, Mapping):
        raise wrong(name, given, wanted)
    fields: dict[str, Any] = _json(name, given, 0)
    return fields


def _index(value: Any) -> int | None:
    """The whole number that a value is; an array may be one, or not."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError):
        return None


def _json(name: str, value: Any, depth: int) -> Any:
    value = plain(value)
    if isinstance(value, str):
        return text(name, value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (Mapping, list, tuple)):
        if depth >= DEPTH_MAX:
            raise ValidationError(f"{name[:80]}: nested deeper than {DEPTH_MAX}", code="validation_error")
        if not isinstance(value, Mapping):
            return [_json(f"{name}[{place}]", one, depth + 1) for place, one in enumerate(value)]
        named = {text(f"{name}: a key", key, "names as texts"): one for key, one in value.items()}
        return {key: _json(f"{name}.{key}", one, depth + 1) for key, one in named.items()}
    if isinstance(value, Decimal):
        return _number(name, value)
    number = _index(value)
    if number is not None:
        if not _LEAST <= number <= _MOST:
            raise wrong(name, value, f"a whole number from {_LEAST} to {_MOST}")
        return number
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise wrong(name, value, "what JSON has: a finite number, a text, True, False, None, or lists and dicts of these")


def _number(name: str, value: Decimal) -> int | float:
    """The JSON number of the same digits."""
    if value.is_finite() and abs(value.adjusted()) <= _DIGITS_MAX:
        is_whole = value == value.to_integral_value()
        number = int(value) if is_whole else float(value)
        if _LEAST <= number <= _MOST and Decimal(str(number)) == value:
            return number
    raise wrong(name, value, "a number with fewer digits, or a text")
