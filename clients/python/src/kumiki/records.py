"""Answers of the engine as records. Yen are `decimal.Decimal`, shares `int`, and times (`_ns`) nanoseconds since
1970 UTC, in a replay the virtual ones; `kumiki.to_datetime` makes times in Japan of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar, Union

R = TypeVar("R", bound="Record")


@dataclass(frozen=True)
class Record:
    """What all records have."""

    @classmethod
    def of(cls: type[R], fields: Mapping[str, Any]) -> R:
        """The record of a message's fields; a field that the message lacks is None."""
        values = {}
        for field in dataclasses.fields(cls):
            value = fields.get(field.name)
            if value is None and field.name.endswith("_ns"):
                millis = fields.get(field.name[:-3] + "_ms")
                value = None if millis is None else millis * 1_000_000
            values[field.name] = value
        return cls(**values)


@dataclass(frozen=True)
class Progress(Record):
    """How far a load or a run is: `done` of `total`, in `unit`."""

    #: load or run.
    kind: str
    done: int
    total: int
    #: bytes, rows or days.
    unit: str


@dataclass(frozen=True)
class LoadedData(Record):
    """What a load has loaded."""

    #: The first instrument of the load.
    instrument_id: str
    #: All that are loaded now, also by loads before.
    instrument_ids: list[str]
    granularity: str
    #: First and last date in Japan, `YYYY-MM-DD`.
    start_date: str
    end_date: str
    trades_loaded: int
    bars_loaded: int
    #: Dates with data, and business days without.
    days: int
    days_missing: int
    #: How many loads the engine has done.
    session_epoch: int
    #: The begin of the first date in Japan.
    ts_event_ns: int


@dataclass(frozen=True)
class LoadedInstrument(Record):
    """What is loaded of one instrument."""

    instrument_id: str
    start_date: str
    end_date: str
    granularity: str
    trades_loaded: int
    bars_loaded: int


@dataclass(frozen=True)
class SubmitOrderResult(Record):
    """An order was taken."""

    client_order_id: str
    #: Created, or IdempotentReplay if the same order was sent before; it was not sent again.
    outcome: str
    #: ACCEPTED, FILLED, ...
    status: str
    #: The venue's number; None where it is not known yet. Then read the order list before you go on.
    venue_order_id: str | None
    #: What was odd, as a code (order_status_unknown, unknown_tag) and in words.
    warning_code: str | None
    warning_text: str | None


@dataclass(frozen=True)
class ModifyOrderResult(Record):
    """An order was changed; this is what it is now. The broker's business day (`eig_day`) is in no message."""

    #: None of an order that was placed elsewhere.
    client_order_id: str | None
    venue_order_id: str
    #: Shares in all.
    quantity: int
    #: Limit and trigger price in yen.
    price: Decimal | None
    trigger_price: Decimal | None
    expire_time_ns: int | None
    ts_event_ns: int


@dataclass(frozen=True)
class CancelOrderResult(Record):
    """An order was cancelled. The broker's business day (`eig_day`) is in no message."""

    #: None of an order that was placed elsewhere.
    client_order_id: str | None
    venue_order_id: str
    ts_event_ns: int


@dataclass(frozen=True)
class CancelAllResult(Record):
    """What became of a cancel of many orders."""

    canceled_count: int
    failed_count: int


@dataclass(frozen=True)
class Order(Record):
    """An order of a run, or of the account at a venue."""

    #: None of an order that was placed elsewhere.
    client_order_id: str | None
    venue_order_id: str
    instrument_id: str
    #: BUY or SELL.
    order_side: str
    #: MARKET, LIMIT, STOP_MARKET or STOP_LIMIT.
    order_type: str
    #: Shares in all, done, and left.
    quantity: int
    filled_qty: int
    leaves_qty: int
    #: Limit and trigger price in yen.
    price: Decimal | None
    trigger_price: Decimal | None
    time_in_force: str
    expire_time_ns: int | None
    #: ACCEPTED (also when partly filled), FILLED, CANCELED, EXPIRED, ...
    status: str
    #: When something last happened to it.
    ts_event_ns: int
    #: person or strategy; None at a venue, other than of strategies' orders.
    origin: str | None
    #: The strategy that sent it, at a venue.
    strategy_id: str | None
    #: The venue's own fields that have no place here; None in a replay.
    extra: dict[str, Any] | None


@dataclass(frozen=True)
class BuyingPower(Record):
    """The account of a run, in yen."""

    strategy_id: str
    #: Settled cash; nothing is deducted for open orders.
    cash: Decimal
    buying_power: Decimal
    #: Cash and positions at the last trade.
    equity: Decimal
    ts_event_ns: int


