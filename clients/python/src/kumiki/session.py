"""Sessions with an engine for scripts and notebooks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Literal, overload

from kumiki import _starts, aio
from kumiki._attach import Endpoint
from kumiki._loop import LoopThread
from kumiki._program import Place
from kumiki._requests import OnProgress
from kumiki._starts import Execution, Granularity, Multiplier
from kumiki._streams import EventStream
from kumiki.errors import ConnectionLostError, EngineTimeoutError, KumikiError
from kumiki.events import Amount, Event
from kumiki.records import (
    BuyingPower, CancelAllResult, CancelOrderResult, LoadedData, ModifyOrderResult, Order, Position, SessionInfo,
    SubmitOrderResult,
)
from kumiki.results import RunResult
from kumiki.times import Date, Time

__all__ = ["EventStream", "ReplaySession", "Run"]


class Run:
    """A run that goes on by itself."""

    def __init__(self, session: ReplaySession, run: aio.Run) -> None:
        self._session, self._run = session, run
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.run_id, self.strategy_id = run.run_id, run.strategy_id
        #: How orders are filled: the values that are used.
        self.execution = run.execution

    def done(self) -> bool:
        """Whether it is over."""
        return self._run.done()

    def result(self, timeout: float | None = None) -> RunResult:
        """Waits for its end, at most `timeout` seconds.

        Raises StrategyError where the strategy failed, what `on_event` raised, ConnectionLostError, or
        EngineTimeoutError.
        """
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise EngineTimeoutError(f"the run is not over after {timeout:g} s")
            if self._error is not None:
                raise self._error
        return self._session._result(self._run, timeout)

    def _follow_aside(self, stream: EventStream, on_event: Callable[[Event], object]) -> None:
        def follow() -> None:
            try:
                self._session._follow(self._run, stream, on_event)
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=follow, name="kumiki-events", daemon=True)
        self._thread.start()


class ReplaySession:
    """A session with an engine that replays past data.

        with kumiki.ReplaySession(data="data") as session:
            session.load("7203.TSE", "2025-01-06", "2025-01-31")
            result = session.run("sma-cross", multiplier="max")
            print(result.fills())

    `attach` says which engine: "auto" the one that runs, where `engine-session.json` in `config_dir` names one, else
    an own one; None always an own one; a port, `127.0.0.1:PORT` or the path of a session file that one. "auto" with
    `data` looks for a running engine only where `config_dir` is given, because another one may have other data.

    An own engine replays the vendor's files in `data` (else of KUMIKI_DATA), keeps runs and decoded data in
    `cache_dir` (else KUMIKI_CACHE, else the system's folder for caches), and can be found by others where
    `config_dir` is given. `program` is the kumiki program (else KUMIKI_PROGRAM, the one of this package, or the
    first on the PATH). It ends with the session, and with this process. What it says with `log_level` (off, error,
    warning, info, debug) goes to the logger `kumiki.engine`.

    `token` (else KUMIKI_ENGINE_TOKEN) is needed for a port whose session file is not in `config_dir`. `timeout` is
    how long an answer may take, in seconds; a load that goes on says so. Methods may be called by several threads
    and also where an event loop runs, as in notebooks. Every failure is a `KumikiError`.
    """

    def __init__(
        self, *, data: Place | None = None, attach: Endpoint | None = "auto", config_dir: Place | None = None,
        cache_dir: Place | None = None, program: Place | None = None, token: str | None = None, timeout: float = 60.0,
        log_level: str = "warning",
    ) -> None:
        self._core = aio.ReplaySession(
            data=data, attach=attach, config_dir=config_dir, cache_dir=cache_dir, program=program, token=token,
            timeout=timeout, log_level=log_level,
        )
        self._loop: LoopThread | None = None

    # --- The session.

    def open(self) -> ReplaySession:
        """Attaches to an engine or starts one; `with` does it.

        Raises AuthError, ModeError for an engine that trades, SchemaError, ConnectionLostError, ProgramNotFoundError,
        EngineStartError or EngineTimeoutError.
        """
        if self._loop is None:
            self._loop = LoopThread()
            try:
                self._loop.call(self._core.open())
            except BaseException:
                self.close()
                raise
        return self

    def close(self) -> None:
        """Ends the session, and the engine with it where it was started by it. The results of a run stay."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.call(self._core.close())
            finally:
                loop.close()

    def __enter__(self) -> ReplaySession:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def portfolio(self) -> BuyingPower | None:
        """The account as it was told last, once a second and after each fill; None before that."""
        return self._core.portfolio

    @property
    def status(self) -> str:
        """idle, loaded, running, stopping, stopped (the last run ended) or errored (it failed, or the engine is
        gone)."""
        return self._core.status

    @property
    def mode(self) -> str | None:
        """attach or spawn; None before the session is open."""
        return self._core.mode

    def session(self) -> SessionInfo:
        """Where the engine's session stands; every event after it happened after it."""
        return self._opened().call(self._core.session())

    def events(self, *names: str, timeout: float | None = None) -> EventStream:
        """The events from now on, those of some names where any are given, as `session.events("OrderFilled")`.

        Waits for each as long as the session is open, or raises EngineTimeoutError after `timeout` seconds.
        """
        stream = EventStream(names, timeout)
        loop = self._opened()
        leave = loop.call(self._listen(stream))
        stream.leave = lambda: loop.tell(leave)
        return stream

    async def _listen(self, stream: EventStream) -> Callable[[], None]:
        return self._core._opened().listen(stream)

    def subscribe(self, ticker: str) -> None:
        """Asks for the events Trades and KlineUpdate of a ticker, like 7203, in every run."""
        self._opened().call(self._core.subscribe(ticker))

    def unsubscribe(self, ticker: str) -> None:
        """Gives them up."""
        self._opened().call(self._core.unsubscribe(ticker))

    # --- Runs.

    def load(
        self, instrument_id: str | Sequence[str], start_date: Date, end_date: Date, granularity: Granularity = "Trade",
        *, on_progress: OnProgress = None,
    ) -> LoadedData:
        """Loads the data of one to four instruments like 7203.TSE, beside what is loaded.

        Dates are those of Japan, both included. `on_progress` is called on this thread with a `Progress`.
        Raises DataNotFoundError, ValidationError, or BusyError while a strategy runs.
        """
        loop = self._opened()
        span = (instrument_id, start_date, end_date, granularity)
        if on_progress is None:
            return loop.call(self._core.load(*span))
        return loop.call_with(lambda tell: self._core.load(*span, on_progress=tell), on_progress)

    @overload
    def run(
        self, strategy_file: Place, *, strategy_id: str = ..., initial_cash: Amount = ..., multiplier: Multiplier = ...,
        strategy_init_kwargs: Mapping[str, Any] | None = ..., execution: Execution = ...,
        on_event: Callable[[Event], object] | None = ..., wait: Literal[True] = ...,
    ) -> RunResult: ...

    @overload
    def run(
        self, strategy_file: Place, *, strategy_id: str = ..., initial_cash: Amount = ..., multiplier: Multiplier = ...,
        strategy_init_kwargs: Mapping[str, Any] | None = ..., execution: Execution = ...,
        on_event: Callable[[Event], object] | None = ..., wait: Literal[False],
    ) -> Run: ...

    def run(
        self, strategy_file: Place, *, strategy_id: str = "user-strategy", initial_cash: Amount = 1_000_000,
        multiplier: Multiplier = 1, strategy_init_kwargs: Mapping[str, Any] | None = None,
        execution: Execution = None, on_event: Callable[[Event], object] | None = None, wait: bool = True,
    ) -> RunResult | Run:
        """Runs a strategy over all that is loaded, and waits for its end; a run uses up what is loaded.

        `strategy_file` is the path of a component, or the name of a built-in strategy; `strategy_init_kwargs` are its
        parameters. `initial_cash` is in yen. `multiplier` is 1 to 1,000,000 times real time, or "max". `execution` is
        "strict", "realistic", "optimistic", or a dict with values of one's own, as {"model": "strict",
        "latency_ns": 5_000_000}. `on_event` gets every event of the run, from EngineStarted to EngineStopped, on this
        thread, and may use the session; what it raises ends the run, and so does Ctrl-C. With `wait=False` a `Run` is
        given back, and `on_event` is called on a thread of its own.

        Raises NotLoadedError, BusyError, ValidationError, or StrategyError, whose `result` has what there is of a run
        that failed.
        """
        stream = None if on_event is None else self.events()
        config = _starts.config(strategy_file, initial_cash, multiplier, strategy_init_kwargs, execution)
        try:
            core_run = self._opened().call(self._core._start(config, strategy_id))
        except BaseException:
            if stream is not None:
                stream.close()
            raise
        run = Run(self, core_run)
        if wait:
            if stream is not None and on_event is not None:
                self._follow(core_run, stream, on_event)
            return self._result(core_run, None, is_mine=True)
        if stream is not None and on_event is not None:
            run._follow_aside(stream, on_event)
        return run

    def _follow(self, run: aio.Run, stream: EventStream, on_event: Callable[[Event], object]) -> None:
        """Hands the events of a run over, from its first to its last."""
        try:
            has_begun = False
            for event in stream:
                is_edge = event.name in ("EngineStarted", "EngineStopped") and event["run_id"] == run.run_id
                has_begun = has_begun or is_edge
                if has_begun:
                    on_event(event)
                if is_edge and event.name == "EngineStopped":
                    return
        except BaseException:
            self._end_run(run)
            raise
        finally:
            stream.close()

    def _result(self, run: aio.Run, timeout: float | None, is_mine: bool = False) -> RunResult:
        try:
            return self._opened().call(_in_time(run, timeout))
        except KeyboardInterrupt:
            if is_mine:
                self._end_run(run)
            raise

    def _end_run(self, run: aio.Run) -> None:
        try:
            self._opened().call(self._core._end_run(run.run_id))
        except KumikiError:
            # The session was closed, and with it the run is over.
            pass

    def set_speed(self, multiplier: Multiplier) -> None:
        """Changes the speed of the run: 1 to 1,000,000 times real time, or "max"."""
        self._opened().call(self._core.set_speed(multiplier))

    def stop(self) -> RunResult:
        """Ends the run, and gives what there is of it. Raises BusyError where none runs."""
        return self._opened().call(self._core.stop())

    # --- Orders of a person, beside those of the strategy.

    def submit_order(
        self, *, instrument_id: str, side: str, quantity: Amount, order_type: str = "MARKET",
        price: Amount | None = None, trigger_price: Amount | None = None, time_in_force: str = "DAY",
        expire_time: Time | None = None, client_order_id: str | None = None, tags: Sequence[str] | None = None,
    ) -> SubmitOrderResult:
        """Sends an order into the run, and waits until it is accepted.

        `side` is BUY or SELL, `quantity` in shares; `order_type` MARKET, LIMIT, STOP_MARKET or STOP_LIMIT; `price`
        and `trigger_price` in yen, exact (no floats); `time_in_force` DAY, GTD (with `expire_time`), AT_THE_OPEN or
        AT_THE_CLOSE. Where an answer did not come, the same call with the same `client_order_id` tells what became of
        the order and does not send it again.

        Raises OrderRejectedError, ConflictError where another order has that id, or BusyError where nothing runs.
        """
        return self._opened().call(self._core.submit_order(
            instrument_id=instrument_id, side=side, quantity=quantity, order_type=order_type, price=price,
            trigger_price=trigger_price, time_in_force=time_in_force, expire_time=expire_time,
            client_order_id=client_order_id, tags=tags,
        ))

    def modify_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None,
        new_quantity: Amount | None = None, new_price: Amount | None = None, new_trigger_price: Amount | None = None,
        new_expire_time: Time | None = None,
    ) -> ModifyOrderResult:
        """Changes an order: shares in all, yen, and a time. Raises OrderRejectedError or BusyError."""
        return self._opened().call(self._core.modify_order(
            client_order_id=client_order_id, venue_order_id=venue_order_id, new_quantity=new_quantity,
            new_price=new_price, new_trigger_price=new_trigger_price, new_expire_time=new_expire_time,
        ))

    def cancel_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None
    ) -> CancelOrderResult:
        """Cancels an order. Raises OrderRejectedError, as where it was filled meanwhile, or BusyError."""
        return self._opened().call(
            self._core.cancel_order(client_order_id=client_order_id, venue_order_id=venue_order_id)
        )

    def cancel_all(self, *, instrument_id: str | None = None, side: str | None = None) -> CancelAllResult:
        """Cancels all orders of people, or those of an instrument or a side."""
        return self._opened().call(self._core.cancel_all(instrument_id=instrument_id, side=side))

    def order_list(
        self, *, status: str | None = None, instrument_id: str | None = None, date: Date | None = None
    ) -> list[Order]:
        """The orders of people and of the strategy, in the order in which they came, those of a status, an
        instrument or a date in Japan where one is given; also after the run, until other data are loaded."""
        return self._opened().call(self._core.order_list(status=status, instrument_id=instrument_id, date=date))

    def buying_power(self) -> BuyingPower:
        """The account now. Raises BusyError where nothing runs."""
        return self._opened().call(self._core.buying_power())

    def positions(self) -> list[Position]:
        """What is held now. Raises BusyError where nothing runs."""
        return self._opened().call(self._core.positions())

    def _opened(self) -> LoopThread:
        if self._loop is None:
            raise ConnectionLostError("the session is not open; use it as `with ... as session:`", code="closed")
        return self._loop


async def _in_time(run: aio.Run, timeout: float | None) -> RunResult:
    try:
        return await asyncio.wait_for(run.result(), timeout)
    except asyncio.TimeoutError as error:
        if isinstance(error, KumikiError):
            raise
        raise EngineTimeoutError(f"the run is not over after {timeout:g} s") from None
