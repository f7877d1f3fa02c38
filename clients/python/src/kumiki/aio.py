"""The same sessions for programs with an asyncio loop: every method is awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Literal, overload

from kumiki import _arguments, _attach, _market, _orders, _starts
from kumiki._program import Place
from kumiki._requests import OnProgress
from kumiki._session import Run, Session
from kumiki._starts import Execution, Granularity, LiveGranularity, Multiplier
from kumiki._streams import AsyncEventStream, AsyncRecordStream
from kumiki.boards import Board, Trade
from kumiki.errors import NotLoadedError, SecondPasswordRequiredError
from kumiki.events import Amount, Event
from kumiki.records import (
    BuyingPower, CancelAllResult, LoadedData, ModifyOrderResult, StrategyPosition, SubmitOrderResult, VenueBuyingPower,
    VenueState,
)
from kumiki.results import RunResult
from kumiki.times import Date, Time

#: The venue whose password the engine may ask a person for.
_LOCAL_BROKER = "local_broker"
_WEB_BROKER = "web_broker"
#: Seconds for that: longer than the engine waits.
_TYPING_TIME = 330.0

__all__ = ["AsyncEventStream", "AsyncRecordStream", "LiveSession", "ReplaySession", "Run"]


class ReplaySession(Session):
    """As `kumiki.ReplaySession`, whose documentation counts here too; `on_event` may also be a coroutine function."""

    def __init__(
        self, *, data: Place | None = None, attach: _attach.Endpoint | None = "auto", config_dir: Place | None = None,
        cache_dir: Place | None = None, program: Place | None = None, token: str | None = None, timeout: float = 60.0,
        log_level: str = "warning",
    ) -> None:
        super().__init__(
            venue=_orders.REPLAY, data=data, attach=attach, config_dir=config_dir, cache_dir=cache_dir,
            program=program, token=token, timeout=timeout, log_level=log_level,
        )

    @property
    def portfolio(self) -> BuyingPower | None:
        """The last known account: the engine sends it once a second and after each fill. None before the first."""
        return self._state.portfolio

    # --- Runs.

    async def load(
        self, instrument_id: str | Sequence[str], start_date: Date, end_date: Date, granularity: Granularity = "Trade",
        *, on_progress: OnProgress = None,
    ) -> LoadedData:
        """Loads data."""
        _arguments.function("on_progress", on_progress)
        fields = _starts.load(instrument_id, start_date, end_date, granularity)
        return LoadedData.of(await self._ask("LoadReplayData", on_progress=on_progress, **fields))

    @overload
    async def run(
        self, *, strategy_file: Place, on_event: Callable[[Event], object] | None = ..., strategy_id: str = ...,
        initial_cash: Amount = ..., multiplier: Multiplier = ...,
        strategy_init_kwargs: Mapping[str, Any] | None = ..., execution: Execution = ..., wait: Literal[True] = ...,
    ) -> RunResult: ...

    @overload
    async def run(
        self, *, strategy_file: Place, on_event: Callable[[Event], object] | None = ..., strategy_id: str = ...,
        initial_cash: Amount = ..., multiplier: Multiplier = ...,
        strategy_init_kwargs: Mapping[str, Any] | None = ..., execution: Execution = ..., wait: Literal[False],
    ) -> Run: ...

    async def run(
        self, *, strategy_file: Place, on_event: Callable[[Event], object] | None = None,
        strategy_id: str = "user-strategy", initial_cash: Amount = _starts.CASH, multiplier: Multiplier = "max",
        strategy_init_kwargs: Mapping[str, Any] | None = None, execution: Execution = None, wait: bool = True,
    ) -> RunResult | Run:
        """Runs a strategy over the loaded data."""
        config = _starts.config(strategy_file, initial_cash, multiplier, strategy_init_kwargs, execution)
        return await self._run(config, strategy_id, on_event, wait)

    async def _completed(self, config: dict[str, Any]) -> dict[str, Any]:
        """A run is over all that is loaded, where the dates of all meet."""
        loaded = (await self.session()).instruments
        if not loaded:
            text = "no data is loaded; call load() first, each run uses up the loaded data"
            raise NotLoadedError(text, code="not_loaded")
        return {**config, **_starts.range_of(loaded)}

    async def set_speed(self, multiplier: Multiplier) -> None:
        """Changes the speed of the run."""
        await self._ask("SetReplaySpeed", multiplier=_arguments.multiplier(multiplier))

    # --- Orders of a person.

    async def submit_order(
        self, *, instrument_id: str, side: str, quantity: Amount, order_type: str = "MARKET",
        price: Amount | None = None, trigger_price: Amount | None = None, time_in_force: str = "DAY",
        expire_time: Time | None = None, client_order_id: str | None = None, tags: Sequence[str] | None = None,
    ) -> SubmitOrderResult:
        """Sends an order."""
        fields = _orders.submit(
            self._venue, client_order_id=client_order_id, instrument_id=instrument_id, order_side=side,
            order_type=order_type, quantity=quantity, price=price, trigger_price=trigger_price,
            trigger_type=None if trigger_price is None else "LAST", time_in_force=time_in_force,
            expire_time=expire_time, post_only=False, reduce_only=False, tags=tags,
        )
        return SubmitOrderResult.of(await self._ask("SubmitOrder", **fields))

    async def modify_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None,
        new_quantity: Amount | None = None, new_price: Amount | None = None, new_trigger_price: Amount | None = None,
        new_expire_time: Time | None = None,
    ) -> ModifyOrderResult:
        """Changes an order."""
        which = _orders.which(self._venue, client_order_id, venue_order_id)
        change = _orders.change(self._venue, new_quantity, new_price, new_trigger_price, new_expire_time)
        return ModifyOrderResult.of(await self._ask("ModifyOrder", **which, **change))

    async def cancel_all(self, *, instrument_id: str | None = None, side: str | None = None) -> CancelAllResult:
        """Cancels all orders of people, or those of an instrument or a side."""
        return CancelAllResult.of(await self._ask("CancelAllOrders", **_orders.some(self._venue, instrument_id, side)))

    async def buying_power(self) -> BuyingPower:
        """The account now."""
        return BuyingPower.of(await self._ask("GetBuyingPower", venue=self._venue))


class LiveSession(Session):
    """As `kumiki.LiveSession`, whose documentation counts here too; `on_event` may also be a coroutine function."""

    _engine_mode, _engine = "live", "Live"
    # The engine waits up to 30 s for the ends of the strategy's orders (P86).
    _stop_time = 45.0
    # It waits twice so long for orders of earlier runs before it starts one with real orders (P104, P105).
    _real_start_time = 120.0

    def _start_time(self, config: dict[str, Any]) -> float:
        return self._timeout if config.get("paper") else max(self._timeout, self._real_start_time)

    def __init__(
        self, *, venue: str = "web_broker", data: Place | None = None, attach: _attach.Endpoint | None = "auto",
        config_dir: Place | None = None, cache_dir: Place | None = None, program: Place | None = None,
        token: str | None = None, timeout: float = 30.0, log_level: str = "warning",
    ) -> None:
        super().__init__(
            venue=venue, data=data, attach=attach, config_dir=config_dir, cache_dir=cache_dir, program=program,
            token=token, timeout=timeout, log_level=log_level,
        )

    async def _completed(self, config: dict[str, Any]) -> dict[str, Any]:
        if not config.get("paper"):
            # Without it each order of the strategy would be rejected (P122).
            state = VenueState.of(await self._ask("GetVenueState", venue=_WEB_BROKER))
            if state.second_password == "none":
                text = "run: the second password is needed; call set_second_password(), then make the same call again"
                raise SecondPasswordRequiredError(text)
        return config

    def _config_dir_of_own(self) -> Place:
        # What keeps an order from being sent twice lies there, and must outlive the session.
        return self._config_dir or _attach.config_folder()

    @property
    def venue(self) -> str:
        """The venue of this session, web_broker or local_broker."""
        return self._venue

    @property
    def venue_capabilities(self) -> dict[str, Any] | None:
        """What the venue can do, as the engine said at the start; None if it said nothing."""
        if self._connection is None:
            return None
        told: dict[str, dict[str, Any]] = self._connection.ready.get("venue_capabilities") or {}
        return told.get(self._venue)

    # --- The venue.

    async def login(self, *, timeout: float | None = None) -> None:
        """Logs in at the venue."""
        if timeout is None and self._venue == _LOCAL_BROKER:
            timeout = max(self._timeout, _TYPING_TIME)
        await self._ask("RequestVenueLogin", timeout=timeout, venue=self._venue)

    async def venue_state(self) -> VenueState:
        """Where the venue stands."""
        return VenueState.of(await self._ask("GetVenueState", venue=self._venue))

    async def set_second_password(self, *, value: str) -> None:
        """Gives the engine the second password."""
        await self._ask("SetSecondPassword", value=_arguments.secret("value", value))

    async def forget_second_password(self) -> None:
        """The engine forgets it at once."""
        await self._opened().tell("ForgetSecondPassword", timeout=self._timeout)

    # --- Market data of the local broker.

    async def get_board(self, ticker: str) -> Board:
        """Reads a board once."""
        ticker = _arguments.text("ticker", ticker, _market.TICKER)
        return Board.of(await self._ask("GetBoard", venue=self._venue, ticker=ticker))

    async def evict_lru(self) -> str:
        """Makes room in the register set."""
        evicted: str = (await self._ask("EvictLru", venue=self._venue))["symbol"]
        return evicted

    def boards(self, ticker: str | None = None, *, timeout: float | None = None) -> AsyncRecordStream[Board]:
        """The boards from now on."""
        read = _market.boards(self._venue, ticker)
        return AsyncRecordStream(self.events("DepthSnapshot", timeout=timeout), read)

    def trades(self, ticker: str | None = None, *, timeout: float | None = None) -> AsyncRecordStream[Trade]:
        """The trades of the market from now on."""
        read = _market.trades(self._venue, ticker)
        return AsyncRecordStream(self.events("Trades", timeout=timeout), read)

    # --- Orders.

    async def submit_order(
        self, *, client_order_id: str, instrument_id: str, order_side: str, order_type: str, quantity: Amount,
        price: Amount | None = None, trigger_price: Amount | None = None, trigger_type: str | None = None,
        time_in_force: str = "DAY", expire_time_ns: Time | None = None, post_only: bool = False,
        reduce_only: bool = False, tags: Sequence[str] | None = None,
    ) -> SubmitOrderResult:
        """Sends an order."""
        fields = _orders.submit(
            self._venue, client_order_id=client_order_id, instrument_id=instrument_id, order_side=order_side,
            order_type=order_type, quantity=quantity, price=price, trigger_price=trigger_price,
            trigger_type=trigger_type, time_in_force=time_in_force, expire_time=expire_time_ns, post_only=post_only,
            reduce_only=reduce_only, tags=tags,
        )
        return SubmitOrderResult.of(await self._ask("SubmitOrder", **fields))

    async def modify_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None,
        new_quantity: Amount | None = None, new_price: Amount | None = None, new_trigger_price: Amount | None = None,
        new_expire_time_ns: Time | None = None,
    ) -> ModifyOrderResult:
        """Changes an order."""
        which = _orders.which(self._venue, client_order_id, venue_order_id)
        change = _orders.change(self._venue, new_quantity, new_price, new_trigger_price, new_expire_time_ns)
        return ModifyOrderResult.of(await self._ask("ModifyOrder", **which, **change))

    async def cancel_all(
        self, *, instrument_id: str | None = None, order_side: str | None = None
    ) -> CancelAllResult:
        """Cancels all open orders of the account, or those of an instrument or a side."""
        fields = _orders.some(self._venue, instrument_id, order_side)
        return CancelAllResult.of(await self._ask("CancelAllOrders", **fields))

    async def buying_power(self) -> VenueBuyingPower:
        """What the account may buy for now."""
        return VenueBuyingPower.of(await self._ask_for_all("GetBuyingPower"))

    # --- What strategies did with real orders, and a person's decisions about it.

    async def settle_order(
        self, *, client_order_id: str, venue_order_id: str | None, origin: str = "person"
    ) -> None:
        """Decides an order whose answer was lost."""
        await self._ask("SettleOrder", **_orders.settled(client_order_id, origin, venue_order_id))

    async def strategy_positions(self) -> list[StrategyPosition]:
        """What strategies hold."""
        answer = await self._ask("GetStrategyPositions")
        return [StrategyPosition.of(row) for row in answer["positions"]]

    async def adjust_strategy_position(
        self, *, strategy_id: str, instrument_id: str, quantity: Amount, average_price: Amount, why: str
    ) -> StrategyPosition:
        """Corrects what a strategy holds."""
        fields = _orders.adjusted(strategy_id, instrument_id, quantity, average_price, why)
        return StrategyPosition.of((await self._ask("AdjustStrategyPosition", **fields))["position"])

    # --- Strategies.

    @overload
    async def run(
        self, *, instrument_id: str | Sequence[str], strategy_file: Place, max_qty: int, max_notional_jpy: int,
        paper: bool = ..., on_event: Callable[[Event], object] | None = ..., strategy_id: str | None = ...,
        initial_cash: Amount = ..., strategy_init_kwargs: Mapping[str, Any] | None = ...,
        execution: Execution = ..., granularity: LiveGranularity = ..., max_position_qty: int | None = ...,
        max_orders_per_minute: int | None = ..., max_open_orders: int | None = ...,
        max_daily_loss_jpy: int | None = ..., wait: Literal[True] = ...,
    ) -> RunResult: ...

    @overload
    async def run(
        self, *, instrument_id: str | Sequence[str], strategy_file: Place, max_qty: int, max_notional_jpy: int,
        paper: bool = ..., on_event: Callable[[Event], object] | None = ..., strategy_id: str | None = ...,
        initial_cash: Amount = ..., strategy_init_kwargs: Mapping[str, Any] | None = ...,
        execution: Execution = ..., granularity: LiveGranularity = ..., max_position_qty: int | None = ...,
        max_orders_per_minute: int | None = ..., max_open_orders: int | None = ...,
        max_daily_loss_jpy: int | None = ..., wait: Literal[False],
    ) -> Run: ...

    async def run(
        self, *, instrument_id: str | Sequence[str], strategy_file: Place, max_qty: int, max_notional_jpy: int,
        paper: bool = True, on_event: Callable[[Event], object] | None = None, strategy_id: str | None = None,
        initial_cash: Amount = _starts.CASH, strategy_init_kwargs: Mapping[str, Any] | None = None,
        execution: Execution = None, granularity: LiveGranularity = "Trade", max_position_qty: int | None = None,
        max_orders_per_minute: int | None = None, max_open_orders: int | None = None,
        max_daily_loss_jpy: int | None = None, wait: bool = True,
    ) -> RunResult | Run:
        """Runs a strategy on the live market, on paper or with real orders."""
        config = _starts.live_config(
            instrument_id, strategy_file, strategy_init_kwargs, paper=paper, granularity=granularity,
            initial_cash=initial_cash, execution=execution, max_qty=max_qty, max_notional_jpy=max_notional_jpy,
            max_position_qty=max_position_qty, max_orders_per_minute=max_orders_per_minute,
            max_open_orders=max_open_orders, max_daily_loss_jpy=max_daily_loss_jpy,
        )
        return await self._run(config, _starts.live_id(strategy_id, strategy_file, paper), on_event, wait)
