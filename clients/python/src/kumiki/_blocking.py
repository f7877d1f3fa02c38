"""What sessions that replay and sessions that trade have in common, for scripts and notebooks."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Callable, TypeVar

from kumiki import _arguments, _session
from kumiki._loop import LoopThread
from kumiki._streams import EventStream
from kumiki.errors import EngineTimeoutError, KumikiError, SessionClosedError
from kumiki.events import Event
from kumiki.records import CancelOrderResult, Order, Position, SessionInfo
from kumiki.results import RunResult
from kumiki.times import Date

S = TypeVar("S", bound="Session")


class Run:
    """A run that goes on by itself."""

    def __init__(self, session: Session, run: _session.Run) -> None:
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
        """Waits for the end, at most `timeout` seconds. A run that is over keeps its result, also after the session.

        Raises StrategyError if the strategy failed, the exception of `on_event`, SessionClosedError if the session
        closed before the end, ConnectionLostError, or EngineTimeoutError.
        """
        timeout = _arguments.maybe_seconds("timeout", timeout)
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise EngineTimeoutError(f"the run is not over after {timeout:g} s")
            if self._error is not None:
                raise self._error
        if self._run.done():
            return self._run._ended()
        return self._session._result(self._run, timeout)

    def _follow_aside(self, stream: EventStream, on_event: Callable[[Event], object]) -> None:
        def follow() -> None:
            try:
                self._session._follow(self._run, stream, on_event)
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=follow, name="kumiki-events", daemon=True)
        self._session._follower = self._thread
        self._thread.start()


class Session:
    """A session whose methods wait."""

    def __init__(self, core: _session.Session) -> None:
        self._core = core
        self._loop: LoopThread | None = None
        #: The thread that hands the events of the newest run over.
        self._follower: threading.Thread | None = None

    # --- The session.

    def open(self: S) -> S:
        """Attaches to an engine or starts one; `with` does it.

        Raises AuthError, ModeError for an engine of the other mode, SchemaError, ConnectionLostError,
        ProgramNotFoundError, EngineStartError or EngineTimeoutError.
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
        """Ends the session, and its own engine if it started one. The results of a run stay. Later calls raise
        SessionClosedError, until `open()`."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.call(self._core.close())
            finally:
                loop.close()

    def __enter__(self: S) -> S:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def status(self) -> str:
        """The state of the run: idle, loaded, running, stopping, stopped (the last run ended) or errored (it failed,
        or the engine is gone). If a session closes during a run, the state is stopped; the run goes on in an engine
        that the session did not start. A session that was errored stays errored. Without a run it is idle or
        stopped."""
        return self._core.status

    @property
    def mode(self) -> str | None:
        """attach or spawn; None before the session is open."""
        return self._core.mode

    @property
    def capabilities(self) -> dict[str, Any] | None:
        """What the engine can do, as {"strategy_engine": {"live": False, "replay": True}}; None before the session
        is open."""
        return self._core.capabilities

    def session(self) -> SessionInfo:
        """Where the engine's session stands; every event after it happened after it."""
        return self._opened().call(self._core.session())

    def events(self, *names: str, timeout: float | None = None) -> EventStream:
        """The events from now on. With names only those, like `session.events("OrderFilled")`.

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
        """Subscribes to the market data of a ticker, like 7203. A replay sends Trades and KlineUpdate in every run, a
        venue sends DepthSnapshot and Trades."""
        self._opened().call(self._core.subscribe(ticker))

    def unsubscribe(self, ticker: str) -> None:
        """Ends the subscription."""
        self._opened().call(self._core.unsubscribe(ticker))

    # --- Orders and what is held.

    def cancel_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None
    ) -> CancelOrderResult:
        """Cancels an order. Raises OrderRejectedError, for example if it was filled meanwhile, or BusyError. At a venue
        it may raise OrderOutcomeUnknownError: read `order_list()` before you go on."""
        return self._opened().call(
            self._core.cancel_order(client_order_id=client_order_id, venue_order_id=venue_order_id)
        )

    def order_list(
        self, *, status: str | None = None, instrument_id: str | None = None, date: Date | None = None
    ) -> list[Order]:
        """The orders in the order in which they came, those of a status, an instrument or a date in Japan where one
        is given. In a replay those of people and of the strategy, also after the run, until other data are loaded;
        at a venue those of the account, without a date those of today. Warns with LeftOutWarning of rows that cannot be
        read."""
        return self._opened().call(self._core.order_list(status=status, instrument_id=instrument_id, date=date))

    def positions(self) -> list[Position]:
        """What is held now. Raises BusyError in a replay where nothing runs, and warns with LeftOutWarning of rows that
        cannot be read."""
        return self._opened().call(self._core.positions())

    # --- Runs.

    def stop(self) -> RunResult:
        """Ends the run, and returns its results so far. `on_event` has had the last event by then, unless it is
        itself what calls. Raises BusyError if none runs."""
        result = self._opened().call(self._core.stop())
        follower = self._follower
        if follower is not None and follower is not threading.current_thread():
            follower.join()
        return result

    def _run(
        self, config: dict[str, Any], strategy_id: str, on_event: Callable[[Event], object] | None, wait: bool
    ) -> RunResult | Run:
        """Starts a strategy, and waits for its end."""
        _arguments.function("on_event", on_event)
        stream = None if on_event is None else self.events()
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

    def _follow(self, run: _session.Run, stream: EventStream, on_event: Callable[[Event], object]) -> None:
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

    def _result(self, run: _session.Run, timeout: float | None, is_mine: bool = False) -> RunResult:
        try:
            return self._opened().call(_in_time(run, timeout))
        except KeyboardInterrupt:
            if is_mine:
                self._end_run(run)
            raise

    def _end_run(self, run: _session.Run) -> None:
        try:
            self._opened().call(self._core._end_run(run.run_id))
        except KumikiError:
            # The session was closed, and with it the run is over.
            pass

    def _opened(self) -> LoopThread:
        if self._loop is None:
            raise SessionClosedError(was_open=self._core.mode is not None)
        return self._loop


async def _in_time(run: _session.Run, timeout: float | None) -> RunResult:
    try:
        return await asyncio.wait_for(run.result(), timeout)
    except asyncio.TimeoutError as error:
        if isinstance(error, KumikiError):
            raise
        raise EngineTimeoutError(f"the run is not over after {timeout:g} s") from None
