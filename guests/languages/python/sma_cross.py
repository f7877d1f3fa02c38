"""The moving-average crossover of guests/strategies/sma-cross, in Python: the same orders at the same
events. It speaks the contract in wit/strategy itself; componentize-py makes the modules it imports."""

import functools
import json
from collections import deque

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.guest import Window, Window_Bars, Window_OneBar, Window_OneTrade, Window_Trades
from wit_world.imports import actions, log, parameters, portfolio, types

LENGTH_MAX = 100_000
# Beyond these a split begins the averages anew, as in Rust, where they stand for 64 bits.
SCALE_MAX = 1_000
SUM_MAX = (2**63 - 1) // 2
FINAL = {
    types.OrderStatus.FILLED,
    types.OrderStatus.CANCELED,
    types.OrderStatus.EXPIRED,
    types.OrderStatus.REJECTED,
}


def count(given: dict, name: str, default: int, high: int | None) -> int:
    """A whole number of the configuration, from 1; taken out of it."""
    value = given.pop(name, default)
    # True and False are whole numbers to Python.
    if type(value) is int and value >= 1 and (high is None or value <= high):
        return value
    wanted = "a number of shares from 1" if high is None else f"a whole number from 1 to {high}"
    raise Err(f"parameter `{name}` is {json.dumps(value)}; it must be {wanted}")


def day_of(now: int) -> int:
    """The day in Japan, counted from 1970."""
    hour = 3_600_000_000_000
    return (now + 9 * hour) // (24 * hour)


class Averages:
    """The sums of the last `fast` and the last `slow` prices of one instrument."""

    def __init__(self, fast: int, slow: int):
        self.fast, self.slow = fast, slow
        # Prices not seen yet count 0, so the sums need no special case at the start.
        self.prices = deque([0] * slow, maxlen=slow)
        self.seen = self.sum_fast = self.sum_slow = 0
        # What a price is multiplied with after splits, so that nothing is rounded.
        self.scale = 1
        # The side of the last order, and the day in Japan on which one of each side was rejected last:
        # the same order would be rejected again, so that side waits for the next day.
        self.sent = types.OrderSide.BUY
        self.rejected_on: dict[types.OrderSide, int] = {}

    def push(self, price: int) -> bool:
        """Takes in a price; tells whether `slow` prices were seen."""
        price *= self.scale
        prices = self.prices
        self.sum_fast += price - prices[-self.fast]
        self.sum_slow += price - prices[0]
        prices.append(price)
        if self.seen < self.slow:
            self.seen += 1
        return self.seen == self.slow

    def may_send(self, side: types.OrderSide, now: int) -> bool:
        if self.rejected_on.get(side) == day_of(now):
            return False
        self.sent = side
        return True

    def split(self, old: int, new: int) -> None:
        """The kept prices go on as prices of the new shares."""
        if self.scale * new > SCALE_MAX or self.sum_slow * old > SUM_MAX:
            self.__init__(self.fast, self.slow)
            return
        self.scale *= new
        self.prices = deque((price * old for price in self.prices), maxlen=self.slow)
        self.sum_fast *= old
        self.sum_slow *= old

    def compare(self) -> int:
        """Above zero while the fast average is above the slow one, below while below. Exact: the
        sums are compared across, and whole numbers of Python have no end."""
        return self.sum_fast * self.slow - self.sum_slow * self.fast


def told(error: BaseException) -> str:
    """An exception with the lines that led to it. The module traceback would look for source files,
    which are not there, and Python's own words go to a standard error that nobody reads."""
    lines, step = [f"{type(error).__name__}: {error}"], error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        lines.append(f"  at {code.co_qualname} ({code.co_filename}:{step.tb_lineno})")
        step = step.tb_next
    return "\n".join(lines)


def with_last_words(call):
    """What ends a call by an exception is shown as the fault's reason."""

    @functools.wraps(call)
    def wrapped(self, *arguments):
        try:
            return call(self, *arguments)
        except Err:
            raise
        except BaseException as error:
            now = strategy.now if "strategy" in globals() else 0
            log.write(log.Level.PANIC, now, told(error))
            raise

    return wrapped


