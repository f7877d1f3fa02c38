"""Which exception stands for which code of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kumiki import errors
from kumiki.errors import BusyError, ConflictError, KumikiError, OrderRejectedError, VenueError

#: The codes of Error, EngineError and VenueError.
BY_CODE: dict[str, type[KumikiError]] = {
    "conflict": ConflictError,
    "validation_error": errors.ValidationError,
    "too_many_instruments": errors.TooManyInstrumentsError,
    "data_not_found": errors.DataNotFoundError,
    "data_unreadable": errors.DataUnreadableError,
    "not_loaded": errors.NotLoadedError,
    "value_error": errors.WrongEngineError,
    "live_engine_unavailable": errors.LiveEngineUnavailableError,
    "strategy_load_failed": errors.StrategyLoadError,
    "strategy_init_failed": errors.StrategyInitError,
    "strategy_fault": errors.StrategyFaultError,
    "strategy_slow": errors.StrategySlowError,
    "market_data_lost": errors.MarketDataLostError,
    "venue_not_ready": errors.VenueNotReadyError,
    "orders_unsettled": errors.OrdersUnsettledError,
    "position_mismatch": errors.PositionMismatchError,
    "order_came_back": errors.OrderCameBackError,
    "second_password_needed": errors.SecondPasswordNeededError,
    "orders_working": errors.OrdersWorkingError,
    "forbidden": errors.ForbiddenError,
    "console_port_in_use": errors.ConsolePortError,
    "results_failed": errors.ResultsError,
    "internal_error": errors.InternalError,
    "venue_not_available": errors.VenueNotAvailableError,
    "not_in_replay_mode": errors.NotInReplayModeError,
    "login_failed": errors.LoginFailedError,
    "login_cancelled": errors.LoginCancelledError,
    "token_expired": errors.TokenExpiredError,
    "local_app_down": errors.LocalAppDownError,
    "gateway_error": errors.GatewayError,
    "register_full": errors.RegisterFullError,
    "rate_limited": errors.RateLimitedError,
    "recording_incomplete": errors.RecordingIncompleteError,
    "recording_stopped": errors.RecordingStoppedError,
    "auth_failed": errors.AuthError,
    "handshake_timeout": errors.HandshakeTimeoutError,
    "mode_mismatch": errors.ModeMismatchError,
    "schema_mismatch": errors.SchemaError,
}
#: The reason codes of OrderRejected.
BY_REASON: dict[str, type[OrderRejectedError]] = {
    "VALIDATION_ERROR": errors.OrderInvalidError,
    "UNSUPPORTED_IN_PHASE_O0": errors.OrderUnsupportedError,
    "VENUE_UNSUPPORTED": errors.VenueUnsupportedError,
    "SECOND_PASSWORD_REQUIRED": errors.SecondPasswordMissingError,
    "SECOND_PASSWORD_INVALID": errors.SecondPasswordInvalidError,
    "SECOND_PASSWORD_LOCKED": errors.SecondPasswordLockedError,
    "SESSION_EXPIRED": errors.SessionExpiredError,
    "UNSUPPORTED_INSTRUMENT": errors.UnsupportedInstrumentError,
    "CONNECTION_ERROR": errors.GatewayConnectionError,
    "MARKET_CLOSED": errors.MarketClosedError,
    "INSUFFICIENT_FUNDS": errors.InsufficientFundsError,
    "VENUE_REJECTED": errors.VenueRejectedError,
    "ORDER_STATUS_UNKNOWN": errors.OrderStatusUnknownError,
    "INTERNAL_ERROR": errors.OrderInternalError,
}


def of_event(event: Mapping[str, Any]) -> KumikiError:
    """The exception for an event that refuses a command: Error, EngineError, EngineBusy, OrderRejected, or what a
    login ends with, VenueError and VenueLoginCancelled."""
    name = event["event"]
    if name == "OrderRejected":
        reason = event["reason_code"]
        return BY_REASON.get(reason, OrderRejectedError)(
            reason_code=reason, reason_text=event["reason_text"], client_order_id=event.get("client_order_id"),
        )
    if name == "EngineBusy":
        state, command = event["current_state"], event["attempted_command"]
        text = f"{command} while {state}: {event['reason']}"
        return BusyError(text, current_state=state, attempted_command=command)
    if name == "VenueLoginCancelled":
        return errors.LoginCancelledError("the login was cancelled", code="login_cancelled", venue=event["venue"])
    code, message = event["code"], event["message"]
    kind = BY_CODE.get(code, KumikiError)
    if name == "VenueError":
        kind = kind if issubclass(kind, VenueError) else VenueError
        return kind(message, code=code, venue=event["venue"])
    if code == "conflict":
        return ConflictError(message, venue_order_id=event.get("venue_order_id"))
    if code == "INTERNAL_ERROR":
        # It is no rejection; of a command about orders it means that the outcome is unknown.
        return errors.InternalError(message, code=code)
    if code in BY_REASON:
        return BY_REASON[code](reason_code=code, reason_text=message)
    return kind(message, code=code)
