"""Kumiki from Python: sessions with the engine (`kumiki serve`), and the program that this package brought along.

    import kumiki

    with kumiki.ReplaySession(data="data") as session:
        session.load("7203.TSE", "2025-01-06", "2025-01-31")
        result = session.run(strategy_file="sma-cross", multiplier="max")
        print(result.final_equity, result.fills())

    subprocess.run([kumiki.program(), "strategy", "list"], check=True)

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
    AuthError, BusyError, ConflictError, ConnectionLostError, DataNotFoundError, DataUnreadableError, EngineStartError,
    EngineTimeoutError, InternalError, KumikiError, LiveEngineUnavailableError, MissingPackageError, ModeError,
    NotLoadedError, OrderRejectedError, ProgramNotFoundError, ResultsError, SchemaError, SecondPasswordRequiredError,
    SessionClosedError, StrategyError, TooSlowError, ValidationError, VenueError, VenueNotAvailableError,
)
from kumiki.times import JST, to_datetime, to_ns

if TYPE_CHECKING:
    from kumiki import aio, ray
    from kumiki.events import Event
    from kumiki.live import LiveSession
    from kumiki.records import (
        BuyingPower, CancelAllResult, CancelOrderResult, LoadedData, LoadedInstrument, ModifyOrderResult, Order,
        Position, Progress, SessionInfo, SubmitOrderResult, SubmittedOrder, VenueBuyingPower, VenueState,
    )
    from kumiki.results import RunResult
    from kumiki.session import EventStream, ReplaySession, Run

__all__ = [
    "JST", "AuthError", "BusyError", "BuyingPower", "CancelAllResult", "CancelOrderResult", "ConflictError",
    "ConnectionLostError", "DataNotFoundError", "DataUnreadableError", "EngineStartError", "EngineTimeoutError",
    "Event", "EventStream", "InternalError", "KumikiError", "LiveEngineUnavailableError", "LiveSession",
    "LoadedData", "LoadedInstrument", "MissingPackageError", "ModeError", "ModifyOrderResult", "NotLoadedError",
    "Order", "OrderRejectedError", "Position", "ProgramNotFoundError", "Progress", "ReplaySession", "ResultsError",
    "Run", "RunResult", "SchemaError", "SecondPasswordRequiredError", "SessionClosedError", "SessionInfo",
    "StrategyError", "SubmitOrderResult", "SubmittedOrder", "TooSlowError", "ValidationError", "VenueBuyingPower",
    "VenueError", "VenueNotAvailableError", "VenueState", "aio", "program", "ray", "schema", "schemas", "to_datetime",
    "to_ns",
]

#: Looked up when they are asked for: `python -m kumiki` needs none of them.
_LATER = {
    "Event": "events", "RunResult": "results", "EventStream": "session", "ReplaySession": "session", "Run": "session",
    "LiveSession": "live",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kumiki' has no attribute {name!r}")
    if name in ("aio", "ray"):
        return importlib.import_module(f"kumiki.{name}")
    return getattr(importlib.import_module("kumiki." + _LATER.get(name, "records")), name)


def __dir__() -> list[str]:
    return __all__
