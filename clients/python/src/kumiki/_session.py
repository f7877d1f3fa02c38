"""What sessions that replay and sessions that trade have in common, for asyncio."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from typing import Any, Callable, TypeVar

from kumiki import _arguments, _attach, _orders, _starts, results
from kumiki._connection import Connection
from kumiki._process import LOG, Process, engine_level
from kumiki._program import Place
from kumiki._requests import OnProgress
from kumiki._state import State
from kumiki._streams import AsyncEventStream
from kumiki.errors import (
    BusyError, EngineTimeoutError, KumikiError, LeftOutWarning, ModeError, SessionClosedError,
)
from kumiki.events import Event
from kumiki.records import CancelOrderResult, Order, Position, SessionInfo
from kumiki.results import RunResult
from kumiki.times import Date

S = TypeVar("S", bound="Session")
#: What is wanted where a ticker is something else.
_TICKER = 'a text like "7203"'
#: Seconds in which a start that was given up may begin all the same; its run is ended then.
GIVEN_UP_START_TIME = 30.0


class Run:
    """A run that goes on by itself."""

    def __init__(self, session: Session, started: Event) -> None:
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
        return self._ended()

    def _ended(self) -> RunResult:
        """The result of one that is over."""
        return results.of_event(self._end.result())


class Session:
    """A connection to an engine, its events, its orders and its runs."""

    #: What the engine must do, and what it is called where a strategy is started.
    _engine_mode, _engine = "replay", "Backtest"
    #: Seconds that the end of a run may take at least, whatever `timeout` is.
    _stop_time = 0.0

    def __init__(
        self, *, venue: str, attach: _attach.Endpoint | None, config_dir: Place | None, cache_dir: Place | None,
        program: Place | None, token: str | None, timeout: float, log_level: str, data: Place | None = None,
    ) -> None:
        self._venue = _arguments.text("venue", venue, "web_broker or local_broker")
        self._attach = _attach.wanted(attach)
        self._token = None if token is None else _arguments.secret("token", token)
        self._data = _arguments.maybe_place("data", data)
        self._config_dir = _arguments.maybe_place("config_dir", config_dir)
        self._cache_dir = _arguments.maybe_place("cache_dir", cache_dir)
        self._program = _arguments.maybe_place("program", program)
        self._timeout = _arguments.seconds("timeout", timeout, is_above_0=True)
        self._log_level = engine_level(log_level)
        self._process: Process | None = None
        self._connection: Connection | None = None
        self._state = State("idle")
        self._mode: str | None = None
        self._capabilities: dict[str, Any] | None = None
        self._given_up: asyncio.Task[None] | None = None

    # --- The session.

    async def open(self: S) -> S:
        """Attaches to an engine or starts one; `async with` does it."""
        if self._connection is not None:
            return self
        config_dir = self._config_dir or _attach.config_folder()
        if self._attach == "auto":
            if await self._attached(config_dir):
                return self
        elif self._attach is not None:
            return await self._connect(_attach.at(self._attach, config_dir, self._token), "attach")
        self._process, door = await Process.start(
            mode=self._engine_mode, data=self._data, config_dir=self._config_dir_of_own(), cache_dir=self._cache_dir,
            program=self._program, log_level=self._log_level, timeout=self._timeout,
        )
        try:
            return await self._connect(door, "spawn")
        except BaseException:
            self._process.kill()
            self._process = None
            raise

    async def _attached(self, config_dir: Place) -> bool:
        """Connects to an engine that runs: the one of the session file, else the one whose token is told."""
        if self._data is not None and self._config_dir is None:
            # An engine that nobody named here may have other data than those that are named.
            return False
        for what, door in ((config_dir, _attach.running(config_dir)), ("the token", _attach.told(self._token))):
            try:
                if door is not None:
                    await self._connect(door, "attach")
                    return True
            except KumikiError as error:
                if self._engine_mode == "live" and isinstance(error, ModeError) and what is config_dir:
                    # An own one could not be started beside it.
                    raise
                LOG.warning("the engine of %s is not used: %s", what, error)
        return False

    def _config_dir_of_own(self) -> Place | None:
        """Where an own engine keeps its session file; None is a folder that goes with it."""
        return self._config_dir

    async def _connect(self: S, door: _attach.Door, mode: str) -> S:
        version = _starts.version()
        connection = await Connection.open(door, mode=self._engine_mode, version=version, timeout=self._timeout)
        self._state = State(connection.ready["session_state"])
        self._capabilities = dict(connection.ready.get("capabilities") or {})
        connection.listen(self._state)
        self._connection, self._mode = connection, mode
        return self

    async def close(self) -> None:
        """Ends the session, and its own engine if it started one. The results of a run stay."""
        given_up, self._given_up = self._given_up, None
        if given_up is not None and self._process is None:
            # The engine goes on without this session, and the run is not to.
            await asyncio.wait((given_up,), timeout=GIVEN_UP_START_TIME)
        connection, self._connection = self._connection, None
        process, self._process = self._process, None
        if connection is not None:
            if process is not None and connection.lost is None:
                await _quietly(connection.shut_down())
            await connection.close()
        if process is not None:
            await process.close()

    async def __aenter__(self: S) -> S:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def status(self) -> str:
        """idle, loaded, running, stopping, stopped or errored; as of `kumiki.ReplaySession`."""
        return self._state.status

    @property
    def mode(self) -> str | None:
        """attach or spawn; None before the session is open."""
        return self._mode

    @property
    def capabilities(self) -> dict[str, Any] | None:
        """What the engine can do, as {"strategy_engine": {"live": False, "replay": True}}; None before the session
        is open."""
        return self._capabilities

    async def session(self) -> SessionInfo:
        """Where the engine's session stands; every event after it happened after it."""
        return SessionInfo.of(await self._ask("GetSession"))

    def events(self, *names: str, timeout: float | None = None) -> AsyncEventStream:
        """The events from now on. With names only those."""
        stream = AsyncEventStream(names, timeout)
        stream.leave = self._opened().listen(stream)
        return stream

    async def subscribe(self, ticker: str) -> None:
        """Subscribes to the market data of a ticker."""
        await self._ask("Subscribe", venue=self._venue, ticker=_arguments.text("ticker", ticker, _TICKER))

    async def unsubscribe(self, ticker: str) -> None:
        """Ends the subscription."""
        await self._ask("Unsubscribe", venue=self._venue, ticker=_arguments.text("ticker", ticker, _TICKER))

    # --- Orders and what is held.

    async def cancel_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None
    ) -> CancelOrderResult:
        """Cancels an order."""
        which = _orders.which(self._venue, client_order_id, venue_order_id)
        return CancelOrderResult.of(await self._ask("CancelOrder", **which))

    async def order_list(
        self, *, status: str | None = None, instrument_id: str | None = None, date: Date | None = None
    ) -> list[Order]:
        """The orders, in the order in which they came."""
        fields = _orders.listed(self._venue, status, instrument_id, date)
        frames = await self._opened().ask("GetOrderList", timeout=self._timeout, **fields)
        self._warn_of_left_out()
        return [Order.of(row) for frame in frames for row in frame["orders"]]

    async def positions(self) -> list[Position]:
        """What is held now."""
        answer = await self._ask_for_all("GetPositions")
        return [Position.of(row) for row in answer["positions"]]

    # --- Runs.

    async def stop(self) -> RunResult:
        """Ends the run, and returns its results so far."""
        strategy_id = self._state.strategy_id
        if strategy_id is None:
            info = await self.session()
            strategy_id = info.strategy_id
            if strategy_id is None:
                text = f"StopEngine while {info.state}: no run is under way"
                raise BusyError(text, current_state=info.state, attempted_command="StopEngine")
        before, self._state.status = self._state.status, "stopping"
        try:
            patience = max(self._timeout, self._stop_time)
            stopped = await self._ask("StopEngine", timeout=patience, strategy_id=strategy_id)
        except KumikiError:
            if self._state.status == "stopping":
                self._state.status = before
            raise
        end = self._end_of(stopped["run_id"])
        await asyncio.wait({end})
        return results.of_event(end.result())

    async def _run(
        self, config: dict[str, Any], strategy_id: str, on_event: Callable[[Event], object] | None, wait: bool
    ) -> RunResult | Run:
        """Starts a strategy, and waits for its end."""
        _arguments.function("on_event", on_event)
        stream = None if on_event is None else self.events()
        try:
            run = await self._start(config, strategy_id)
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
        strategy_id = _arguments.text("strategy_id", strategy_id)
        config = {**await self._completed(config), "strategy_id": strategy_id}
        started = self.events("EngineStarted", "EngineError", timeout=GIVEN_UP_START_TIME)
        try:
            what: dict[str, Any] = {"engine": self._engine, "strategy_id": strategy_id, "config": config}
            answer = await self._ask("StartEngine", timeout=self._start_time(config), **what)
        except (asyncio.CancelledError, EngineTimeoutError):
            # It may begin all the same, and nobody would follow it.
            self._given_up = asyncio.get_running_loop().create_task(_quietly(self._end_late(started, strategy_id)))
            raise
        except BaseException:
            started.close()
            raise
        started.close()
        return Run(self, answer)

    async def _end_late(self, started: AsyncEventStream, strategy_id: str) -> None:
        """Ends the run of a start that was given up, should it begin."""
        async for event in started:
            if event.get("strategy_id") == strategy_id:
                if event.name == "EngineStarted":
                    await self.stop()
                return

    def _start_time(self, config: dict[str, Any]) -> float:
        """Seconds that the start of a run may take."""
        return self._timeout

    async def _completed(self, config: dict[str, Any]) -> dict[str, Any]:
        """A config with what only the engine knows."""
        return config

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

    # --- What these need.

    def _opened(self) -> Connection:
        if self._connection is None:
            raise SessionClosedError(was_open=self._mode is not None)
        return self._connection

    async def _ask(
        self, op: str, *, on_progress: OnProgress = None, timeout: float | None = None, **fields: Any
    ) -> Event:
        timeout = self._timeout if timeout is None else _arguments.seconds("timeout", timeout, is_above_0=True)
        answers = await self._opened().ask(op, timeout=timeout, on_progress=on_progress, **fields)
        return answers[-1]

    async def _ask_for_all(self, op: str) -> Event:
        """Asks for something of the account, and warns of what it lacks."""
        answer = await self._ask(op, venue=self._venue)
        if self._engine_mode == "live":
            # What is left out is told behind the answer, and before that of a later command.
            await self._ask("Ping")
            self._warn_of_left_out()
        return answer

    def _warn_of_left_out(self) -> None:
        for what in self._state.take_left_out():
            warnings.warn(what, LeftOutWarning, stacklevel=3)

    def _end_of(self, run_id: str) -> asyncio.Future[Event]:
        return self._state.end_of(run_id)


async def _quietly(work: Any) -> None:
    """Does what may fail because it is too late."""
    try:
        await work
    except KumikiError as error:
        LOG.debug("too late: %s", error)
