"""What an adversary would have a broker do to a strategy with real orders: late lists, late answers, a fill that is
told in three ways, one after the cancel, a kill in the middle of all. Then midnight in Japan, and what paper and real
have in common.

A thousand orders in a second, and what a person holds: `test_live_real.py`."""

import datetime
import os

import pytest
from bad_disk import bad_disk
from engine_process import EXECUTION, component, replayed
from live_world import CANCEL, NEW, SPEC, VENDOR
from market_world import BUY, CANCEL_ALL, ID, LIMIT, LOW, NOTHING, SELL, SELL_TWICE, Real
from shifted_clock import JAPAN, TUESDAY, WEDNESDAY, shifted_to
from test_live_smoke import table

INSTRUMENT = "7203.TSE"


@pytest.fixture
def world(tmp_path):
    """Makes a market with an engine, which ends with the test."""
    worlds = []

    def world(*engine, **how):
        worlds.append(Real(tmp_path / f"world-{len(worlds)}", *engine, **how))
        return worlds[-1]

    yield world
    for one in worlds:
        one.close()


def begun(one, **config):
    """The strategy runs at a market."""
    one.ready()
    one.boards()
    started = one.begin(**config)
    assert started["event"] == "EngineStarted", started
    return started


def back(one, **config):
    """The engine after a kill -9, with the strategy in it."""
    one.restart()
    one.boards()
    started = one.begin(**config)
    assert started["event"] == "EngineStarted", started
    return started


def holds(one, shares, strategy_id=ID):
    """Waits until the strategy holds so many shares, and holds that the log has them and the broker too."""
    one.until(lambda: one.positions().get((strategy_id, INSTRUMENT), 0) == shares, f"{shares} shares are held")
    written = {(line["venue_order_id"], line["trade_id"]): line for line in one.lines()
               if line["phase"] == "filled" and line.get("strategy_id") == strategy_id}
    signed = [int(line["last_qty"]) * (1 if line["order_side"] == "BUY" else -1) for line in written.values()]
    assert sum(signed) == shares


def told_fills(one):
    """The strategy's fills that clients were told, each by its order's number and its own."""
    return [(event["venue_order_id"], event["trade_id"]) for client in one.clients for event in client.events
            if event["event"] == "OrderFilled" and event.get("origin") == "strategy"]


# --- Lists.


def test_p101_p130_a_fill_in_stream_list_and_details_counts_once(world):
    """Notices twice, lists before and after them, the stream again from its beginning, and a restart."""
    one = world(form=VENDOR)
    begun(one)
    one.fault("duplicate-notices")
    one.fault("hold-notices")
    since = one.mark()
    one.trade(BUY)
    one.wait("OrderAccepted", since, origin="strategy")
    one.gateway.trade(NOTHING)
    one.until(lambda: any(row["filled_qty"] == "100" or row["status"] == "FILLED" for row in one.orders()),
              "a list has it before any notice")
    one.broker.control({"do": "release-notices"})
    one.filled("BUY", since)
    one.orders()
    streams = one.broker.view()["counts"]["streams"]
    one.broker.control({"do": "disconnect-events"})
    one.until(lambda: one.broker.view()["counts"]["streams"] > streams, "the stream is followed again")
    one.orders()
    holds(one, 100)
    back(one)
    one.orders()
    holds(one, 100)
    assert len(told_fills(one)) == len(set(told_fills(one))) == 1
    assert one.stop()["status"] == "stopped"
    assert len(one.own()) == 1


def test_p20_p104_a_list_that_is_30_seconds_late_and_a_kill(world):
    """The answer is lost, the engine killed, and the list shows the account of half a minute ago. The engine that waits
    long enough finds the order and its fill; until then the strategy does not start, and nothing is sent again."""
    one = world("--web-broker", "unknown_settle_secs=40")
    begun(one)
    one.fault("late-lists", value=30_000)
    one.fault("delay-answer", value=2_000, request=NEW, times=1)
    one.gateway.trade(BUY)
    one.until_seen(NEW)
    one.kill_engine()
    one.gateway.trade(NOTHING)
    one.ready()
    one.boards()
    started = one.begin()
    if started["event"] != "EngineStarted":
        assert started["code"] == "orders_unsettled", started
        started = one.begin()
    assert started["event"] == "EngineStarted", started
    holds(one, 100)
    assert len(one.own()) == len(one.requests(NEW)) == 1
    assert one.unknown() == []
    assert one.stop()["status"] == "stopped"


