"""Sessions with an engine for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Literal, overload

from kumiki import _arguments, _starts, aio
from kumiki._attach import Endpoint
from kumiki._blocking import Run, Session
from kumiki._program import Place
from kumiki._requests import OnProgress
from kumiki._starts import Execution, Granularity, Multiplier
from kumiki._streams import EventStream
from kumiki.events import Amount, Event
from kumiki.records import BuyingPower, CancelAllResult, LoadedData, ModifyOrderResult, SubmitOrderResult
from kumiki.results import RunResult
from kumiki.times import Date, Time

__all__ = ["EventStream", "ReplaySession", "Run"]


class ReplaySession(Session):
    """A session with an engine that replays past data.

        with kumiki.ReplaySession(data="data") as session:
            session.load("7203.TSE", "2025-01-06", "2025-01-31")
            result = session.run(strategy_file="sma-cross")
            print(result.fills())

    `attach` says which engine the session uses:

    - None: an own engine.
    - A port, `127.0.0.1:PORT` or the path of a session file: that engine.
    - "auto": the running engine that `engine-session.json` in `config_dir` names. Else, with `token` or
      KUMIKI_ENGINE_TOKEN, the engine at KUMIKI_PORT (else 19876). Else an own engine. With `data` it looks for a
      running engine only if you give `config_dir`, because another engine may have other data.

    `mode` says which of both it was: attach or spawn. `config_dir` is KUMIKI_CONFIG_DIR's folder where it is None, else
    the system's folder for settings.

    An own engine replays the vendor's files in `data` (else of KUMIKI_DATA), keeps runs and decoded data in
    `cache_dir` (else KUMIKI_CACHE, else the system's folder for caches), and can be found by others where
    `config_dir` is given. `program` is the kumiki program (else KUMIKI_PROGRAM, the one of this package, or the
    first on the PATH). It ends with the session, and with this process. Its messages from `log_level` on (off, error,
    warning, info, debug) go to the logger `kumiki.engine`.

    `token` (else KUMIKI_ENGINE_TOKEN) is needed for a port whose session file is not in `config_dir`. `timeout` is
    how long an answer may take, in seconds; a long load reports its progress. Several threads may call methods, also
    while an event loop runs, as in notebooks. Every failure is a `KumikiError`.
    """

    _core: aio.ReplaySession

    def __init__(
        self, *, data: Place | None = None, attach: Endpoint | None = "auto", config_dir: Place | None = None,
        cache_dir: Place | None = None, program: Place | None = None, token: str | None = None, timeout: float = 60.0,
        log_level: str = "warning",
    ) -> None:
        super().__init__(aio.ReplaySession(
            data=data, attach=attach, config_dir=config_dir, cache_dir=cache_dir, program=program, token=token,
            timeout=timeout, log_level=log_level,
        ))

    @property
    def portfolio(self) -> BuyingPower | None:
        """The last known account: the engine sends it once a second and after each fill. None before the first."""
        return self._core.portfolio

    # --- Runs.

    def load(
        self, instrument_id: str | Sequence[str], start_date: Date, end_date: Date, granularity: Granularity = "Trade",
        *, on_progress: OnProgress = None,
    ) -> LoadedData:
        """Loads the data of one to four instruments like 7203.TSE, in addition to the data already loaded.

        Dates are those of Japan, both included. `granularity` is Trade, Minute or Daily. The default is Trade:
        strategies are written for single trades, and sample data and the vendor's files always have them.
        `on_progress` is called on this thread with a `Progress`.
        Raises DataNotFoundError, ValidationError, or BusyError while a strategy runs.
        """
        _arguments.function("on_progress", on_progress)
        loop = self._opened()
        span = (instrument_id, start_date, end_date, granularity)
        if on_progress is None:
            return loop.call(self._core.load(*span))
        return loop.call_with(lambda tell: self._core.load(*span, on_progress=tell), on_progress)

    @overload
    def run(
        self, *, strategy_file: Place, on_event: Callable[[Event], object] | None = ..., strategy_id: str = ...,
        initial_cash: Amount = ..., multiplier: Multiplier = ...,
        strategy_init_kwargs: Mapping[str, Any] | None = ..., execution: Execution = ..., wait: Literal[True] = ...,
    ) -> RunResult: ...

    @overload
    def run(
        self, *, strategy_file: Place, on_event: Callable[[Event], object] | None = ..., strategy_id: str = ...,
        initial_cash: Amount = ..., multiplier: Multiplier = ...,
        strategy_init_kwargs: Mapping[str, Any] | None = ..., execution: Execution = ..., wait: Literal[False],
    ) -> Run: ...

    def run(
        self, *, strategy_file: Place, on_event: Callable[[Event], object] | None = None,
        strategy_id: str = "user-strategy", initial_cash: Amount = _starts.CASH, multiplier: Multiplier = "max",
        strategy_init_kwargs: Mapping[str, Any] | None = None, execution: Execution = None, wait: bool = True,
    ) -> RunResult | Run:
        """Runs a strategy over all loaded data, and waits for its end. A run uses up the loaded data.

        `strategy_file` is the path of a component, or the name of a built-in strategy; `strategy_init_kwargs` are its
        parameters. `initial_cash` is in yen, and 10,000,000 unless you give it, as in `kumiki replay run`.
        `multiplier` is 1 to 1,000,000 times real time, or "max" for full speed.
        `execution` is "strict", "realistic", "optimistic", or a dict with your own values, like {"model": "strict",
        "latency_ns": 5_000_000}. `on_event` gets every event of the run, from EngineStarted to EngineStopped, on this
        thread, and may use the session. If it raises, the run ends; Ctrl-C ends it too. Without `on_event` the call
        only waits for the result. With `wait=False` it returns a `Run` at once and calls `on_event` on a thread of
        its own.

        Raises NotLoadedError, BusyError, ValidationError, or StrategyError, whose `result` has the results of the
        failed run so far.
        """
        config = _starts.config(strategy_file, initial_cash, multiplier, strategy_init_kwargs, execution)
        return self._run(config, strategy_id, on_event, wait)

    def set_speed(self, multiplier: Multiplier) -> None:
        """Changes the speed of the run: 1 to 1,000,000 times real time, or "max"."""
        self._opened().call(self._core.set_speed(multiplier))

    # --- Orders of a person, beside those of the strategy.

    def submit_order(
        self, *, instrument_id: str, side: str, quantity: Amount, order_type: str = "MARKET",
        price: Amount | None = None, trigger_price: Amount | None = None, time_in_force: str = "DAY",
        expire_time: Time | None = None, client_order_id: str | None = None, tags: Sequence[str] | None = None,
    ) -> SubmitOrderResult:
        """Sends an order into the run, and waits until it is accepted.

        `side` is BUY or SELL, `quantity` in shares; `order_type` MARKET, LIMIT, STOP_MARKET or STOP_LIMIT; `price`
        and `trigger_price` in yen, exact (no floats); `time_in_force` DAY, GTD (with `expire_time`), AT_THE_OPEN or
        AT_THE_CLOSE. If no answer came, make the same call with the same `client_order_id`: it tells the state of the
        order and sends nothing twice.

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
        """Changes an order: its total shares, its prices in yen, or its expiry. Raises OrderRejectedError or
        BusyError."""
        return self._opened().call(self._core.modify_order(
            client_order_id=client_order_id, venue_order_id=venue_order_id, new_quantity=new_quantity,
            new_price=new_price, new_trigger_price=new_trigger_price, new_expire_time=new_expire_time,
        ))

    def cancel_all(self, *, instrument_id: str | None = None, side: str | None = None) -> CancelAllResult:
        """Cancels all orders of people, or those of an instrument or a side."""
        return self._opened().call(self._core.cancel_all(instrument_id=instrument_id, side=side))

    def buying_power(self) -> BuyingPower:
        """The account now. Raises BusyError where nothing runs."""
        return self._opened().call(self._core.buying_power())
