"""Which event answers which command."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from kumiki._orders import REPLAY
from kumiki._refusals import of_event
from kumiki.errors import (
    BusyError, KumikiError, OrderOutcomeUnknownError, SecondPasswordRequiredError, VenueRejectedError,
)
from kumiki.events import Event
from kumiki.records import Progress

#: The events that answer a command in full, of which one comes.
ANSWERS = {
    "Ping": ("Pong",), "GetSession": ("Session",), "LoadReplayData": ("ReplayDataLoaded",),
    "StartEngine": ("EngineStarted",), "SetReplaySpeed": ("ReplaySpeedChanged",),
    # The first in a replay, the other on the live market.
    "StopEngine": ("ReplayStopped", "EngineStopped"),
    "SubmitOrder": ("SubmitOrderResult",), "ModifyOrder": ("OrderUpdated",), "CancelOrder": ("OrderCanceled",),
    "CancelAllOrders": ("CancelAllResult",), "GetOrderList": ("OrderListUpdated",),
    "GetBuyingPower": ("ReplayBuyingPower", "BuyingPowerUpdated"), "GetPositions": ("PositionsUpdated",),
    "Subscribe": ("Subscribed",), "Unsubscribe": ("Unsubscribed",),
    "GetBoard": ("DepthSnapshot",), "EvictLru": ("SubscriptionEvicted",), "RequestVenueLogin": ("VenueReady",),
    "GetVenueState": ("VenueState",), "SetSecondPassword": ("SecondPasswordSet",),
    "SettleOrder": ("OrderSettled",), "GetStrategyPositions": ("StrategyPositions",),
    "AdjustStrategyPosition": ("StrategyPositionAdjusted",),
    # It has none, unless it is refused.
    "ForgetSecondPassword": (),
}
_REFUSALS = frozenset(("Error", "EngineError", "EngineBusy", "OrderRejected"))
#: Commands about orders. In a replay only a run answers them; orders at a venue outlive a strategy's run.
_OF_ORDERS = frozenset(("SubmitOrder", "ModifyOrder", "CancelOrder", "CancelAllOrders"))

OnProgress = Optional[Callable[[Progress], object]]


@dataclass(eq=False)
class Request:
    """A command that is not answered yet."""

    #: Not shown: it may hold the second password.
    fields: Mapping[str, Any] = field(repr=False)
    #: The events that answer it: one, or the frames of a list.
    done: asyncio.Future[list[Event]]
    #: When it was sent, or the engine last said something of it, by the loop's clock.
    heard: float
    on_progress: OnProgress = None
    answers: list[Event] = field(default_factory=list)

    @property
    def op(self) -> str:
        """Which command."""
        return str(self.fields["op"])

    def end(self, error: KumikiError | None = None) -> None:
        """Gives the answers, or the error."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(self.answers)
        else:
            self.done.set_exception(error)

    def take(self, event: Event) -> None:
        """Takes an event with the id of this command."""
        if event.name in ANSWERS[self.op]:
            self.answers.append(event)
            if not event.get("more"):
                self.end()
        elif event.name in _REFUSALS:
            # Of a cancel of many it may be about one of the orders, also one placed elsewhere.
            names = (event.get("client_order_id"), event.get("instrument_id"))
            is_part = self.op == "CancelAllOrders" and any(name is not None for name in names)
            if not is_part:
                self.end(self._refusal(event))
        elif self.op == "SubmitOrder" and event.name in ("OrderExpired", "OrderCanceled"):
            how = "EXPIRED" if event.name == "OrderExpired" else "CANCELED"
            text = f"{how}: the order ended on its way to the venue"
            order_id = event.get("client_order_id")
            self.end(VenueRejectedError(reason_code="VENUE_REJECTED", reason_text=text, client_order_id=order_id))
        elif event.name == "SecondPasswordRequired":
            self.end(self._without_password())
        elif event.name == "VenueLoginCancelled":
            self.end(of_event(event))
        elif event.name == "Progress" and self.on_progress is not None:
            self.on_progress(Progress.of(event))

    def _refusal(self, event: Event) -> KumikiError:
        if event.name == "Error" and event["code"] == "INTERNAL_ERROR" and self.op in _OF_ORDERS:
            return OrderOutcomeUnknownError(event["message"], client_order_id=self._order_id())
        return of_event(event)

    def _without_password(self) -> SecondPasswordRequiredError:
        text = f"{self.op}: the second password is needed; call set_second_password(), then make the same call again"
        return SecondPasswordRequiredError(text, client_order_id=self._order_id())

    def _order_id(self) -> str | None:
        order = self.fields.get("order") or self.fields
        client_order_id: str | None = order.get("client_order_id")
        return client_order_id

    def hear(self, event: Event) -> None:
        """Takes an event of another command, or of none, that may leave this one without an answer."""
        if self.op == "RequestVenueLogin":
            # A login that was under way already has the id of who asked first, and one that fails none.
            if event.get("venue") != self.fields["venue"]:
                return
            if event.name == "VenueReady":
                self.answers.append(event)
                self.end()
            elif event.name in ("VenueError", "VenueLoginCancelled"):
                self.end(of_event(event))
        elif event.name == "SubscriptionEvicted" and self.op == "EvictLru" and event.get("request_id") is None:
            # An engine of before does not say who asked.
            self.answers.append(event)
            self.end()
        elif event.name == "EngineStopped" and self.op in _OF_ORDERS and self.fields.get("venue") == REPLAY:
            text = f"{self.op} while Idle: the run has ended"
            self.end(BusyError(text, current_state="Idle", attempted_command=self.op))
        elif self.op in ("ModifyOrder", "CancelOrder") and self._is_about(event):
            if event.name == "OrderCanceled" and self.op == "CancelOrder":
                # Of two cancels of one order the engine names one.
                self.answers.append(event)
                self.end()
            elif event.name in ("OrderCanceled", "OrderExpired") or (
                event.name == "OrderFilled" and event["leaves_qty"] == 0
            ):
                text = "TOO_LATE: the order is done"
                error = VenueRejectedError(
                    reason_code="VENUE_REJECTED", reason_text=text, client_order_id=event["client_order_id"]
                )
                self.end(error)

    def _is_about(self, event: Event) -> bool:
        # A venue's events have no origin.
        if event.get("origin") not in ("person", None):
            return False
        names = ("client_order_id", "venue_order_id")
        return any(self.fields.get(name) is not None and self.fields[name] == event.get(name) for name in names)


class Requests:
    """The commands of a connection that are not answered yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, Request] = {}

    def add(self, request: Request) -> None:
        """Waits for the answer of a command from now on."""
        self._waiting[request.fields["request_id"]] = request
        request.done.add_done_callback(lambda _: self._waiting.pop(request.fields["request_id"], None))

    def take(self, event: Event, now: float) -> None:
        """Gives an event to the command that it answers."""
        if not self._waiting or event.is_market:
            return
        asked = self._waiting.get(event.get("request_id") or "")
        for request in list(self._waiting.values()):
            if request is asked:
                if request.op not in _OF_ORDERS:
                    # The time of an order counts from its sending: that it was submitted is no answer.
                    request.heard = now
                request.take(event)
            else:
                request.hear(event)

    def fail(self, error: KumikiError) -> None:
        """No command is answered any more."""
        for request in list(self._waiting.values()):
            request.end(error)