def test_p121_a_list_that_is_later_than_the_setting_says(world):
    """The order was told as not at the broker, and comes back: it is the strategy's again, and the run ends."""
    one = world()
    begun(one)
    one.fault("late-lists", value=2_500)
    # No notice tells of it first.
    one.fault("hold-notices")
    one.fault("drop-answer", request=NEW, times=1)
    since = one.mark()
    one.trade(LIMIT)
    refused = one.wait("OrderRejected", since, origin="strategy")
    assert refused["reason_text"].startswith("NOT_AT_BROKER: "), refused
    one.until(lambda: one.orders() and one.client.since(since, "EngineStopped"), "a later list has it")
    told = one.wait("EngineError", since, code="order_came_back")
    number, = (order["number"] for order in one.own())
    assert refused["client_order_id"] in told["message"] and number in told["message"]
    assert one.wait("EngineStopped", since)["status"] == "fault"
    one.broker.control({"do": "release-notices"}, {"do": "clear-faults"})
    one.until(lambda: one.own()[0]["leaves"] == 0, "it is cancelled")
    assert len(one.requests(NEW)) == 1


def test_p92_p121_a_restart_keeps_the_number_of_an_order_that_the_exchange_refused(world):
    """An equal order was told as not at the broker just before. The number is in the log, so that no other order is
    given it."""
    one = world()
    begun(one)
    since = one.mark()
    one.fault("drop-before", request=NEW, times=1)
    one.trade(BUY)
    lost = one.wait("OrderRejected", since, origin="strategy")
    assert lost["reason_text"].startswith("NOT_AT_BROKER: "), lost
    since = one.mark()
    one.fault("refuse-later", times=1)
    one.trade(BUY)
    number = one.wait("OrderAccepted", since, origin="strategy")["venue_order_id"]
    one.wait("OrderRejected", since, origin="strategy")
    back(one)
    one.orders()
    named = {line["client_order_id"] for line in one.lines()
             if line["phase"] == "accepted" and line["venue_order_id"] == number}
    assert len(named) == 1, "a number has one id"
    assert not [event for event in one.client.events if event.get("client_order_id") == lost["client_order_id"]]
    assert one.stop()["status"] == "stopped"


# --- Answers.


def test_p98_p104_a_broker_that_answers_after_the_timeout(world):
    """The engine does not wait so long, the broker has taken it, and it fills meanwhile."""
    one = world("--web-broker", "answer_timeout_ms=1000")
    begun(one)
    one.fault("delay-answer", value=2_000, request=NEW, times=1)
    since = one.mark()
    one.trade(BUY)
    one.until_seen(NEW)
    one.gateway.trade(NOTHING)
    lost = one.wait("EngineError", since, code="internal_error")
    accepted = one.wait("OrderAccepted", since, origin="strategy")
    assert lost["strategy_id"] == ID and accepted["client_order_id"] in lost["message"]
    one.filled("BUY", since)
    one.until(lambda: one.broker.view()["counts"]["in_flight"] == 0, "the answer has come")
    holds(one, 100)
    # It trades on.
    since = one.mark()
    one.trade(SELL)
    one.wait("OrderAccepted", since, origin="strategy")
    one.gateway.trade(NOTHING)
    holds(one, 0)
    assert len(one.own()) == len(one.requests(NEW)) == 2
    assert one.stop()["status"] == "stopped"


# --- Cancels.


def test_p101_a_fill_after_the_cancel_counts(world):
    """In the run, and in one after a restart, in which the order has long ended."""
    one = world()
    begun(one)
    since = one.mark()
    one.trade(LIMIT)
    number = one.wait("OrderAccepted", since, origin="strategy")["venue_order_id"]
    one.trade(CANCEL_ALL)
    one.wait("OrderCanceled", since, venue_order_id=number)
    one.broker.control({"do": "late-fill", "number": number, "price": LOW, "quantity": 60})
    holds(one, 60)
    one.kill_engine()
    one.broker.control({"do": "late-fill", "number": number, "price": LOW})
    one.ready()
    holds(one, 100)
    one.boards()
    assert one.begin()["event"] == "EngineStarted"
    since = one.mark()
    one.trade(SELL)
    one.wait("OrderAccepted", since, origin="strategy", order_side="SELL")
    one.gateway.trade(NOTHING)
    holds(one, 0)
    assert len(told_fills(one)) == len(set(told_fills(one))) == 3
    assert one.stop()["status"] == "stopped"


