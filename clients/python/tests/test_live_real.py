"""Strategies with real orders, at `kumiki sim market`: each trade of the market fills orders at the broker, and the last
yen of its price tells the test's strategy what to do (guests/test/acts-by-price)."""

import json

import pytest
from live_world import CANCEL, NEW, SPEC, VENDOR
from market_world import BUY, HUNDRED, ID, LIMIT, NOTHING, PANIC, SELL, SELL_TWICE, Real


@pytest.fixture(params=[SPEC, VENDOR])
def real(request, tmp_path):
    with Real(tmp_path, form=request.param) as world:
        world.ready()
        world.boards()
        yield world
        world.check(alone=False)


@pytest.fixture
def one(tmp_path):
    with Real(tmp_path) as world:
        world.ready()
        world.boards()
        yield world
        world.check(alone=False)


def test_p84_p85_p91_p92_p93_p102_what_is_bought_and_sold_again(real):
    """The events of a buy and of its sale, in their order; the log says whose they are; the journal makes all of it
    again."""
    started = real.begin()
    assert (started["event"], started["account_id"], started["execution"]) == (
        "EngineStarted", "LIVE", {"model": "live"}), started
    assert started["multiplier"] == 1
    since = real.mark()
    bought = real.bought()
    real.wait("PositionOpened", since)
    assert real.positions() == {(ID, "7203.TSE"): 100}
    sold_from = real.mark()
    real.trade(SELL)
    real.wait("OrderAccepted", sold_from, origin="strategy", order_side="SELL")
    real.trade(NOTHING)
    real.filled("SELL", sold_from)
    closed = real.wait("PositionClosed", sold_from)
    assert closed["venue"] == "web_broker"
    assert real.positions() == {}
    of_orders = [event for event in real.client.events[since:]
                 if event["event"].startswith("Order") or event["event"] in ("ExecutionMarker", "PositionOpened",
                                                                             "PositionClosed")]
    assert [event["event"] for event in of_orders] == [
        "OrderSubmitted", "OrderAccepted", "OrderFilled", "ExecutionMarker", "PositionOpened",
        "OrderSubmitted", "OrderAccepted", "OrderFilled", "ExecutionMarker", "PositionClosed"]
    for event in of_orders:
        assert event["strategy_id"] == ID, event
        if event["event"].startswith("Order"):
            assert (event["venue"], event["origin"]) == ("web_broker", "strategy")
            assert event.get("request_id") is None, event
    assert bought["client_order_id"].startswith(started["run_id"]), "an id that no other run has"
    lines = [line for line in real.lines() if line["phase"] in ("submit", "accepted", "filled")]
    assert [line["phase"] for line in lines] == ["submit", "accepted", "filled"] * 2
    assert all((line["origin"], line["strategy_id"]) == ("strategy", ID) for line in lines)
    stopped = real.stop()
    assert (stopped["status"], stopped["final_equity"]) == ("stopped", closed["realized_pnl"])
    run = real.engine.cache / "runs" / started["run_id"]
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["run_kind"], manifest["partial"]) == ("live", False)
    assert len(real.requests(NEW)) == 2


def test_p95_p96_p114_p123_what_does_not_leave(one):
    """Guards refuse before anything is sent: no submitted event, no line, no request."""
    one.begin(max_position_qty=100, max_orders_per_minute=30)
    since = one.mark()
    one.trade(SELL)
    refused = one.wait("OrderRejected", since, origin="strategy")
    assert refused["reason_text"].startswith("POSITION: "), "the account's 300 shares are a person's"
    one.bought()
    since = one.mark()
    one.trade(BUY)
    assert one.wait("OrderRejected", since)["reason_text"].startswith("MAX_POSITION: ")
    since = one.mark()
    one.trade(SELL_TWICE)
    assert one.wait("OrderRejected", since)["reason_text"].startswith("POSITION: ")
    assert len(one.requests(NEW)) == 1 and len([line for line in one.lines() if line["phase"] == "submit"]) == 1
    one.stop()


