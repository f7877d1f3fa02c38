"""Errors: one exception for each code, all of them `KumikiError`.

`code` is the engine's word for it (`kumiki.schema("ipc.md")`), or one of this module for what never reached the engine.
Codes of one kind share a base: `except kumiki.StrategyError` is for a strategy that cannot be loaded, fails at its
start, or fails while it runs, and `StrategyLoadError` for the first of these alone.
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
    """The engine or this program has the wrong token."""


class SchemaError(KumikiError):
    """The engine's messages have another major version, or are not valid."""


class HandshakeTimeoutError(KumikiError, TimeoutError):
    """The engine got no greeting in time and ended the connection."""

    def __str__(self) -> str:
        return str(self.args[0])


class ModeError(KumikiError, ValueError):
    """The requested engine does not fit the process, for example Live in a replay."""


class ModeMismatchError(ModeError):
    """The engine's process has another mode than the session: it trades, or it replays past data."""


class WrongEngineError(ModeError):
    """The process does not have the engine in which the strategy should start."""


class ValidationError(KumikiError, ValueError):
    """An argument is wrong. The message begins with its name, as `START_DATE: ...`."""


class TooManyInstrumentsError(ValidationError):
    """More instruments than a replay takes."""


class BusyError(KumikiError):
    """A command does not fit the state of the session, for example a load while a strategy runs."""

    def __init__(
        self, message: str = "", *, code: str = "engine_busy", current_state: str = "", attempted_command: str = ""
    ) -> None:
        super().__init__(message, code=code)
        #: Idle, Loaded, Running or Stopping.
        self.current_state = current_state
        self.attempted_command = attempted_command


class ConflictError(KumikiError):
    """Another order has this id already."""

    def __init__(self, message: str = "", *, code: str = "conflict", venue_order_id: str | None = None) -> None:
        super().__init__(message, code=code)
        #: The number of that other order, where it has one.
        self.venue_order_id = venue_order_id


class DataNotFoundError(KumikiError):
    """An instrument has no data in the range."""


class DataUnreadableError(KumikiError):
    """The vendor's files cannot be used."""


class NotLoadedError(KumikiError):
    """No data is loaded for the run. Load it again before each run: a run uses up the loaded data."""


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


class NotInReplayModeError(VenueNotAvailableError):
    """A venue to trade at was asked for, and the engine replays past data."""


class VenueError(KumikiError):
    """The venue cannot be used now. Each reason has a class of its own."""

    def __init__(self, message: str = "", *, code: str = "venue_error", venue: str | None = None) -> None:
        super().__init__(message, code=code)
        self.venue = venue


class LoginFailedError(VenueError):
    """The venue refused the login, of whatever kind it is."""


class LoginCancelledError(VenueError):
    """The login was cancelled."""


class GatewayError(VenueError):
    """The venue's program on this machine answered with an error or an unreadable message. It is the base of all
    errors of such a program: `except kumiki.GatewayError` catches each of them. A refused login is a
    LoginFailedError, a cancelled one a LoginCancelledError, as at every venue."""


class TokenExpiredError(GatewayError):
    """The venue no longer takes the token: log in again."""


class LocalAppDownError(GatewayError):
    """The venue's program on this machine cannot be reached."""


class RegisterFullError(GatewayError):
    """The venue gives market data for no more tickers at the same time."""


class RateLimitedError(GatewayError):
    """The venue takes no more requests for now."""


class VenueNotReadyError(VenueError):
    """A strategy needs a venue that is not ready. The message begins with the venue, like `local_broker: `. Log in
    there, then start the strategy again."""


class RecordingStoppedError(KumikiError):
    """The engine stopped recording boards, for example because the disk is full. The engine itself goes on."""


class RecordingIncompleteError(KumikiError):
    """The recording of boards and trades has a gap; the engine goes on."""


class LiveEngineUnavailableError(KumikiError):
    """The engine runs no strategies on the live market: `live_engine` is false in its settings."""


class MarketDataLostError(KumikiError):
    """A live strategy gets no market data for now. Its buy orders are rejected until the data come back."""


