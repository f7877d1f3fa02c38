"""Times: whole nanoseconds since 1970 UTC, and what people write and read."""

from __future__ import annotations

import datetime
from typing import Union

from kumiki import _arguments

__all__ = ["JST", "Date", "Time", "date_text", "nanos", "to_datetime", "to_ns"]

#: The time of the Tokyo market; it has no summer time.
JST = datetime.timezone(datetime.timedelta(hours=9), "JST")
#: A date in Japan, as text like `2025-01-06`, as a date, or as a time of pandas or numpy that has no hours.
Date = Union[str, datetime.date]
#: A time: nanoseconds since 1970 UTC, or a datetime that knows its time zone.
Time = Union[int, datetime.datetime]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
_WANTED_TIME = "a time: nanoseconds since 1970 UTC as an int, or a datetime with a time zone, as tzinfo=kumiki.JST"
_WANTED_DATE = 'a date in Japan: a text like "2025-01-06", or a datetime.date'


def to_datetime(nanos: int) -> datetime.datetime:
    """A time in Japan, cut off at microseconds, of nanoseconds since 1970 UTC."""
    number = _arguments.whole("nanos", nanos, "nanoseconds since 1970 UTC as an int")
    try:
        return (_EPOCH + number // 1_000 * _MICROSECOND).astimezone(JST)
    except OverflowError:
        raise _arguments.wrong("nanos", nanos, "nanoseconds of the years 1 to 9999") from None


def to_ns(time: Time) -> int:
    """Nanoseconds since 1970 UTC. A datetime must know its time zone."""
    return nanos("time", time)


def nanos(name: str, time: Time) -> int:
    """The same of an argument. Raises ValidationError."""
    if isinstance(time, datetime.datetime):
        # What pandas has for no time is one too, and no number.
        if time != time or time.tzinfo is None:
            raise _arguments.wrong(name, time, _WANTED_TIME)
        # A Timestamp of pandas has what is left of a microsecond.
        rest = int(getattr(time, "nanosecond", None) or 0)
        return int((_plain(time) - _EPOCH) // _MICROSECOND) * 1_000 + rest
    return _arguments.whole(name, time, _WANTED_TIME)


def date_text(date: Date, name: str = "date") -> str:
    """A date as the engine reads it: `2025-01-06`. Raises ValidationError for a time, and for what is no date."""
    if isinstance(date, datetime.datetime):
        if date != date:
            raise _arguments.wrong(name, date, _WANTED_DATE)
        here = _plain(date) if date.tzinfo is None else _plain(date).astimezone(JST)
        if here.time() != datetime.time() or getattr(date, "nanosecond", None):
            raise _arguments.wrong(name, date, f"{_WANTED_DATE}; this is a time")
        return here.date().isoformat()
    if isinstance(date, datetime.date):
        return date.isoformat()
    if _arguments.is_numpy_time(date):
        day, _, clock = str(date).partition("T")
        try:
            if not clock.strip("0:."):
                return datetime.date.fromisoformat(day).isoformat()
        except ValueError:
            pass
        raise _arguments.wrong(name, date, f"{_WANTED_DATE}; this is no whole day")
    return _arguments.text(name, date, _WANTED_DATE)


def _plain(time: datetime.datetime) -> datetime.datetime:
    """Without what pandas adds, which it would warn of."""
    return datetime.datetime(
        time.year, time.month, time.day, time.hour, time.minute, time.second, time.microsecond, time.tzinfo,
        fold=time.fold,
    )
