"""Boards and trades of a venue, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Union

from kumiki.records import Record


@dataclass(frozen=True)
class Level(Record):
    """A price at which orders rest."""

    #: Yen per share.
    price: Decimal
    #: Shares; an `int` where they are whole.
    qty: Union[int, Decimal]


@dataclass(frozen=True)
class Board(Record):
    """The order book of a ticker, up to ten levels of each side, as the venue told it."""

    venue: str
    #: The market, as LocalBrokerStock.
    exchange: str
    ticker: str
    #: The login and the day whose numbers it has; boards and trades of a ticker are counted together, and missing
    #: numbers are boards that were left out because this program was too slow.
    stream_session_id: str
    sequence_id: int
    #: When it was received.
    received_ns: int
    #: When it was so, and who says that: venue or received.
    timestamp_ns: int
    timestamp_source: str
    #: Yen of the last trade.
    last_price: Decimal | None
    #: In the venue's order, usually the best first. A level without a price is left out, also the best one, and a side
    #: may be empty.
    bids: list[Level]
    asks: list[Level]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Board:
        """The record of a DepthSnapshot."""
        sides = {side: [Level.of(level) for level in fields[side]] for side in ("bids", "asks")}
        return super().of({**fields, **sides})


@dataclass(frozen=True)
class Trade(Record):
    """A trade of the market at a venue, derived from two boards."""

    ticker: str
    #: Yen per share.
    price: Decimal
    #: Shares; an `int` where they are whole.
    qty: Union[int, Decimal]
    #: Who was the aggressor: buy, sell or unknown.
    side: str
    #: Why: at_ask, at_bid, midpoint, inside_nearer, crossed, one_sided, after_gap or auction; None in a replay.
    side_rule: str | None
    ts_ns: int
    #: None in a replay.
    received_ns: int | None
    stream_session_id: str
    sequence_id: int
    #: Whether it adds up what a gap of the stream left out.
    after_gap: bool

    @classmethod
    def all_of(cls, fields: Mapping[str, Any]) -> list[Trade]:
        """The records of a Trades event."""
        head = {name: fields[name] for name in ("ticker", "stream_session_id")}
        return [cls.of({**head, **row, "after_gap": bool(row.get("after_gap"))}) for row in fields["trades"]]