@pytest.mark.parametrize("form, done", [(SPEC, True), (VENDOR, False)])
def test_p101_p105_a_part_fills_during_a_cancel_during_a_kill(world, form, done):
    """And the cancel is done while nobody is there, or it never was."""
    one = world(form=form)
    begun(one)
    for _ in range(3):
        one.bought()
    since = one.mark()
    one.trade(SELL_TWICE)
    number = one.wait("OrderAccepted", since, origin="strategy", order_side="SELL")["venue_order_id"]
    one.fault("hold-changes")
    # Too few shares for a fill.
    one.trade(CANCEL_ALL, quantity=50)
    one.until_seen(CANCEL)
    one.gateway.trade(LOW, 100)
    one.kill_engine()
    one.broker.control({"do": "release-changes", "refuse": not done})
    one.ready()
    one.boards()
    assert one.begin()["event"] == "EngineStarted"
    holds(one, 200)
    order = one.own()[-1]
    assert (order["number"], order["filled"], order["leaves"]) == (number, 100, 0), "it was cancelled, at last"
    assert len(set(told_fills(one))) == len(told_fills(one))
    assert one.stop()["status"] == "stopped"
    assert len(one.requests(NEW)) == 4


@pytest.mark.parametrize("delay", [3_000, 6_000])
def test_p86_p127_a_broker_that_is_slow_to_cancel_and_the_end_of_the_engine(world, delay):
    """The engine ends while an order works: it is cancelled, or clients are told that it works. The next start settles
    it."""
    one = world()
    begun(one)
    since = one.mark()
    one.trade(LIMIT)
    accepted = one.wait("OrderAccepted", since, origin="strategy")
    one.fault("delay-request", value=delay, request=CANCEL)
    since = one.mark()
    assert one.engine.end() == 0
    one.client.to_the_end()
    told = one.client.since(since, "OrderCanceled", "EngineError", "EngineStopped")
    assert len(told) > 1 and told[-1]["event"] == "EngineStopped", told
    for event in told[:-1]:
        if event["event"] == "EngineError":
            assert event["code"] == "orders_working", event
            assert accepted["venue_order_id"] in event["message"] and accepted["client_order_id"] in event["message"]
        else:
            assert event["venue_order_id"] == accepted["venue_order_id"] and one.working() == []
    one.broker.control({"do": "clear-faults"})
    one.until(lambda: one.broker.view()["counts"]["in_flight"] == 0, "the broker is done")
    one.ready()
    one.boards()
    assert one.begin()["event"] == "EngineStarted"
    assert one.working() == [], "the next start has cancelled it"
    assert one.stop()["status"] == "stopped"
    assert len(one.requests(NEW)) == 1


# --- Who holds what.


def test_p126_two_strategies_one_after_the_other_under_one_id(world):
    """The second one has what the first one bought, and sells that; what it leaves the third one has."""
    one = world()
    first = begun(one)
    one.bought()
    assert one.stop()["status"] == "stopped"
    # It sells what it holds, and buys when it holds nothing.
    since = one.mark()
    second = one.begin(strategy_file=component("orders-every-tick"))
    assert second["event"] == "EngineStarted", second
    sold = one.wait("OrderAccepted", since, origin="strategy")
    assert (sold["order_side"], sold["client_order_id"].startswith(second["run_id"])) == ("SELL", True), sold
    one.until(lambda: one.gateway.trade(NOTHING) or len(one.own()) > 2, "it has sold, and buys")
    assert one.stop()["status"] == "stopped"
    holds(one, one.at_broker())
    third = one.begin()
    one.bought()
    assert one.stop()["status"] == "stopped"
    holds(one, one.at_broker())
    assert one.held() == 300 + one.at_broker(), "a person's shares are untouched"
    ids = {line["client_order_id"] for line in one.lines() if line["phase"] == "submit"}
    assert len(ids) == len(one.own()), "no id came again"
    for run in (first, second, third):
        made = replayed("journal", one.engine.cache / "runs" / run["run_id"], one.engine.cache)
        assert (made["identical"], made["first_difference"]) == (True, None), made