def test_p96_p101_a_thousand_orders_in_a_second(one):
    """As many as are allowed leave, and all that leave count."""
    one.begin(max_orders_per_minute=5, max_open_orders=10)
    since = one.mark()
    one.trade(*[HUNDRED] * 10)
    one.until(lambda: one.session() and sum(
        event["event"] == "OrderRejected" for event in one.client.events[since:]) == 995, "refusals")
    one.until(lambda: len(one.requests(NEW)) == 5, "five orders")
    one.until(lambda: one.session() and sum(
        event["event"] == "OrderAccepted" for event in one.client.events[since:]) == 5, "accepted")
    one.until(lambda: one.trade(NOTHING) or one.positions().get((ID, "7203.TSE")) == 500, "five fills")
    assert len(one.requests(NEW)) == 5
    assert one.stop()["status"] == "stopped"


def test_p86_p127_a_stop_cancels_what_works(one):
    one.begin()
    since = one.mark()
    one.trade(LIMIT)
    number = one.wait("OrderAccepted", since)["venue_order_id"]
    stopped = one.stop()
    assert stopped["status"] == "stopped"
    canceled = [event for event in one.client.events[since:] if event["event"] == "OrderCanceled"]
    assert [event["venue_order_id"] for event in canceled] == [number]
    assert len(one.requests(CANCEL)) == 1
    assert not [event for event in one.client.events[since:] if event.get("code") == "orders_working"]


def test_p94_a_person_cancels_a_strategys_order(one):
    """By its number, not by its id; the strategy hears of it."""
    started = one.begin()
    since = one.mark()
    one.trade(LIMIT)
    accepted = one.wait("OrderAccepted", since)
    rows = [row for row in one.orders() if row["venue_order_id"] == accepted["venue_order_id"]]
    assert (rows[0]["origin"], rows[0]["strategy_id"]) == ("strategy", ID)
    refused = one.send("CancelOrder", client_order_id=accepted["client_order_id"])()
    assert refused["event"] == "OrderRejected", refused
    one.cancel(None, accepted["venue_order_id"])
    one.trade(NOTHING)
    one.stop()
    assert "EVENT Canceled" in one.log_of(started["run_id"])


def test_p100_p103_p105_p130_a_killed_engine_leaves_what_was_bought(one):
    """kill -9 with a position and a working order: the next start cancels the order and has the position."""
    one.begin()
    since = one.mark()
    one.bought()
    one.trade(LIMIT)
    number = one.wait("OrderAccepted", since, where=lambda event: event["client_order_id"].endswith("-2"))
    one.restart()
    one.boards()
    assert one.positions() == {(ID, "7203.TSE"): 100}
    assert not one.requests(CANCEL), "nothing about it is sent before the start (P106)"
    started = one.begin()
    assert started["event"] == "EngineStarted", started
    canceled = one.client.wait("OrderCanceled")
    assert canceled["venue_order_id"] == number["venue_order_id"]
    assert not [event for event in one.client.events if event["event"] == "OrderFilled"], "told before the kill"
    since = one.mark()
    one.trade(SELL)
    one.wait("OrderAccepted", since, origin="strategy")
    one.trade(NOTHING)
    one.filled("SELL", since)
    one.stop()
    assert "HELD 100 at" in one.log_of(started["run_id"])
    assert one.positions() == {}
    bought = [order for order in one.broker.orders() if not order["foreign"]]
    assert len(bought) == 3, "a buy, a limit, a sale"


def test_p97_p105_without_a_password(one):
    """No order without it; with working orders no start without it."""
    one.begin()
    since = one.mark()
    one.client.send("ForgetSecondPassword")
    one.trade(BUY)
    refused = one.wait("OrderRejected", since)
    assert refused["reason_code"] == "SECOND_PASSWORD_REQUIRED"
    assert refused["reason_text"].startswith("NO_PASSWORD: ")
    asked = one.wait("SecondPasswordRequired", since)
    assert asked["request_id"] == refused["client_order_id"]
    one.password()
    one.trade(LIMIT)
    one.wait("OrderAccepted", since)
    one.kill_engine()
    one.start()
    one.login()
    one.boards()
    refused = one.begin()
    assert (refused["event"], refused["code"]) == ("EngineError", "orders_unsettled"), refused
    assert "password" in refused["message"].lower(), refused
    one.password()
    assert one.begin()["event"] == "EngineStarted"
    one.stop()


