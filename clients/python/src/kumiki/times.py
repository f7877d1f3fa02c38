"""Times: whole nanoseconds since 1970 UTC, and what people write and read."""

from __future__ import annotations

import datetime
from typing import Union

__all__ = ["JST", "Date", "Time", "date_text", "to_datetime", "to_ns"]

#: The time of the Tokyo market; it has no summer time.
JST = datetime.timezone(datetime.timedelta(hours=9), "JST")
#: A date in Japan, as text like `2025-01-06` or as a date.
Date = Union[str, datetime.date]
#: A time: nanoseconds since 1970 UTC, or a datetime that knows its time zone.
Time = Union[int, datetime.datetime]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)


def to_datetime(nanos: int) -> datetime.datetime:
    """A time in Japan, cut off at microseconds, of nanoseconds since 1970 UTC."""
    return (_EPOCH + nanos // 1_000 * _MICROSECOND).astimezone(JST)


def to_ns(time: Time) -> int:
    """Nanoseconds since 1970 UTC. A datetime must know its time zone."""
    if isinstance(time, datetime.datetime):
        if time.tzinfo is None:
            raise ValueError(f"{time} has no time zone; give it one, as tzinfo=kumiki.JST")
        return (time - _EPOCH) // _MICROSECOND * 1_000
    return time


def date_text(date: Date) -> str:
    """A date as the engine reads it: `2025-01-06`."""
    if isinstance(date, datetime.datetime):
        raise TypeError(f"{date} is a time; a date in Japan is asked for")
    return date.isoformat() if isinstance(date, datetime.date) else date