class StrategySlowError(KumikiError):
    """Events wait for a live strategy for more than 2 seconds. After 10 seconds the engine ends the run."""


class OrdersUnsettledError(KumikiError):
    """A strategy cannot start: orders of it are open or unknown. The message names them, and says what to do."""


class PositionMismatchError(KumikiError):
    """The account holds fewer shares than a strategy: correct that with `adjust_strategy_position()`."""


class OrderCameBackError(KumikiError):
    """The broker has an order of a strategy after all that it did not seem to have. It is cancelled, and the run
    ends."""


class SecondPasswordNeededError(KumikiError):
    """The engine has no second password any more, and a strategy has shares or a working order."""


class OrdersWorkingError(KumikiError):
    """A run ends while orders of its strategy work at the broker, or are unknown."""


class ForbiddenError(KumikiError):
    """A page in the browser may not send this command."""


class ConsolePortError(KumikiError):
    """The port of the engine's pages is taken by another program."""


class InternalError(KumikiError):
    """The engine failed, or the venue did not answer its question."""


class OrderOutcomeUnknownError(InternalError):
    """An order, a change or a cancel may have reached the venue, and the engine got no clear answer.

    Do not use a new id: it may place a second order. For an order, make the same call with the same `client_order_id`:
    it tells the state and sends nothing twice. For a change or a cancel, read `order_list()`. The outcome is also
    unknown after EngineTimeoutError and ConnectionLostError."""

    def __init__(
        self, message: str = "", *, code: str = "INTERNAL_ERROR", client_order_id: str | None = None
    ) -> None:
        super().__init__(message, code=code)
        #: That of the order; None of a cancel of many, or where the call named the order by the venue's number.
        self.client_order_id = client_order_id


class StrategyError(KumikiError):
    """A strategy cannot be loaded, fails at its start, or failed while it ran."""

    def __init__(self, message: str = "", *, code: str = "strategy_fault", result: RunResult | None = None) -> None:
        super().__init__(message, code=code)
        #: What there is of the run, where it had begun.
        self.result = result


class StrategyLoadError(StrategyError):
    """The file of a strategy cannot be used."""


class StrategyInitError(StrategyError):
    """A strategy failed at its start, for example because it refuses its parameters. The loaded data stays."""


class StrategyFaultError(StrategyError):
    """A strategy failed while it ran."""


class ResultsError(StrategyError):
    """The results of a run could not be kept."""


class EngineStartError(KumikiError):
    """The engine did not start."""

    def __init__(self, message: str = "", *, code: str = "engine_start", exit_code: int | None = None) -> None:
        super().__init__(message, code=code)
        #: As `kumiki help serve` lists them; None where it never ended by itself.
        self.exit_code = exit_code


class ProgramNotFoundError(KumikiError, FileNotFoundError):
    """There is no `kumiki` program to start."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, code="no_program")

    # FileNotFoundError would show its own two arguments.
    def __str__(self) -> str:
        return str(self.args[0])


class ConnectionLostError(KumikiError, ConnectionError):
    """The connection to the engine failed or broke."""

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


class LeftOutWarning(UserWarning):
    """The engine cannot read a part of the account, for example a row of a list, and leaves it out. The text names
    it, once."""


# Behind the classes that they need. They are errors like these, and are found here too.
from kumiki.rejections import (  # noqa: E402
    OrderRejectedError as OrderRejectedError, OrderInvalidError as OrderInvalidError,
    OrderUnsupportedError as OrderUnsupportedError, VenueUnsupportedError as VenueUnsupportedError,
    SecondPasswordMissingError as SecondPasswordMissingError,
    SecondPasswordInvalidError as SecondPasswordInvalidError, SecondPasswordLockedError as SecondPasswordLockedError,
    SessionExpiredError as SessionExpiredError, UnsupportedInstrumentError as UnsupportedInstrumentError,
    GatewayConnectionError as GatewayConnectionError, MarketClosedError as MarketClosedError,
    InsufficientFundsError as InsufficientFundsError, VenueRejectedError as VenueRejectedError,
    OrderStatusUnknownError as OrderStatusUnknownError, OrderInternalError as OrderInternalError,
)