def test_p107_p125_what_the_account_lacks(one):
    """A sale by hand of what the strategy holds ends its run; a correction lets it start again, and the run's log
    says so."""
    one.begin()
    since = one.mark()
    one.bought()
    one.sell_by_hand(400)
    one.until(lambda: one.trade(NOTHING) or one.held() == 0, "all is sold")
    told = one.wait("EngineError", since, code="position_mismatch")
    assert told["strategy_id"] == ID
    stopped = one.wait("EngineStopped", since)
    assert stopped["status"] == "fault" and "POSITION_MISMATCH" in stopped["fault"]["message"]
    refused = one.begin()
    assert refused["code"] == "position_mismatch", refused
    one.client.ask("AdjustStrategyPosition", "StrategyPositionAdjusted", strategy_id=ID, instrument_id="7203.TSE",
                   quantity="0", average_price="0", why="sold by hand")
    started = one.begin()
    assert started["event"] == "EngineStarted", started
    one.stop()
    assert "sold by hand" in one.log_of(started["run_id"])


def test_p110_p127_a_fault_tells_what_still_works(one):
    """By default a failed strategy's orders stay, and clients are told which."""
    one.begin()
    since = one.mark()
    one.trade(LIMIT)
    accepted = one.wait("OrderAccepted", since)
    one.gateway.trade(PANIC)
    stopped = one.wait("EngineStopped", since)
    assert (stopped["status"], stopped["fault"]["code"]) == ("fault", "strategy_fault")
    working = one.wait("EngineError", since, code="orders_working")
    assert accepted["venue_order_id"] in working["message"] and accepted["client_order_id"] in working["message"]
    assert one.client.events.index(working) < one.client.events.index(stopped)
    assert not one.requests(CANCEL)


def test_p84_refusals_leave_nothing_behind(tmp_path):
    """Venues, then the file, then the instrument in the broker's masters."""
    with Real(tmp_path) as one:
        one.start()
        refused = one.begin()
        assert (refused["event"], refused["code"]) == ("Error", "venue_not_ready"), refused
        assert refused["message"].startswith("web_broker: "), refused
        one.login()
        refused = one.begin()
        assert refused["message"].startswith("local_broker: "), refused
        one.boards()
        refused = one.begin(strategy_file="nowhere.wasm")
        assert refused["code"] == "strategy_load_failed", refused
        refused = one.begin(instrument="9999.TSE")
        assert refused["code"] == "validation_error" and refused["message"].startswith("INSTRUMENT_ID: "), refused
        refused = one.begin(initial_cash="1000000")
        assert refused["message"].startswith("INITIAL_CASH: "), refused
        runs = one.engine.cache / "runs"
        assert not runs.is_dir() or not list(runs.iterdir())
        assert not one.requests(NEW) and one.session()["state"] == "Idle"


def test_p98_p104_p124_an_answer_that_is_lost(one):
    """The order works for the strategy until a list shows it; it is never sent again."""
    one.begin()
    since = one.mark()
    one.fault("drop-answer", request=NEW, times=1)
    one.trade(BUY)
    one.until_seen(NEW)
    one.wait("OrderAccepted", since)
    one.trade(NOTHING)
    one.filled("BUY", since)
    assert len(one.requests(NEW)) == 1
    assert one.positions() == {(ID, "7203.TSE"): 100}
    one.stop()


def test_p126_another_instrument_and_another_id(tmp_path):
    """A position in an instrument that is not in the run refuses the start; another id holds nothing."""
    with Real(tmp_path, simulator=("--instrument", "7203=2850", "--instrument", "6758=3000")) as one:
        one.ready()
        one.boards()
        of_another_instrument(one)


def of_another_instrument(one):
    one.begin()
    since = one.mark()
    one.bought()
    one.stop()
    refused = one.begin(instrument="6758.TSE")
    assert refused["message"] == "INSTRUMENT_IDS: holds 100 of 7203.TSE", refused
    started = one.begin(strategy_id="other")
    assert started["event"] == "EngineStarted", started
    since = one.mark()
    one.trade(SELL)
    assert one.wait("OrderRejected", since)["reason_text"].startswith("POSITION: ")
    one.stop("other")
    assert one.positions() == {(ID, "7203.TSE"): 100}
