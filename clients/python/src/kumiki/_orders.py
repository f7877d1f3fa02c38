"""The fields of commands about orders, from what people write."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from kumiki import _arguments
from kumiki.errors import ValidationError
from kumiki.events import Amount, amount_text
from kumiki.times import Date, Time, date_text, nanos

#: The venue of replays.
REPLAY = "replay"
#: What is wanted where something else is given.
INSTRUMENT, SIDE = "a text like 7203.TSE", "BUY or SELL"


def submit(
    venue: str, *, client_order_id: str | None, instrument_id: str, order_side: str, order_type: str, quantity: Amount,
    price: Amount | None, trigger_price: Amount | None, trigger_type: str | None, time_in_force: str,
    expire_time: Time | None, post_only: bool, reduce_only: bool, tags: Sequence[str] | None,
) -> dict[str, Any]:
    """The fields of SubmitOrder."""
    order: dict[str, Any] = {
        "client_order_id": str(uuid.uuid4()) if client_order_id is None else _id("client_order_id", client_order_id),
        "instrument_id": _arguments.text("instrument_id", instrument_id, INSTRUMENT),
        # A replay calls it `side`, as the session there does.
        "order_side": _arguments.text("side" if venue == REPLAY else "order_side", order_side, SIDE),
        "order_type": _arguments.text("order_type", order_type, "MARKET, LIMIT, STOP_MARKET or STOP_LIMIT"),
        "quantity": amount_text("quantity", quantity),
        "time_in_force": _arguments.text("time_in_force", time_in_force, "DAY, GTD, AT_THE_OPEN or AT_THE_CLOSE"),
        "post_only": _arguments.flag("post_only", post_only),
        "reduce_only": _arguments.flag("reduce_only", reduce_only),
    }
    if price is not None:
        order["price"] = amount_text("price", price)
    if trigger_price is not None:
        order["trigger_price"] = amount_text("trigger_price", trigger_price)
    if trigger_type is not None:
        order["trigger_type"] = _arguments.text("trigger_type", trigger_type, "LAST or None")
    if expire_time is not None:
        order["expire_time_ns"] = nanos("expire_time" if venue == REPLAY else "expire_time_ns", expire_time)
    if tags is not None:
        order["tags"] = _arguments.texts("tags", tags, 'a list of texts like "cash_margin=cash"')
    return {"venue": venue, "order": order}


def which(venue: str, client_order_id: str | None, venue_order_id: str | None) -> dict[str, Any]:
    """Which order a command is about."""
    if client_order_id is None and venue_order_id is None:
        raise ValidationError("client_order_id: give that or venue_order_id", code="validation_error")
    ids = {"client_order_id": client_order_id, "venue_order_id": venue_order_id}
    return {"venue": venue, **{name: _id(name, text) for name, text in ids.items() if text is not None}}


def change(
    venue: str, quantity: Amount | None, price: Amount | None, trigger_price: Amount | None, expire_time: Time | None
) -> dict[str, Any]:
    """What ModifyOrder changes."""
    change: dict[str, Any] = {}
    amounts = {"new_quantity": quantity, "new_price": price, "new_trigger_price": trigger_price}
    for name, amount in amounts.items():
        if amount is not None:
            change[name] = amount_text(name, amount)
    if expire_time is not None:
        name = "new_expire_time" if venue == REPLAY else "new_expire_time_ns"
        change["new_expire_time_ns"] = nanos(name, expire_time)
    return {"change": change}


def some(venue: str, instrument_id: str | None, order_side: str | None) -> dict[str, Any]:
    """The fields of CancelAllOrders."""
    only = {}
    if instrument_id is not None:
        only["instrument_id"] = _arguments.text("instrument_id", instrument_id, INSTRUMENT)
    if order_side is not None:
        only["order_side"] = _arguments.text("side" if venue == REPLAY else "order_side", order_side, SIDE)
    return {"venue": venue, **only}


def listed(venue: str, status: str | None, instrument_id: str | None, date: Date | None) -> dict[str, Any]:
    """The fields of GetOrderList."""
    only = {}
    if status is not None:
        only["status"] = _arguments.text("status", status, "a status like FILLED")
    if instrument_id is not None:
        only["instrument_id"] = _arguments.text("instrument_id", instrument_id, INSTRUMENT)
    if date is not None:
        only["date"] = date_text(date).replace("-", "")
    return {"venue": venue, "filter": only}


def settled(client_order_id: str, origin: str, venue_order_id: str | None) -> dict[str, Any]:
    """The fields of SettleOrder."""
    number = None if venue_order_id is None else _id("venue_order_id", venue_order_id)
    origin = _arguments.text("origin", origin, "person or strategy")
    return {"client_order_id": _id("client_order_id", client_order_id), "origin": origin, "venue_order_id": number}


def adjusted(
    strategy_id: str, instrument_id: str, quantity: Amount, average_price: Amount, why: str
) -> dict[str, Any]:
    """The fields of AdjustStrategyPosition."""
    return {
        "strategy_id": _arguments.text("strategy_id", strategy_id),
        "instrument_id": _arguments.text("instrument_id", instrument_id, INSTRUMENT),
        "quantity": amount_text("quantity", quantity), "average_price": amount_text("average_price", average_price),
        "why": _arguments.text("why", why),
    }


def span(start_date: Date, end_date: Date) -> dict[str, str]:
    """A range of dates."""
    return {"start_date": date_text(start_date, "start_date"), "end_date": date_text(end_date, "end_date")}


def _id(name: str, text: str) -> str:
    return _arguments.text(name, text, "a text")
