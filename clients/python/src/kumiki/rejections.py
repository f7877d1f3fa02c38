"""Rejections of orders: one exception for each reason, all of them `OrderRejectedError`."""

from __future__ import annotations

from kumiki.errors import KumikiError


class OrderRejectedError(KumikiError):
    """An order, a change or a cancel was rejected. Each reason has a class of its own."""

    def __init__(
        self, message: str = "", *, reason_code: str = "", reason_text: str = "", client_order_id: str | None = None
    ) -> None:
        super().__init__(message or f"{reason_code}: {reason_text}", code=reason_code)
        #: One of the closed list, as VALIDATION_ERROR or INSUFFICIENT_FUNDS.
        self.reason_code = reason_code
        #: The same for people; it often begins with the field, as `QUANTITY: ...`.
        self.reason_text = reason_text
        self.client_order_id = client_order_id


class OrderInvalidError(OrderRejectedError):
    """An order breaks the schema, or the rules of the exchange: `reason_text` begins with the field."""


class OrderUnsupportedError(OrderRejectedError):
    """A kind of order, a side, a tag or a term that the engine does not take yet."""


class VenueUnsupportedError(OrderRejectedError):
    """The venue cannot do this combination."""


class SecondPasswordMissingError(OrderRejectedError):
    """There is no second password: the person declined to give it."""


class SecondPasswordInvalidError(OrderRejectedError):
    """The broker refused the second password."""


class SecondPasswordLockedError(OrderRejectedError):
    """There were too many wrong second passwords; the next is taken after a while."""


class SessionExpiredError(OrderRejectedError):
    """The broker's session is gone: log in again."""


class UnsupportedInstrumentError(OrderRejectedError):
    """Futures or options, at a venue of stocks."""


class GatewayConnectionError(OrderRejectedError):
    """The venue's program on this machine cannot be reached."""


class MarketClosedError(OrderRejectedError):
    """The venue is closed."""


class InsufficientFundsError(OrderRejectedError):
    """There is not enough money, or there are not enough shares."""


class VenueRejectedError(OrderRejectedError):
    """The venue rejected it; `reason_text` begins with its own code."""


class OrderStatusUnknownError(OrderRejectedError):
    """The venue's number of the order is not known yet, so that it cannot be changed or cancelled."""


class OrderInternalError(OrderRejectedError):
    """The engine failed and sent nothing."""