@pytest.mark.parametrize("time, is_same_day", [("23:58:00", True), ("23:59:59", False), ("00:00:01", False)])
def test_p96_p100_a_restart_around_midnight_in_japan(world, monkeypatch, time, is_same_day):
    """The strategy holds what it held, with what filled while nobody was there. A loss counts until the day is over,
    and not after it."""
    set_clock(monkeypatch, TUESDAY, "23:50:00")
    one = world()
    limits = {"max_daily_loss_jpy": 3_000}
    begun(one, **limits)
    for _ in range(2):
        one.bought()
    since = one.mark()
    one.trade(SELL)
    one.wait("OrderAccepted", since, origin="strategy", order_side="SELL")
    one.gateway.trade(LOW)
    one.filled("SELL", since)
    since = one.mark()
    one.trade(LIMIT)
    assert one.wait("OrderRejected", since)["reason_text"].startswith("MAX_DAILY_LOSS_JPY: ")
    holds(one, 100)
    one.kill_engine()
    ahead = set_clock(monkeypatch, TUESDAY if time > "12" else WEDNESDAY, time)
    one.broker.control({"do": "clock", "ahead_ms": ahead * 1_000})
    one.ready()
    holds(one, 100)
    one.boards()
    assert one.begin(**limits)["event"] == "EngineStarted"

    def ends():
        since, seen = one.mark(), one.session()["rows_done"]
        # The first frame after midnight is no trade.
        one.until(lambda: one.gateway.trade(LIMIT) or one.session()["rows_done"] > seen, "a trade")
        return one.client.wait("OrderAccepted", "OrderRejected", since=since, origin="strategy")

    end = ends()
    if is_same_day:
        assert end["reason_text"].startswith("MAX_DAILY_LOSS_JPY: "), end
    elif time > "12":
        # Midnight comes.
        one.until(lambda: ends()["event"] == "OrderAccepted", "yesterday's loss does not count")
    else:
        assert end["event"] == "OrderAccepted", end
    assert one.stop()["status"] == "stopped"
    holds(one, 100)


def set_clock(monkeypatch, day, time):
    """Sets the clock of processes that start from now on; gives by how many seconds it was set ahead."""
    before = int(os.environ.get("SHIFTED_CLOCK_SECONDS", "0"))
    for name, value in shifted_to(day, datetime.time.fromisoformat(time)).items():
        monkeypatch.setenv(name, value)
    return int(os.environ["SHIFTED_CLOCK_SECONDS"]) - before


def test_p104_p105_p128_an_order_that_filled_on_a_full_disk_is_not_at_work_the_next_day(world, monkeypatch, tmp_path):
    """Its fill was written when there was room. The broker's list of the next day does not have the order, and nobody
    can cancel it: the strategy starts, and holds what it bought."""
    full = tmp_path / "the-disk-is-full"
    disk = bad_disk(tmp_path / "the-disk-is-slow", full)
    if not disk:
        pytest.skip("only a C compiler on Linux makes what fills a disk")
    set_clock(monkeypatch, TUESDAY, "14:00:00")
    disk["LD_PRELOAD"] += f":{os.environ['LD_PRELOAD']}"
    one = world(environment=disk)
    begun(one)
    since = one.mark()
    one.trade(LIMIT)
    one.wait("OrderAccepted", since, origin="strategy")
    full.touch()
    one.gateway.trade(LOW)
    assert one.wait("EngineStopped", since)["status"] == "fault"
    full.unlink()
    assert one.begin()["event"] == "EngineStarted"
    assert one.stop()["status"] == "stopped"
    holds(one, 100)
    one.kill_engine()
    ahead = set_clock(monkeypatch, WEDNESDAY, "09:00:00")
    one.broker.control({"do": "clock", "ahead_ms": ahead * 1_000})
    one.next_day(keep_session=False)
    one.ready()
    one.boards()
    started = one.begin()
    assert started["event"] == "EngineStarted", started
    holds(one, 100)
    assert one.stop()["status"] == "stopped"


# --- Paper and real.


