"""What goes wrong: one exception for each kind, all of them `KumikiError`.

`code` is the engine's word for it (`kumiki.schema("ipc.md")`), or one of this module for what never reached the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kumiki.results import RunResult


class KumikiError(Exception):
    """Something went wrong with an engine, a strategy or an order."""

    def __init__(self, message: str = "", *, code: str = "error") -> None:
        super().__init__(message)
        self.code = code


class AuthError(KumikiError):
    """A side of the connection does not know the token."""


class SchemaError(KumikiError):
    """The engine's messages have another major version, or are none."""


class ModeError(KumikiError, ValueError):
    """The engine that was asked for is not that of the process, as Live in a replay."""


class ValidationError(KumikiError, ValueError):
    """An argument is wrong. The message begins with its name, as `START_DATE: ...`."""


class BusyError(KumikiError):
    """A command does not fit the state of the session, as a load while a strategy runs."""

    def __init__(
        self, message: str = "", *, code: str = "engine_busy", current_state: str = "", attempted_command: str = ""
    ) -> None:
        super().__init__(message, code=code)
        #: Idle, Loaded, Running or Stopping.
        self.current_state = current_state
        self.attempted_command = attempted_command


class ConflictError(KumikiError):
    """The id of an order is that of another order already."""

    def __init__(self, message: str = "", *, code: str = "conflict", venue_order_id: str | None = None) -> None:
        super().__init__(message, code=code)
        #: The number of that other order, where it has one.
        self.venue_order_id = venue_order_id


class DataNotFoundError(KumikiError):
    """There are no data of an instrument in the range."""


class DataUnreadableError(KumikiError):
    """The vendor's files cannot be used."""


class NotLoadedError(KumikiError):
    """What is to run is not loaded; a run uses up what was loaded."""


class OrderRejectedError(KumikiError):
    """An order, a change or a cancel was rejected."""

    def __init__(
        self, message: str = "", *, reason_code: str = "", reason_text: str = "", client_order_id: str | None = None
    ) -> None:
        super().__init__(message or f"{reason_code}: {reason_text}", code=reason_code)
        #: One of the closed list, as VALIDATION_ERROR or INSUFFICIENT_FUNDS.
        self.reason_code = reason_code
        #: The same for people; it often begins with the field, as `QUANTITY: ...`.
        self.reason_text = reason_text
        self.client_order_id = client_order_id


class SecondPasswordRequiredError(KumikiError):
    """The engine holds no second password: nothing was sent. Give it by `set_second_password()`, and then the same
    command again, an order with the same `client_order_id`."""

    def __init__(
        self, message: str = "", *, code: str = "second_password_required", client_order_id: str | None = None
    ) -> None:
        super().__init__(message, code=code)
        #: That of the order which waits for it; None of a cancel of many.
        self.client_order_id = client_order_id


class VenueNotAvailableError(KumikiError):
    """The engine has no such venue: it replays past data, or cannot trade there yet."""


class VenueError(KumikiError):
    """The venue cannot be used now. `code` says why: login_failed, login_cancelled, token_expired, local_app_down,
    register_full (of market data), rate_limited."""

    def __init__(self, message: str = "", *, code: str = "venue_error", venue: str | None = None) -> None:
        super().__init__(message, code=code)
        self.venue = venue


class LiveEngineUnavailableError(KumikiError):
    """The engine runs no strategies at a venue yet."""


class InternalError(KumikiError):
    """The engine could not do it. Of an order it may mean that nobody knows what became of it: the same call with
    the same `client_order_id` tells, and does not send it again."""


class StrategyError(KumikiError):
    """A strategy cannot be loaded, fails at its start, or failed while it ran."""

    def __init__(self, message: str = "", *, code: str = "strategy_fault", result: RunResult | None = None) -> None:
        super().__init__(message, code=code)
        #: What there is of the run, where it had begun.
        self.result = result


class ResultsError(StrategyError):
    """The results of a run could not be kept."""


