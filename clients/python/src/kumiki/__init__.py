"""Kumiki from Python: sessions with the engine (`kumiki serve`), and the program that this package brought along.

Sample data of twenty days, in the folder `data`, and a first replay of them:

    import kumiki, subprocess
    subprocess.run([kumiki.program(), "data", "sample", "--out", "data", "--days", "20"], check=True)
    with kumiki.ReplaySession(data="data") as session:
        session.load("7203.TSE", "2025-01-06", "2025-01-31")
        print(session.run(strategy_file="sma-cross"))

What it prints is a `RunResult`: `fills()`, `equity()` and `summary()` say more. `kumiki data sample --help` is about
the data, `kumiki strategy list` about the strategies; the methods of `ReplaySession` are about the rest.

`kumiki.aio` has the same sessions for asyncio, and `kumiki.ray` makes sweeps on a Ray cluster. Money is
`decimal.Decimal` yen, shares are `int`, and times nanoseconds since 1970 UTC (`to_datetime` and `to_ns` turn them into
times in Japan and back). `schema` gives the texts that describe messages, files and columns.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kumiki._program import program
from kumiki._schemas import schema, schemas
from kumiki.errors import (
    AuthError, BusyError, ConflictError, ConnectionLostError, ConsolePortError, DataNotFoundError,
    DataUnreadableError, EngineStartError, EngineTimeoutError, ForbiddenError, GatewayConnectionError,
    GatewayError, HandshakeTimeoutError,
    InsufficientFundsError, InternalError, KumikiError, LeftOutWarning, LiveEngineUnavailableError, LocalAppDownError,
    LoginCancelledError, LoginFailedError, MarketClosedError, MarketDataLostError, MissingPackageError, ModeError,
    ModeMismatchError, NotInReplayModeError, NotLoadedError, OrderCameBackError, OrderInternalError,
    OrderInvalidError, OrderOutcomeUnknownError, OrderRejectedError, OrderStatusUnknownError, OrdersUnsettledError,
    OrdersWorkingError, OrderUnsupportedError, PositionMismatchError, ProgramNotFoundError, RateLimitedError,
    RecordingIncompleteError, RecordingStoppedError, RegisterFullError, ResultsError, SchemaError,
    SecondPasswordInvalidError, SecondPasswordLockedError, SecondPasswordMissingError, SecondPasswordNeededError,
    SecondPasswordRequiredError, SessionClosedError, SessionExpiredError, StrategyError, StrategyFaultError,
    StrategyInitError, StrategyLoadError, StrategySlowError, TokenExpiredError, TooManyInstrumentsError, TooSlowError,
    UnsupportedInstrumentError, ValidationError, VenueError, VenueNotAvailableError, VenueNotReadyError,
    VenueRejectedError, VenueUnsupportedError, WrongEngineError,
)
from kumiki.times import JST, to_datetime, to_ns

if TYPE_CHECKING:
    from kumiki import aio, ray
    from kumiki.boards import Board, Level, Trade
    from kumiki.events import Event
    from kumiki.live import LiveSession
    from kumiki.records import (
        BuyingPower, CancelAllResult, CancelOrderResult, LoadedData, LoadedInstrument, ModifyOrderResult, Order,
        Position, Progress, SessionInfo, StrategyPosition, SubmitOrderResult, SubmittedOrder, VenueBuyingPower,
        VenueState,
    )
    from kumiki.results import RunResult
    from kumiki.session import EventStream, ReplaySession, Run

__all__ = [
    "JST", "AuthError", "Board", "BusyError", "BuyingPower", "CancelAllResult", "CancelOrderResult", "ConflictError",
    "ConnectionLostError", "ConsolePortError", "DataNotFoundError", "DataUnreadableError", "EngineStartError",
    "EngineTimeoutError", "Event", "EventStream", "ForbiddenError", "GatewayConnectionError",
    "GatewayError", "HandshakeTimeoutError",
    "InsufficientFundsError", "InternalError", "KumikiError", "LeftOutWarning", "Level", "LiveEngineUnavailableError",
    "LiveSession", "LoadedData", "LoadedInstrument", "LocalAppDownError", "LoginCancelledError", "LoginFailedError",
    "MarketClosedError", "MarketDataLostError", "MissingPackageError", "ModeError", "ModeMismatchError",
    "ModifyOrderResult", "NotInReplayModeError", "NotLoadedError", "Order", "OrderCameBackError",
    "OrderInternalError", "OrderInvalidError", "OrderOutcomeUnknownError", "OrderRejectedError",
    "OrderStatusUnknownError", "OrdersUnsettledError", "OrdersWorkingError", "OrderUnsupportedError", "Position",
    "PositionMismatchError", "ProgramNotFoundError", "Progress", "RateLimitedError", "RecordingIncompleteError",
    "RecordingStoppedError", "RegisterFullError", "ReplaySession", "ResultsError", "Run", "RunResult", "SchemaError",
    "SecondPasswordInvalidError", "SecondPasswordLockedError", "SecondPasswordMissingError",
    "SecondPasswordNeededError", "SecondPasswordRequiredError", "SessionClosedError", "SessionExpiredError",
    "SessionInfo", "StrategyError", "StrategyFaultError", "StrategyInitError", "StrategyLoadError",
    "StrategyPosition", "StrategySlowError", "SubmitOrderResult", "SubmittedOrder", "TokenExpiredError",
    "TooManyInstrumentsError", "TooSlowError", "Trade", "UnsupportedInstrumentError", "ValidationError",
    "VenueBuyingPower", "VenueError", "VenueNotAvailableError", "VenueNotReadyError", "VenueRejectedError",
    "VenueState", "VenueUnsupportedError", "WrongEngineError", "aio", "program", "ray", "schema", "schemas",
    "to_datetime", "to_ns",
]

#: Looked up when they are asked for: `python -m kumiki` needs none of them.
_LATER = {
    "Event": "events", "RunResult": "results", "EventStream": "session", "ReplaySession": "session", "Run": "session",
    "LiveSession": "live", "Board": "boards", "Level": "boards", "Trade": "boards",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kumiki' has no attribute {name!r}")
    if name in ("aio", "ray"):
        return importlib.import_module(f"kumiki.{name}")
    return getattr(importlib.import_module("kumiki." + _LATER.get(name, "records")), name)


def __dir__() -> list[str]:
    return __all__