class SmaCross:
    """The strategy. Parameters: `fast` and `slow` (prices in each average), `quantity` (shares)."""

    def __init__(self, config: str, instruments: list[types.Instrument]):
        try:
            given = json.loads(config) if config.strip() else {}
        except ValueError as error:
            raise Err(f"the parameters are not JSON: {error}")
        self.fast = count(given, "fast", 20, LENGTH_MAX)
        self.slow = count(given, "slow", 100, LENGTH_MAX)
        self.quantity = count(given, "quantity", 100, None)
        if self.fast >= self.slow:
            lengths = f"parameter `fast` is {self.fast} and `slow` is {self.slow}"
            raise Err(f"{lengths}; fast must be below slow")
        if given:
            known = "this strategy has: fast, slow, quantity"
            raise Err(f"unknown parameter `{next(iter(given))}`; {known}")
        for name in ("fast", "slow", "quantity"):
            parameters.report(name, str(getattr(self, name)))
        self.averages = [Averages(self.fast, self.slow) for _ in instruments]
        # Orders that are not done, and shares held as far as the host was asked.
        self.working: list[set[str]] = [set() for _ in instruments]
        self.held: list[int | None] = [None] * len(instruments)
        self.orders = 0
        # The present window: time, instrument and price of each row, and the rows handled.
        self.rows: list[tuple[int, int, int]] = []
        self.reached = 0
        self.now = 0

    def advance(self, window: Window, limit: int) -> int:
        match window:
            case Window_OneTrade(trade):
                self.on_price(trade.ts_event, trade.instrument, trade.price)
                return 1
            case Window_OneBar(bar):
                self.on_price(bar.ts_event, bar.instrument, bar.close)
                return 1
            case Window_Trades(columns):
                self.rows = list(zip(columns.ts_event, columns.instrument, columns.price))
                self.reached = 0
            case Window_Bars(bars):
                self.rows = [(bar.ts_event, bar.instrument, bar.close) for bar in bars]
                self.reached = 0
        # What is left is to go on with the window that is here.
        for row in range(self.reached, limit):
            if self.on_price(*self.rows[row]):
                self.reached = row + 1
                return self.reached
        self.reached = limit
        return limit

    def on_order_events(self, events: list[types.OrderEvent]) -> None:
        for event in events:
            self.now = event.ts_event
            self.held[event.instrument] = None
            if event.status == types.OrderStatus.REJECTED:
                averages = self.averages[event.instrument]
                averages.rejected_on[averages.sent] = day_of(event.ts_event)
            if event.status in FINAL:
                self.working[event.instrument].discard(event.client_order_id)

    def on_account_events(self, events: list[types.AccountEvent]) -> None:
        for event in events:
            self.now = event.ts_event
            self.held[event.instrument] = None
            if isinstance(event.kind, types.AccountEventKind_Split):
                split = event.kind.value
                self.averages[event.instrument].split(split.old_shares, split.new_shares)

    def on_price(self, now: int, instrument: int, price: int) -> bool:
        """Takes in a price; tells whether an order was sent."""
        self.now = now
        averages = self.averages[instrument]
        if not averages.push(price) or self.working[instrument]:
            return False
        compared = averages.compare()
        if compared == 0:
            return False
        held = self.held[instrument]
        if held is None:
            held = self.held[instrument] = portfolio.get_position(instrument).quantity
        if compared > 0 and held == 0 and averages.may_send(types.OrderSide.BUY, now):
            return self.send(instrument, types.OrderSide.BUY, self.quantity)
        if compared < 0 and held > 0 and averages.may_send(types.OrderSide.SELL, now):
            return self.send(instrument, types.OrderSide.SELL, held)
        return False

    def send(self, instrument: int, side: types.OrderSide, quantity: int) -> bool:
        self.orders += 1
        client_order_id = f"O-{self.orders}"
        self.working[instrument].add(client_order_id)
        order = types.OrderRequest(
            client_order_id=client_order_id,
            instrument=instrument,
            side=side,
            order_type=types.OrderType.MARKET,
            quantity=quantity,
            price=None,
            trigger_price=None,
            trigger_type=None,
            time_in_force=types.TimeInForce.DAY,
            expire_time=None,
            post_only=False,
            reduce_only=False,
            tags=[],
        )
        actions.act([types.Action_Submit(order)])
        return True


strategy: SmaCross


class Guest(exports.Guest):
    """The calls of the host. Every call gets a `Guest` of its own, so it holds nothing."""

    @with_last_words
    def init(self, config: str, instruments: list[types.Instrument]) -> None:
        global strategy
        strategy = SmaCross(config, instruments)

    @with_last_words
    def start(self, now: int) -> None:
        strategy.now = now

    @with_last_words
    def advance(self, window: Window, limit: int) -> int:
        return strategy.advance(window, limit)

    @with_last_words
    def on_order_events(self, events: list[types.OrderEvent]) -> None:
        strategy.on_order_events(events)

    @with_last_words
    def on_account_events(self, events: list[types.AccountEvent]) -> None:
        strategy.on_account_events(events)

    @with_last_words
    def stop(self, now: int) -> None:
        strategy.now = now
