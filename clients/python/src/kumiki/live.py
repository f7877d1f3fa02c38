"""Sessions that trade, or run strategies on the live market, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Literal, overload

from kumiki import _market, _starts, aio
from kumiki._attach import Endpoint
from kumiki._blocking import Run, Session
from kumiki._program import Place
from kumiki._starts import Execution, LiveGranularity
from kumiki._streams import RecordStream
from kumiki.boards import Board, Trade
from kumiki.events import Amount, Event
from kumiki.records import (
    CancelAllResult, ModifyOrderResult, StrategyPosition, SubmitOrderResult, VenueBuyingPower, VenueState,
)
from kumiki.results import RunResult
from kumiki.times import Time

__all__ = ["LiveSession"]


class LiveSession(Session):
    """A session with an engine that trades at a venue. Orders cost real money where the venue is the real market.

        with kumiki.LiveSession(venue="web_broker") as session:
            session.login()
            try:
                session.submit_order(**order)
            except kumiki.SecondPasswordRequiredError:
                session.set_second_password(value=getpass.getpass())
                session.submit_order(**order)       # with the same client_order_id

    The engine trades at web_broker. From local_broker, the gateway of a broker on this machine, it has live boards and
    trades, and reads the account; orders for it raise VenueUnsupportedError:

        with kumiki.LiveSession(venue="local_broker") as session:
            session.login()
            with session.trades("7203") as trades:
                session.subscribe("7203")
                for trade in trades:
                    print(trade.price, trade.qty, trade.side)

    `run()` runs a strategy on the trades of local_broker: on paper, where no order goes to a broker, or with real
    orders, which go to web_broker.

    A call for a venue that the engine does not have raises VenueNotAvailableError.

    The engine decides between the demo and the real market: it takes the demo unless it was started otherwise.
    `venue_capabilities["is_production"]` says which after `login()`. The engine has the user's name and password, or
    asks the user. Give the second password by `set_second_password()` when the engine asks for it, not before.

    `venue` is web_broker or local_broker. `attach` says which engine the session uses:

    - None: an own engine, which ends with the session.
    - A port, `127.0.0.1:PORT` or the path of a session file: that engine.
    - "auto": the running engine that `engine-session.json` in `config_dir` (else KUMIKI_CONFIG_DIR, else the
      system's folder) names. Else, with `token` or KUMIKI_ENGINE_TOKEN, the engine at KUMIKI_PORT (else 19876). Else an
      own engine.

    An own engine works in that folder too: its log of orders there prevents sending an order twice. Give the same
    `config_dir` every time. Two engines cannot share it. `data` (else KUMIKI_DATA) is a folder with past prices, from
    which runs on paper take lots, price steps and the last close. `cache_dir`, `program`, `token` and `log_level` are
    as for `ReplaySession`.

    `timeout` is how long the answer to a command may take, in seconds. After a time-out the state of an order is
    unknown. Make the same call with the same `client_order_id`: it tells the state and sends nothing twice. Several
    threads may call methods, also while an event loop runs, as in notebooks. Every failure is a `KumikiError`.
    """

    _core: aio.LiveSession

    def __init__(
        self, *, venue: str = "web_broker", data: Place | None = None, attach: Endpoint | None = "auto",
        config_dir: Place | None = None, cache_dir: Place | None = None, program: Place | None = None,
        token: str | None = None, timeout: float = 30.0, log_level: str = "warning",
    ) -> None:
        super().__init__(aio.LiveSession(
            venue=venue, data=data, attach=attach, config_dir=config_dir, cache_dir=cache_dir, program=program,
            token=token, timeout=timeout, log_level=log_level,
        ))

    @property
    def venue(self) -> str:
        """The venue of this session, web_broker or local_broker."""
        return self._core.venue

    @property
    def venue_capabilities(self) -> dict[str, Any] | None:
        """What the venue can do, as the engine said at the start; None if it said nothing."""
        return self._core.venue_capabilities

    # --- The venue.

    def login(self, *, timeout: float | None = None) -> None:
        """Logs in at the venue, and waits until it can be used, `timeout` seconds after the last sign of life; at
        local_broker at least 330 where none are given, because the engine may ask the person at this machine.

        There is no `user_id` and no `password`: no message carries them. The engine has them from the system's key
        store, or asks the user. The venue is that of the session. Raises VenueError
        (`code` is login_failed, login_cancelled, ...), VenueNotAvailableError or EngineTimeoutError.
        """
        self._opened().call(self._core.login(timeout=timeout))

    def venue_state(self) -> VenueState:
        """Where the venue stands: Disconnected, LoggingIn, Ready, TokenExpired or AppDown."""
        return self._opened().call(self._core.venue_state())

    def set_second_password(self, *, value: str) -> None:
        """Gives the engine the second password, which orders at the web broker need. It keeps it in memory only, and
        this session does not keep it at all. Send the order again yourself."""
        self._opened().call(self._core.set_second_password(value=value))

    def forget_second_password(self) -> None:
        """The engine forgets it at once; the next order asks for it again."""
        self._opened().call(self._core.forget_second_password())

    # --- Market data of the local broker.

    def get_board(self, ticker: str) -> Board:
        """Reads the board of a ticker like 7203 once; this works where nothing is pushed, too. The ticker takes a
        place of the register set from then on.

        Raises RegisterFullError, TokenExpiredError, LocalAppDownError, RateLimitedError or VenueNotAvailableError.
        """
        return self._opened().call(self._core.get_board(ticker))

    def evict_lru(self) -> str:
        """Makes room in the register set: removes the least recently used ticker, for all clients, and returns it."""
        return self._opened().call(self._core.evict_lru())

    def boards(self, ticker: str | None = None, *, timeout: float | None = None) -> RecordStream[Board]:
        """The boards of a ticker from now on, or of all that are subscribed, one after another.

            with session.boards("7203") as boards:
                session.subscribe("7203")
                for board in boards:
                    print(board.last_price, board.bids[0], board.asks[0])

        A slow reader misses boards; gaps in `sequence_id` show it. Waits for each board as long as the session is
        open, or raises EngineTimeoutError after `timeout` seconds without one.
        """
        return RecordStream(self.events("DepthSnapshot", timeout=timeout), _market.boards(self.venue, ticker))

    def trades(self, ticker: str | None = None, *, timeout: float | None = None) -> RecordStream[Trade]:
        """The trades of the market from now on, like `boards()`. A slow reader gets every trade too."""
        return RecordStream(self.events("Trades", timeout=timeout), _market.trades(self.venue, ticker))

    # --- Orders.

    def submit_order(
        self, *, client_order_id: str, instrument_id: str, order_side: str, order_type: str, quantity: Amount,
        price: Amount | None = None, trigger_price: Amount | None = None, trigger_type: str | None = None,
        time_in_force: str = "DAY", expire_time_ns: Time | None = None, post_only: bool = False,
        reduce_only: bool = False, tags: Sequence[str] | None = None,
    ) -> SubmitOrderResult:
        """Sends an order, and waits until the venue has accepted it.

        You choose `client_order_id`, 1 to 36 characters, for example str(uuid.uuid4()). The same call with the same
        id never sends a second order: it tells the state of the first (`outcome` IdempotentReplay). If `warning_code`
        is order_status_unknown, read `order_list()` before you go on. `order_side` is BUY or SELL; `order_type`
        MARKET, LIMIT, STOP_MARKET or STOP_LIMIT; `quantity` in shares; `price` and `trigger_price` in yen, exact (no
        floats); `trigger_type` LAST or None; `time_in_force` DAY, GTD (with `expire_time_ns`: nanoseconds since
        1970 UTC, or a datetime), AT_THE_OPEN or AT_THE_CLOSE; `tags` like ["cash_margin=cash"].

        Raises SecondPasswordRequiredError (nothing was sent), OrderRejectedError, ConflictError where another order
        has that id, or VenueNotAvailableError. After OrderOutcomeUnknownError, EngineTimeoutError and
        ConnectionLostError the state of the order is unknown: make the same call with the same id.
        """
        return self._opened().call(self._core.submit_order(
            client_order_id=client_order_id, instrument_id=instrument_id, order_side=order_side,
            order_type=order_type, quantity=quantity, price=price, trigger_price=trigger_price,
            trigger_type=trigger_type, time_in_force=time_in_force, expire_time_ns=expire_time_ns,
            post_only=post_only, reduce_only=reduce_only, tags=tags,
        ))

    def modify_order(
        self, *, client_order_id: str | None = None, venue_order_id: str | None = None,
        new_quantity: Amount | None = None, new_price: Amount | None = None, new_trigger_price: Amount | None = None,
        new_expire_time_ns: Time | None = None,
    ) -> ModifyOrderResult:
        """Changes an order, one placed elsewhere by its `venue_order_id`: shares in all, yen, and a time. With both ids
        `client_order_id` counts. The broker's business day (`eig_day`) is in no message, and not in the answer.

        Raises SecondPasswordRequiredError, OrderRejectedError, VenueNotAvailableError, or OrderOutcomeUnknownError:
        read `order_list()` before you go on.
        """
        return self._opened().call(self._core.modify_order(
            client_order_id=client_order_id, venue_order_id=venue_order_id, new_quantity=new_quantity,
            new_price=new_price, new_trigger_price=new_trigger_price, new_expire_time_ns=new_expire_time_ns,
        ))

    def cancel_all(self, *, instrument_id: str | None = None, order_side: str | None = None) -> CancelAllResult:
        """Cancels all open orders of the account, also those placed elsewhere, or those of an instrument or a side.

        Raises SecondPasswordRequiredError, VenueNotAvailableError, or OrderOutcomeUnknownError: read `order_list()`
        before you go on.
        """
        return self._opened().call(self._core.cancel_all(instrument_id=instrument_id, order_side=order_side))

    def buying_power(self) -> VenueBuyingPower:
        """What the account may buy for now, in yen. Raises VenueNotAvailableError, and warns with LeftOutWarning of an
        amount that cannot be read."""
        return self._opened().call(self._core.buying_power())

    # --- What strategies did with real orders, and a person's decisions about it.

    def settle_order(
        self, *, client_order_id: str, venue_order_id: str | None, origin: str = "person"
    ) -> None:
        """Decides an order whose answer was lost. Read the broker's own pages first.

        `venue_order_id` is the broker's number of the order, or None where the broker does not have the order.
        `origin` is person, or strategy for an order of a strategy. Raises ValidationError while a list of the broker
        can still decide the order, and where no order is unknown.
        """
        self._opened().call(self._core.settle_order(
            client_order_id=client_order_id, venue_order_id=venue_order_id, origin=origin,
        ))

    def strategy_positions(self) -> list[StrategyPosition]:
        """What strategies hold at the web broker: what their own orders bought and did not sell, over all runs."""
        return self._opened().call(self._core.strategy_positions())

    def adjust_strategy_position(
        self, *, strategy_id: str, instrument_id: str, quantity: Amount, average_price: Amount, why: str
    ) -> StrategyPosition:
        """Corrects what a strategy holds after a split, a sale by hand or a transfer, and returns what it holds now.

        `quantity` are its shares from now on, `average_price` what one of them cost in yen, `why` a line for the log.
        The strategy must not run. Raises ValidationError where the correction cannot be.
        """
        return self._opened().call(self._core.adjust_strategy_position(
            strategy_id=strategy_id, instrument_id=instrument_id, quantity=quantity, average_price=average_price,
            why=why,
        ))

    # --- Strategies.

    @overload
    def run(
        self, *, instrument_id: str | Sequence[str], strategy_file: Place, max_qty: int, max_notional_jpy: int,
        paper: bool = ..., on_event: Callable[[Event], object] | None = ..., strategy_id: str | None = ...,
        initial_cash: Amount = ..., strategy_init_kwargs: Mapping[str, Any] | None = ...,
        execution: Execution = ..., granularity: LiveGranularity = ..., max_position_qty: int | None = ...,
        max_orders_per_minute: int | None = ..., max_open_orders: int | None = ...,
        max_daily_loss_jpy: int | None = ..., wait: Literal[True] = ...,
    ) -> RunResult: ...

    @overload
    def run(
        self, *, instrument_id: str | Sequence[str], strategy_file: Place, max_qty: int, max_notional_jpy: int,
        paper: bool = ..., on_event: Callable[[Event], object] | None = ..., strategy_id: str | None = ...,
        initial_cash: Amount = ..., strategy_init_kwargs: Mapping[str, Any] | None = ...,
        execution: Execution = ..., granularity: LiveGranularity = ..., max_position_qty: int | None = ...,
        max_orders_per_minute: int | None = ..., max_open_orders: int | None = ...,
        max_daily_loss_jpy: int | None = ..., wait: Literal[False],
    ) -> Run: ...

    def run(
        self, *, instrument_id: str | Sequence[str], strategy_file: Place, max_qty: int, max_notional_jpy: int,
        paper: bool = True, on_event: Callable[[Event], object] | None = None, strategy_id: str | None = None,
        initial_cash: Amount = _starts.CASH, strategy_init_kwargs: Mapping[str, Any] | None = None,
        execution: Execution = None, granularity: LiveGranularity = "Trade", max_position_qty: int | None = None,
        max_orders_per_minute: int | None = None, max_open_orders: int | None = None,
        max_daily_loss_jpy: int | None = None, wait: bool = True,
    ) -> RunResult | Run:
        """Runs a strategy on the live market. On paper its orders go to the simulated exchange of replays, and to no
        broker. It needs a login at local_broker, whose trades it gets; on paper the web broker is not needed.

            with kumiki.LiveSession(venue="local_broker") as session:
                session.login()
                run = session.run(instrument_id="7203.TSE", strategy_file="sma-cross", max_qty=100,
                                  max_notional_jpy=500_000, wait=False)
                time.sleep(3600)
                print(session.stop().fills())

        `strategy_file`, `strategy_init_kwargs`, `initial_cash` and `execution` are as in a replay; the model is
        realistic unless you give one. `instrument_id` is an instrument like 7203.TSE, or a list of up to four.
        `granularity` is Trade, or Minute for 1-minute bars in place of trades. A run on paper begins without shares.

        `max_qty` is the most shares of one order, and `max_notional_jpy` its most yen; you must give both. On paper no
        limit holds where the others are None: `max_position_qty` shares of a position and the orders that make it
        larger, `max_orders_per_minute`, `max_open_orders`, and `max_daily_loss_jpy`, from which on the strategy buys no
        more. The engine rejects an order beyond a limit, and the run goes on.

        With `paper=False` the orders are real and go to web_broker: read the project's page on them first. It needs a login
        too, by a second session, and the second password before the start:

            with kumiki.LiveSession(venue="web_broker") as broker, kumiki.LiveSession(venue="local_broker") as market:
                broker.login()
                market.login()
                broker.set_second_password(value=getpass.getpass())
                print(broker.strategy_positions())
                run = market.run(instrument_id="7203.TSE", strategy_file="mine.wasm", max_qty=100,
                                 max_notional_jpy=500_000, paper=False, wait=False)

        The run takes over what the strategy holds under `strategy_id`, which is the name of its file unless you give
        one (on paper it is live-strategy). `max_position_qty` is `max_qty`, `max_orders_per_minute` 30 and
        `max_open_orders` 10 unless you say otherwise. `initial_cash` and `execution` are refused. Without a second
        password such a run raises SecondPasswordRequiredError and does not start. It raises OrdersUnsettledError
        where orders of an earlier run cannot be settled, and PositionMismatchError where the account holds fewer
        shares. EngineError with `code` orders_working before its end says that orders still work.

        A live run has no end of its own. `stop()` ends it, in another thread, in `on_event`, or after
        `wait=False`. Ctrl-C in this call ends it too: the call waits for its end, then raises KeyboardInterrupt.
        The engine cancels the working orders of the strategy. If the session closes, the run goes on in an engine
        that the session did not start. `on_event` and `wait` are as in a replay. Among the events are EngineError
        with `code` market_data_lost or strategy_slow, which do not end the run.

        The result has the frames of a replay. Its `final_equity` is the profit or loss of the run, `status` stopped.
        `run_dir` has the journal besides, which `kumiki replay journal` reads.

        Raises VenueNotReadyError before the login, RegisterFullError, BusyError while a strategy runs,
        ValidationError, or StrategyError, whose `result` has the results of the failed run so far.
        """
        config = _starts.live_config(
            instrument_id, strategy_file, strategy_init_kwargs, paper=paper, granularity=granularity,
            initial_cash=initial_cash, execution=execution, max_qty=max_qty, max_notional_jpy=max_notional_jpy,
            max_position_qty=max_position_qty, max_orders_per_minute=max_orders_per_minute,
            max_open_orders=max_open_orders, max_daily_loss_jpy=max_daily_loss_jpy,
        )
        return self._run(config, _starts.live_id(strategy_id, strategy_file, paper), on_event, wait)