#: What the test's strategy is told: buys and sales at the market, limits that fill and that are cancelled, what a limit
#: of shares refuses.
TAPE = (BUY, NOTHING, BUY, NOTHING, SELL_TWICE, NOTHING, LIMIT, LOW, LIMIT, LIMIT, CANCEL_ALL, NOTHING, SELL, NOTHING,
        SELL, BUY, NOTHING, "2839", "2838")
#: Averages cross a few times, and not at a trade that fills.
WAVE = tuple(map(str, (*range(2840, 2855), *range(2855, 2835, -1), *range(2835, 2855), *range(2855, 2840, -1))))


@pytest.mark.parametrize("strategy, tape, parameters", [
    ("acts-by-price", TAPE, {}), ("sma-cross", WAVE, {"fast": 3, "slow": 7, "quantity": 100})])
def test_p99_p120_paper_and_real_decide_the_same(world, monkeypatch, strategy, tape, parameters):
    """The same strategy gets the same trades on paper and with real orders. It sends the same orders in the same order;
    they end and fill in the same way."""
    set_clock(monkeypatch, TUESDAY, "10:00:00")
    one = world()
    one.ready()
    one.boards()
    # The first frame of a session is no trade, and the second run has no first frame.
    one.gateway.trade(NOTHING)
    config = {"strategy_file": component(strategy), "strategy_init_kwargs": parameters}
    on_paper = {"paper": True, "initial_cash": "10000000", "execution": EXECUTION}
    paper = played(one, tape, "10:10:00", {**config, **on_paper})
    assert len(paper["orders"]) >= 4 and len(paper["fills"]) >= 4, paper
    real = played(one, tape, "10:30:00", config, paper)
    for what in ("orders", "sent", "fills", "canceled"):
        assert paper[what] == real[what], what
    # The broker's notice of a fill may come before the board that has the trade, or after it.
    assert all(at - 1 <= told <= at for at, told in zip(paper["filled"], real["filled"])), (paper, real)
    assert len(one.own()) == sum(status != "REJECTED" for *_, status in real["orders"])


#: Seconds of the market from a trade of a tape to the next: more than the engine needs for one.
STEP = 10


def played(one, tape, begins, config, like=None):
    """Plays a tape to a run, from that time of the market on; gives what it decided, at which trades, and what became
    of that. No trade comes before what `like` did by then was done: an order must be at the broker to fill."""
    since = one.mark()
    run = one.begin(**config)
    assert run["event"] == "EngineStarted", run
    start = datetime.datetime.combine(TUESDAY, datetime.time.fromisoformat(begins), JAPAN)
    for number, price in enumerate(tape, 1):
        one.trade(price, time=f"{start + datetime.timedelta(seconds=number * STEP):%H:%M:%S}")
        if like:
            one.until(lambda number=number: has_done(one, since, like, number), f"{number}: what was done on paper")
    assert one.stop()["status"] == "stopped"
    folder = one.engine.cache / "runs" / run["run_id"]
    orders, fills = table(folder, "orders"), table(folder, "fills")

    def number_of(nanos):
        return (int(nanos) // 10**9 - int(start.timestamp())) // STEP

    return {
        "orders": [(row["side"], row["order_type"], row["quantity"], row["price"], row["status"]) for row in orders],
        "sent": [number_of(row["ts_submitted_ns"]) for row in orders],
        "fills": [(row["side"], row["price"], row["quantity"]) for row in fills],
        "filled": [number_of(row["ts_event_ns"]) for row in fills],
        "canceled": [number_of(row["ts_last_ns"]) for row in orders if row["status"] == "CANCELED"],
    }


def has_done(one, since, like, number):
    """Whether a run has done what another one had done by that trade, and nothing of it is under way."""
    one.session()
    told = [event for event in one.client.events[since:] if event.get("origin") == "strategy"]
    ids = {name: {event["client_order_id"] for event in told if event["event"] == name}
           for name in ("OrderSubmitted", "OrderAccepted", "OrderRejected", "OrderCanceled")}
    answered = ids["OrderAccepted"] | ids["OrderRejected"]
    filled = sum(int(event["last_qty"]) for event in told if event["event"] == "OrderFilled")
    return (ids["OrderSubmitted"] <= answered and filled == sum(order["filled"] for order in one.own())
            and len(answered) >= sum(at <= number for at in like["sent"])
            and len(ids["OrderCanceled"]) >= sum(at <= number for at in like["canceled"]))
