"""Boards and trades of a venue, from the events that tell them."""

from __future__ import annotations

from typing import Callable

from kumiki import _arguments
from kumiki.events import Event
from kumiki.boards import Board, Trade

#: What is wanted where a ticker is something else.
TICKER = 'a text like "7203"'


def symbol(ticker: str | None) -> str | None:
    """The symbol of `7203` and of `7203.TSE`; None is every one."""
    if ticker is None:
        return None
    text = _arguments.text("ticker", ticker, TICKER)
    return text[:-4] if text.endswith(".TSE") else text


def boards(venue: str, ticker: str | None) -> Callable[[Event], list[Board]]:
    """What of an event are boards of a ticker. Answers to get_board() are none of the stream."""
    wanted = symbol(ticker)

    def read(event: Event) -> list[Board]:
        is_wanted = event["venue"] == venue and wanted in (None, event["ticker"]) and event.get("request_id") is None
        return [Board.of(event)] if is_wanted else []

    return read


def trades(venue: str, ticker: str | None) -> Callable[[Event], list[Trade]]:
    """What of an event are trades of a ticker."""
    wanted = symbol(ticker)

    def read(event: Event) -> list[Trade]:
        is_wanted = event["venue"] == venue and wanted in (None, event["ticker"])
        return Trade.all_of(event) if is_wanted else []

    return read
