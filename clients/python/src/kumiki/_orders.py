"""The fields of commands about orders, from what people write."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from kumiki.events import Amount, amount_text
from kumiki.times import Date, Time, date_text, to_ns

#: The venue of replays.
REPLAY = "replay"


def submit(
    venue: str, *, client_order_id: str | None, instrument_id: str, order_side: str, order_type: str, quantity: Amount,
    price: Amount | None, trigger_price: Amount | None, trigger_type: str | None, time_in_force: str,
    expire_time: Time | None, post_only: bool, reduce_only: bool, tags: Sequence[str] | None,
) -> dict[str, Any]:
    """The fields of SubmitOrder."""
    order: dict[str, Any] = {
        "client_order_id": str(uuid.uuid4()) if client_order_id is None else client_order_id,
        "instrument_id": instrument_id, "order_side": order_side, "order_type": order_type,
        "quantity": amount_text("quantity", quantity), "time_in_force": time_in_force, "post_only": post_only,
        "reduce_only": reduce_only,
    }
    if price is not None:
        order["price"] = amount_text("price", price)
    if trigger_price is not None:
        order["trigger_price"] = amount_text("trigger_price", trigger_price)
    if trigger_type is not None:
        order["trigger_type"] = trigger_type
    if expire_time is not None:
        order["expire_time_ns"] = to_ns(expire_time)
    if tags is not None:
        order["tags"] = list(tags)
    return {"venue": venue, "order": order}


def which(venue: str, client_order_id: str | None, venue_order_id: str | None) -> dict[str, Any]:
    """Which order a command is about."""
    if client_order_id is None and venue_order_id is None:
        raise ValueError("client_order_id: give that or venue_order_id")
    ids = {"client_order_id": client_order_id, "venue_order_id": venue_order_id}
    return {"venue": venue, **{name: text for name, text in ids.items() if text is not None}}


def change(
    quantity: Amount | None, price: Amount | None, trigger_price: Amount | None, expire_time: Time | None
) -> dict[str, Any]:
    """What ModifyOrder changes."""
    change: dict[str, Any] = {}
    amounts = {"new_quantity": quantity, "new_price": price, "new_trigger_price": trigger_price}
    for name, amount in amounts.items():
        if amount is not None:
            change[name] = amount_text(name, amount)
    if expire_time is not None:
        change["new_expire_time_ns"] = to_ns(expire_time)
    return {"change": change}


def some(venue: str, instrument_id: str | None, order_side: str | None) -> dict[str, Any]:
    """The fields of CancelAllOrders."""
    only = {"instrument_id": instrument_id, "order_side": order_side}
    return {"venue": venue, **{name: text for name, text in only.items() if text is not None}}


def listed(venue: str, status: str | None, instrument_id: str | None, date: Date | None) -> dict[str, Any]:
    """The fields of GetOrderList."""
    day = None if date is None else date_text(date).replace("-", "")
    only = {"status": status, "instrument_id": instrument_id, "date": day}
    return {"venue": venue, "filter": {name: text for name, text in only.items() if text is not None}}


def span(start_date: Date, end_date: Date) -> dict[str, str]:
    """A range of dates."""
    return {"start_date": date_text(start_date), "end_date": date_text(end_date)}
