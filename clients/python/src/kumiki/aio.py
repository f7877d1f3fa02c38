"""The same sessions for programs with an asyncio loop: every method is awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Literal, overload

from kumiki import _attach, _orders, _starts, results
from kumiki._connection import Connection
from kumiki._process import LOG, Process
from kumiki._program import Place
from kumiki._requests import OnProgress
from kumiki._starts import Execution, Granularity, Multiplier
from kumiki._state import State
from kumiki._streams import AsyncEventStream
from kumiki.errors import BusyError, ConnectionLostError, KumikiError, NotLoadedError
from kumiki.events import Amount, Event
from kumiki.records import (
    BuyingPower, CancelAllResult, CancelOrderResult, LoadedData, ModifyOrderResult, Order, Position, SessionInfo,
    SubmitOrderResult,
)
from kumiki.results import RunResult
from kumiki.times import Date, Time

__all__ = ["AsyncEventStream", "ReplaySession", "Run"]


class Run:
    """A run that goes on by itself."""

    def __init__(self, session: ReplaySession, started: Event) -> None:
        self._task: asyncio.Task[None] | None = None
        self.run_id: str = started["run_id"]
        self._end = session._end_of(self.run_id)
        self.strategy_id: str = started["strategy_id"]
        #: How orders are filled: the values that are used.
        self.execution: dict[str, Any] = started["execution"]

    def done(self) -> bool:
        """Whether it is over."""
        return self._end.done()

    async def result(self) -> RunResult:
        """Waits for its end. Raises StrategyError where the strategy failed, and what `on_event` raised."""
        if self._task is not None:
            await asyncio.wait({self._task})
            self._task.result()
        await asyncio.wait({self._end})
        return results.of_event(self._end.result())


class ReplaySession:
    """As `kumiki.ReplaySession`, whose documentation counts here too; `on_event` may also be a coroutine function."""

    def __init__(
        self, *, data: Place | None = None, attach: _attach.Endpoint | None = "auto", config_dir: Place | None = None,
        cache_dir: Place | None = None, program: Place | None = None, token: str | None = None, timeout: float = 60.0,
        log_level: str = "warning",
    ) -> None:
        self._data, self._attach, self._token = data, attach, token
        self._config_dir, self._cache_dir, self._program = config_dir, cache_dir, program
        self._timeout, self._log_level = timeout, log_level
        self._process: Process | None = None
        self._connection: Connection | None = None
        self._state = State("idle")
        self._mode: str | None = None

    # --- The session.

    async def open(self) -> ReplaySession:
        """Attaches to an engine or starts one; `async with` does it."""
        if self._connection is not None:
            return self
        config_dir = self._config_dir or _attach.system_folder("config")
        if self._attach == "auto":
            # An engine in the system's folder may have other data than those that are named.
            may_attach = self._data is None or self._config_dir is not None
            door = _attach.running(config_dir) if may_attach else None
            try:
                if door is not None:
                    return await self._connect(door, "attach")
            except KumikiError as error:
                LOG.warning("the engine of %s is left alone: %s", config_dir, error)
        elif self._attach is not None:
            return await self._connect(_attach.at(self._attach, config_dir, self._token), "attach")
        self._process, door = await Process.start(
            data=self._data, config_dir=self._config_dir, cache_dir=self._cache_dir, program=self._program,
            log_level=self._log_level, timeout=self._timeout,
        )
        try:
            return await self._connect(door, "spawn")
        except BaseException:
            self._process.kill()
            self._process = None
            raise

    async def _connect(self, door: _attach.Door, mode: str) -> ReplaySession:
        version = _starts.version()
        connection = await Connection.open(door, mode="replay", version=version, timeout=self._timeout)
        self._state = State(connection.ready["session_state"])
        connection.listen(self._state)
        self._connection, self._mode = connection, mode
        return self

    async def close(self) -> None:
        """Ends the session, and the engine with it where it was started by it. The results of a run stay."""
        connection, self._connection = self._connection, None
        process, self._process = self._process, None
        if connection is not None:
            if process is not None and connection.lost is None:
                await _quietly(connection.shut_down())
            await connection.close()
        if process is not None:
            await process.close()

    async def __aenter__(self) -> ReplaySession:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def portfolio(self) -> BuyingPower | None:
        """The account as it was told last, once a second and after each fill; None before that."""
        return self._state.portfolio

    @property
    def status(self) -> str:
        """idle, loaded, running, stopping, stopped or errored."""
        return self._state.status

    @property
    def mode(self) -> str | None:
        """attach or spawn; None before the session is open."""
        return self._mode

    async def session(self) -> SessionInfo:
        """Where the engine's session stands; every event after it happened after it."""
        return SessionInfo.of(await self._ask("GetSession"))

    def events(self, *names: str, timeout: float | None = None) -> AsyncEventStream:
        """The events from now on, those of some names where any are given."""
        stream = AsyncEventStream(names, timeout)
        stream.leave = self._opened().listen(stream)
        return stream

    async def subscribe(self, ticker: str) -> None:
        """Asks for Trades and KlineUpdate of a ticker, in every run."""
        await self._ask("Subscribe", venue=_orders.VENUE, ticker=ticker)

    async def unsubscribe(self, ticker: str) -> None:
        """Gives them up."""
        await self._ask("Unsubscribe", venue=_orders.VENUE, ticker=ticker)

    # --- Runs.

    async def load(
        self, instrument_id: str | Sequence[str], start_date: Date, end_date: Date, granularity: Granularity = "Trade",
        *, on_progress: OnProgress = None,
    ) -> LoadedData:
        """Loads data."""
        fields = _starts.load(instrument_id, start_date, end_date, granularity)
        return LoadedData.of(await self._ask("LoadReplayData", on_progress=on_progress, **fields))

    @overload
    async def run(
        self, strategy_file: Place, *, strategy_id: str = ..., initial_cash: Amount = ..., multiplier: Multiplier = ...,
        strategy_init_kwargs: Mapping[str, Any] | None = ..., execution: Execution = ...,
        on_event: Callable[[Event], object] | None = ..., wait: Literal[True] = ...,
    ) -> RunResult: ...

    @overload
    async def run(
        self, strategy_file: Place, *, strategy_id: str = ..., initial_cash: Amount = ..., multiplier: Multiplier = ...,
        strategy_init_kwargs: Mapping[str, Any] | None = ..., execution: Execution = ...,
        on_event: Callable[[Event], object] | None = ..., wait: Literal[False],
    ) -> Run: ...

    async def run(
        self, strategy_file: Place, *, strategy_id: str = "user-strategy", initial_cash: Amount = 1_000_000,
        multiplier: Multiplier = 1, strategy_init_kwargs: Mapping[str, Any] | None = None,
        execution: Execution = None, on_event: Callable[[Event], object] | None = None, wait: bool = True,
    ) -> RunResult | Run:
        """Runs a strategy over what is loaded."""
        stream = None if on_event is None else self.events()
        try:
            run = await self._start(
                _starts.config(strategy_file, initial_cash, multiplier, strategy_init_kwargs, execution), strategy_id
            )
        except BaseException:
            if stream is not None:
                stream.close()
            raise
        if stream is not None and on_event is not None:
            run._task = asyncio.get_running_loop().create_task(self._follow(run.run_id, stream, on_event))
        if not wait:
            return run
        try:
            return await run.result()
        except asyncio.CancelledError:
            if run._task is not None:
                run._task.cancel()
            await self._end_run(run.run_id)
            raise

    async def _start(self, config: dict[str, Any], strategy_id: str) -> Run:
        """Starts a run over all that is loaded, where the dates of all meet."""
        loaded = (await self.session()).instruments
        if not loaded:
            raise NotLoadedError("nothing is loaded; load() first, a run uses it up", code="not_loaded")
        over = _starts.range_of(loaded)
        config = {**config, **over, "strategy_id": strategy_id}
        return Run(self, await self._ask("StartEngine", engine="Backtest", strategy_id=strategy_id, config=config))

    async def _follow(self, run_id: str, stream: AsyncEventStream, on_event: Callable[[Event], object]) -> None:
        """Hands the events of a run over, from its first to its last."""
        try:
            has_begun = False
            async for event in stream:
                is_edge = event.name in ("EngineStarted", "EngineStopped") and event["run_id"] == run_id
                has_begun = has_begun or is_edge
                if has_begun:
                    answer = on_event(event)
                    if inspect.isawaitable(answer):
                        await answer
                if is_edge and event.name == "EngineStopped":
                    return
        except BaseException:
            await self._end_run(run_id)
            raise
        finally:
            stream.close()

    async def _end_run(self, run_id: str) -> None:
        """Ends a run that nobody wants any more, if it still goes on."""
        if not self._end_of(run_id).done():
            await _quietly(self.stop())

    async def set_speed(self, multiplier: Multiplier) -> None:
        """Changes the speed of the run."""
        await self._ask("SetReplaySpeed", multiplier=multiplier)

    async def stop(self) -> RunResult:
        """Ends the run, and gives what there is of it."""
        strategy_id = self._state.strategy_id
        if strategy_id is None:
            info = await self.session()
            strategy_id = info.strategy_id
            if strategy_id is None:
                text = f"StopEngine while {info.state}: no run is under way"
                raise BusyError(text, current_state=info.state, attempted_command="StopEngine")
        before, self._state.status = self._state.status, "stopping"
        try:
            stopped = await self._ask("StopEngine", strategy_id=strategy_id)
        except KumikiError:
            if self._state.status == "stopping":
                self._state.status = before
            raise
        end = self._end_of(stopped["run_id"])
        await asyncio.wait({end})
        return results.of_event(end.result())

    # --- Orders of a person.

    async def submit_order(
        self, *, instrument_id: str, side: str, quantity: Amount, order_type: str = "MARKET",
        price: Amount | None = None, trigger_price: Amount | None = None, time_in_force: str = "DAY",
        expire_time: Time | None = None, client_order_id: str | None = None, tags: Sequence[str] | None = None,
    ) -> SubmitOrderResult:
        """Sends an order."""
        fields = _orders.submit(
            instrument_id=instrument_id, side=side, quantity=quantity, order_type=order_type, price=price,
            trigger_price=trigger_price, time_in_force=time_in_force, expire_time=expire_time,
            client_order_id=client_order_id, tags=tags,
        )
        return SubmitOrderResult.of(await self._ask("SubmitOrder", **fields))

    async def modify_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None,
        new_quantity: Amount | None = None, new_price: Amount | None = None, new_trigger_price: Amount | None = None,
        new_expire_time: Time | None = None,
    ) -> ModifyOrderResult:
        """Changes an order."""
        fields = _orders.modify(
            client_order_id, venue_order_id, new_quantity, new_price, new_trigger_price, new_expire_time
        )
        return ModifyOrderResult.of(await self._ask("ModifyOrder", **fields))

    async def cancel_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None
    ) -> CancelOrderResult:
        """Cancels an order."""
        return CancelOrderResult.of(await self._ask("CancelOrder", **_orders.which(client_order_id, venue_order_id)))

    async def cancel_all(self, *, instrument_id: str | None = None, side: str | None = None) -> CancelAllResult:
        """Cancels all orders of people, or those of an instrument or a side."""
        return CancelAllResult.of(await self._ask("CancelAllOrders", **_orders.some(instrument_id, side)))

    async def order_list(
        self, *, status: str | None = None, instrument_id: str | None = None, date: Date | None = None
    ) -> list[Order]:
        """The orders of the run, in the order in which they came."""
        fields = _orders.listed(status, instrument_id, date)
        frames = await self._opened().ask("GetOrderList", timeout=self._timeout, **fields)
        return [Order.of(row) for frame in frames for row in frame["orders"]]

    async def buying_power(self) -> BuyingPower:
        """The account now."""
        return BuyingPower.of(await self._ask("GetBuyingPower", venue=_orders.VENUE))

    async def positions(self) -> list[Position]:
        """What is held now."""
        answer = await self._ask("GetPositions", venue=_orders.VENUE)
        return [Position.of(row) for row in answer["positions"]]

    # --- What these need.

    def _opened(self) -> Connection:
        if self._connection is None:
            raise ConnectionLostError("the session is not open; use it as `with ... as session:`", code="closed")
        return self._connection

    async def _ask(self, op: str, *, on_progress: OnProgress = None, **fields: Any) -> Event:
        answers = await self._opened().ask(op, timeout=self._timeout, on_progress=on_progress, **fields)
        return answers[-1]

    def _end_of(self, run_id: str) -> asyncio.Future[Event]:
        return self._state.end_of(run_id)


async def _quietly(work: Any) -> None:
    """Does what may fail because it is too late."""
    try:
        await work
    except KumikiError as error:
        LOG.debug("too late: %s", error)