class EngineStartError(KumikiError):
    """The engine did not start."""

    def __init__(self, message: str = "", *, code: str = "engine_start", exit_code: int | None = None) -> None:
        super().__init__(message, code=code)
        #: As `kumiki serve --help` lists them; None where it never ended by itself.
        self.exit_code = exit_code


class ProgramNotFoundError(KumikiError, FileNotFoundError):
    """There is no `kumiki` program to start."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, code="no_program")

    # FileNotFoundError would show its own two arguments.
    def __str__(self) -> str:
        return str(self.args[0])


class ConnectionLostError(KumikiError, ConnectionError):
    """There is no connection to the engine, or none any more."""

    def __init__(self, message: str = "", *, code: str = "connection_lost", close_code: int | None = None) -> None:
        super().__init__(message, code=code)
        #: The close code of the WebSocket; None where the connection broke.
        self.close_code = close_code

    def __str__(self) -> str:
        return str(self.args[0])


class SessionClosedError(ConnectionLostError):
    """The session was closed, or not opened yet."""

    def __init__(self, message: str = "", *, code: str = "closed", was_open: bool = True) -> None:
        how = "any more: it was closed" if was_open else "yet; use it as `with ... as session:`"
        super().__init__(message or f"the session is not open {how}", code=code)


class EngineTimeoutError(KumikiError, TimeoutError):
    """The engine gave no sign of life for a command in time."""

    def __init__(self, message: str = "", *, code: str = "timeout") -> None:
        super().__init__(message, code=code)

    def __str__(self) -> str:
        return str(self.args[0])


class TooSlowError(KumikiError):
    """Events came faster than they were taken, and too many were waiting."""

    def __init__(self, message: str = "", *, code: str = "too_slow") -> None:
        super().__init__(message, code=code)


class MissingPackageError(KumikiError, ImportError):
    """An optional Python package is not installed."""

    def __init__(self, message: str = "", *, code: str = "missing_package") -> None:
        super().__init__(message, code=code)


_BY_CODE: dict[str, type[KumikiError]] = {
    "auth_failed": AuthError,
    "schema_mismatch": SchemaError,
    "mode_mismatch": ModeError,
    "value_error": ModeError,
    "validation_error": ValidationError,
    "too_many_instruments": ValidationError,
    "data_not_found": DataNotFoundError,
    "data_unreadable": DataUnreadableError,
    "not_loaded": NotLoadedError,
    "strategy_load_failed": StrategyError,
    "strategy_init_failed": StrategyError,
    "strategy_fault": StrategyError,
    "results_failed": ResultsError,
    "venue_not_available": VenueNotAvailableError,
    "not_in_replay_mode": VenueNotAvailableError,
    "live_engine_unavailable": LiveEngineUnavailableError,
    "login_failed": VenueError,
    "token_expired": VenueError,
    "local_app_down": VenueError,
    "register_full": VenueError,
    "rate_limited": VenueError,
    "internal_error": InternalError,
    "INTERNAL_ERROR": InternalError,
}


def of_event(event: Mapping[str, Any]) -> KumikiError:
    """The exception for an event that refuses a command: Error, EngineError, EngineBusy, OrderRejected, or what a
    login ends with, VenueError and VenueLoginCancelled."""
    name = event["event"]
    if name == "OrderRejected":
        return OrderRejectedError(
            reason_code=event["reason_code"], reason_text=event["reason_text"],
            client_order_id=event.get("client_order_id"),
        )
    if name == "EngineBusy":
        state, command = event["current_state"], event["attempted_command"]
        text = f"{command} while {state}: {event['reason']}"
        return BusyError(text, current_state=state, attempted_command=command)
    if name == "VenueLoginCancelled":
        return VenueError("the login was cancelled", code="login_cancelled", venue=event["venue"])
    code, message = event["code"], event["message"]
    if name == "VenueError":
        return VenueError(message, code=code, venue=event["venue"])
    if code == "conflict":
        return ConflictError(message, venue_order_id=event.get("venue_order_id"))
    return _BY_CODE.get(code, KumikiError)(message, code=code)