@dataclass(frozen=True)
class Position(Record):
    """Shares that are held."""

    instrument_id: str
    qty: int
    #: Yen per share.
    avg_open_price: Decimal | None
    #: Yen, at the last price.
    market_value: Decimal | None
    unrealized_pnl: Decimal | None
    #: BUY for shares held, SELL for shares sold short.
    side: str
    #: cash, margin_credit, margin_general, or derivative of futures and options.
    position_type: str
    #: Number of the margin position; None of cash.
    tategyoku_id: str | None
    venue: str


@dataclass(frozen=True)
class StrategyPosition(Record):
    """Shares of one instrument that a strategy holds at the broker, by the fills of its orders over all its runs."""

    strategy_id: str
    instrument_id: str
    #: Shares bought with cash.
    quantity: int
    #: What one of them cost in yen, fees not counted; None of no shares.
    average_price: Decimal | None
    #: Shares of its orders with margin tags: bought less sold.
    margin_quantity: int


@dataclass(frozen=True)
class VenueBuyingPower(Record):
    """The buying power of the account at a venue, in yen; None if the venue does not say."""

    venue: str
    cash_available: Decimal | None
    cash_shortfall: Decimal | None
    credit_available: Decimal | None
    ts_ns: int


@dataclass(frozen=True)
class VenueState(Record):
    """Where a venue stands."""

    venue: str
    #: Disconnected, LoggingIn, Ready, TokenExpired or AppDown.
    state: str
    #: Where its stream of market data stands; None where it has none.
    push: str | None
    #: What is wrong, as a code.
    code: str | None
    #: Since when.
    since_ns: int
    #: Whether the engine holds the second password: none, held or locked; None of other venues than web_broker.
    second_password: str | None
    #: Until when it is locked; None while it is not.
    locked_until_ns: int | None


@dataclass(frozen=True)
class LastRun(Record):
    """The run that ended last."""

    run_id: str
    run_dir: str
    final_equity: Decimal
    #: completed, stopped or fault.
    status: str


@dataclass(frozen=True)
class SubmittedOrder(Record):
    """An order of a run without a venue number: it is on its way to the venue, or ended before it got there."""

    client_order_id: str
    #: person or strategy.
    origin: str
    instrument_id: str
    #: BUY or SELL.
    order_side: str
    #: MARKET, LIMIT, STOP_MARKET or STOP_LIMIT.
    order_type: str
    #: Shares.
    quantity: int
    #: Limit and trigger price in yen.
    price: Decimal | None
    trigger_price: Decimal | None
    time_in_force: str
    expire_time_ns: int | None
    #: SUBMITTED, or what became of it: CANCELED, EXPIRED, REJECTED.
    status: str
    #: When it was sent.
    ts_event_ns: int


@dataclass(frozen=True)
class SessionInfo(Record):
    """Where the engine's session stands. Names, speed and account are those of the run under way, else None; times,
    rows, money, orders and positions also those of the run that ended last, until other data are loaded."""

    #: Idle, Loaded, Running or Stopping.
    state: str
    run_id: str | None
    strategy_id: str | None
    account_id: str | None
    instruments: list[LoadedInstrument]
    #: Times real time, or "max".
    multiplier: Union[int, str, None]
    #: The virtual time.
    ts_event_ns: int | None
    #: Trades or bars that were replayed, and how many there are.
    rows_done: int
    rows_total: int
    #: First and last date of the run in Japan, `YYYY-MM-DD`.
    start_date: str | None
    end_date: str | None
    #: How orders are filled, as in EngineStarted.
    execution: dict[str, Any] | None
    #: Yen, before the first row and now.
    initial_cash: Decimal | None
    cash: Decimal | None
    buying_power: Decimal | None
    equity: Decimal | None
    #: The newest 10,000; also of the run that ended last, until other data are loaded.
    orders: list[Order]
    #: Orders on their way to the venue, or that ended before they got there, as sent; the newest 10,000.
    orders_submitted: list[SubmittedOrder]
    #: The newest 10,000 fills and 1,000 marks of the strategy, as in ExecutionMarker and StrategySignal.
    executions: list[dict[str, Any]]
    signals: list[dict[str, Any]]
    positions: list[Position]
    #: The last bar and trade of each instrument, as in KlineUpdate and Trades.
    last_bars: list[dict[str, Any]]
    last_trades: list[dict[str, Any]]
    last_run: LastRun | None
    #: Number of the engine's last event.
    sequence: int

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> SessionInfo:
        """The record of a Session event."""
        last_run = fields.get("last_run")
        return super().of({
            **fields,
            "instruments": [LoadedInstrument.of(one) for one in fields["instruments"]],
            "orders": [Order.of(one) for one in fields["orders"]],
            "orders_submitted": [SubmittedOrder.of(one) for one in fields.get("orders_submitted", ())],
            "executions": fields.get("executions", []),
            "signals": fields.get("signals", []),
            "positions": [Position.of(one) for one in fields["positions"]],
            "last_run": None if last_run is None else LastRun.of(last_run),
        })
