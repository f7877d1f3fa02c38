"""The events of the engine, with exact numbers."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Union

from kumiki import _arguments
from kumiki.errors import SchemaError
from kumiki.times import to_datetime

__all__ = ["Amount", "Event", "amount_text"]

#: An exact amount as it is given: yen or shares. Floats are none.
Amount = Union[int, str, Decimal]

#: Fields in yen: `decimal.Decimal`.
_YEN = frozenset(
    "price trigger_price last_price cash buying_power equity final_equity market_value unrealized_pnl realized_pnl "
    "avg_open_price avg_close_price open high low close turnover cash_available cash_shortfall credit_available "
    "average_price".split()
)
#: Fields in shares: `int`.
_SHARES = frozenset(
    "qty last_qty quantity filled_qty leaves_qty cumulative_qty opened_qty volume margin_quantity".split()
)


#: How market data begin. A board that answers a command begins with the command's id, and is none of them.
_OF_MARKET = tuple((name, f'{{"event":"{name}","venue":') for name in ("DepthSnapshot", "Trades", "KlineUpdate"))


class Event(Mapping[str, Any]):
    """An event of the engine: its fields by name, as `event["last_price"]` or `event.last_price`.

    Yen are `decimal.Decimal`, shares `int`. Times are as on the wire: `_ms` milliseconds and `_ns` nanoseconds
    since 1970 UTC, in a replay the virtual ones; `ts_ns` and `time` are the same in one unit each.
    """

    __slots__ = ("_known", "_text", "name")

    def __init__(self, fields: Mapping[str, Any] | None, name: str = "", text: str = "") -> None:
        self._known, self._text = fields, text
        #: Which event, as `OrderFilled`.
        self.name: str = name if fields is None else fields["event"]

    @property
    def size(self) -> int:
        """About how many bytes it takes while it waits."""
        return len(self._text) + 1_000

    @property
    def _fields(self) -> Mapping[str, Any]:
        if self._known is None:
            self._known = _read(self._text)
        return self._known

    def __getitem__(self, field: str) -> Any:
        return self._fields[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __getattr__(self, field: str) -> Any:
        # Not for the slots: a copy of an event has none at first.
        if not field.startswith("_") and field in self._fields:
            return self._fields[field]
        raise AttributeError(f"{self.name if not field.startswith('_') else 'Event'} has no field {field}")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields.items() if name != "event")
        return f"{self.name}({fields})"

    @property
    def ts_ns(self) -> int | None:
        """When it happened: nanoseconds since 1970 UTC; None for an event without a time."""
        nanos = self._fields.get("ts_event_ns")
        if nanos is not None:
            return int(nanos)
        for name in ("ts_event_ms", "ts_ms", "timestamp_ms"):
            if self._fields.get(name) is not None:
                return int(self._fields[name]) * 1_000_000
        return None

    @property
    def is_market(self) -> bool:
        """Whether it is of the stream of market data, and answers no command."""
        return self._known is None or self.name in ("Trades", "KlineUpdate")

    @property
    def time(self) -> datetime.datetime | None:
        """The same as a time in Japan."""
        return None if self.ts_ns is None else to_datetime(self.ts_ns)


def decode(text: str | bytes) -> Event:
    """Reads a message. Raises SchemaError where it is none.

    Market data are decoded at the first access: a replay at full speed sends them faster than Python reads
    them, and the engine ends the connection of a client for which too much waits.
    """
    if isinstance(text, str):
        for name, start in _OF_MARKET:
            if text.startswith(start):
                return Event(None, name, text)
    return Event(_read(text))


def _read(text: str | bytes) -> dict[str, Any]:
    try:
        fields = json.loads(text, parse_float=Decimal)
        if isinstance(text, str) and isinstance(fields, dict) and isinstance(fields.get("event"), str):
            return _exact(fields)
    except (ValueError, ArithmeticError) as error:
        raise SchemaError(f"the engine sent an invalid event: {error}", code="schema_mismatch") from None
    raise SchemaError("the engine sent an invalid event", code="schema_mismatch")


def _exact(fields: dict[str, Any]) -> dict[str, Any]:
    for name, value in fields.items():
        if isinstance(value, str):
            if name in _YEN:
                fields[name] = Decimal(value)
            elif name in _SHARES:
                # A broker's board may hold parts of shares.
                fields[name] = int(value) if value.removeprefix("-").isdecimal() else Decimal(value)
        elif isinstance(value, dict):
            _exact(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    _exact(item)
    return fields


def amount_text(name: str, amount: Amount) -> str:
    """An amount as it is sent: its shortest exact text. Raises ValidationError."""
    number = _arguments.amount(name, amount)
    # Not normalize(), which rounds to the precision of the context.
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
