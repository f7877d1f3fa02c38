"""Orders of a person through the Python package."""

import concurrent.futures
import datetime
from decimal import Decimal

import kumiki
import pytest
from engine_process import CASH, EXECUTION, NEEDS_PANDAS, component


@pytest.fixture
def trading(session, market):
    """A session with a run in which the strategy does nothing, and the price of the first trade."""
    one = session()
    one.subscribe("7203")
    one.load("7203.TSE", market.days[1], market.days[2])
    with one.events("Trades", timeout=60) as trades:
        one.run(strategy_file=component("empty"), multiplier=20, initial_cash=CASH, execution=EXECUTION, wait=False)
        return one, next(trades).trades[-1]["price"]


def order(**more):
    return {"instrument_id": "7203.TSE", "side": "BUY", "quantity": 100, **more}


def test_an_order_is_sent_changed_and_cancelled(trading):
    one, price = trading
    low = price * Decimal("0.95") // 10 * 10
    sent = one.submit_order(**order(order_type="LIMIT", price=low, client_order_id="mine"))
    assert (sent.outcome, sent.status, sent.client_order_id) == ("Created", "ACCEPTED", "mine")
    listed, = one.order_list()
    assert (listed.venue_order_id, listed.price, listed.leaves_qty, listed.origin, listed.status) == (
        sent.venue_order_id, low, 100, "person", "ACCEPTED")
    changed = one.modify_order(client_order_id="mine", new_quantity=300, new_price=str(low - 10))
    assert (changed.quantity, changed.price, changed.venue_order_id) == (300, low - 10, sent.venue_order_id)
    done = one.cancel_order(venue_order_id=sent.venue_order_id)
    assert (done.client_order_id, done.venue_order_id) == ("mine", sent.venue_order_id)
    assert [row.status for row in one.order_list()] == ["CANCELED"]
    assert one.order_list(status="FILLED") == [] == one.order_list(instrument_id="9984.TSE")
    today = kumiki.to_datetime(listed.ts_event_ns).date()
    assert len(one.order_list(date=today)) == 1 and one.order_list(date=today - datetime.timedelta(days=9)) == []


@NEEDS_PANDAS
def test_a_fill_changes_the_account(trading):
    one, _ = trading
    assert one.buying_power().cash == CASH and one.positions() == []
    with one.events("OrderFilled", "ReplayBuyingPower", timeout=60) as events:
        sent = one.submit_order(**order())
        fill = next(event for event in events if event.name == "OrderFilled")
        next(event for event in events if event.name == "ReplayBuyingPower")
    assert (fill.client_order_id, fill.last_qty, fill.leaves_qty) == (sent.client_order_id, 100, 0)
    assert len(sent.client_order_id) == 36 and fill.time.tzinfo is kumiki.JST
    cost = 100 * fill.last_price
    assert one.portfolio.cash == one.buying_power().cash == CASH - cost
    held, = one.positions()
    assert (held.instrument_id, held.qty, held.avg_open_price) == ("7203.TSE", 100, fill.last_price)
    assert held.market_value - cost == held.unrealized_pnl
    result = one.stop()
    assert result.fills()["origin"].tolist() == ["person"]


def test_an_order_that_is_refused_raises(trading, frames):
    one, price = trading
    for name, wrong, code, text in (
        ("lot", order(quantity=150), "VALIDATION_ERROR", "QUANTITY: "),
        ("limit", order(order_type="LIMIT", price=price * 3), "VENUE_REJECTED", "PRICE_LIMIT"),
        ("short", order(side="SELL"), "VENUE_REJECTED", "SHORT_SALE"),
        ("rich", order(quantity=1_000_000), "INSUFFICIENT_FUNDS", ""),
        ("gtc", order(time_in_force="GTC"), "VENUE_UNSUPPORTED", ""),
    ):
        with pytest.raises(kumiki.OrderRejectedError) as refused:
            one.submit_order(client_order_id=name, **wrong)
        error = refused.value
        assert (error.reason_code, error.code, error.client_order_id) == (code, code, name), error
        assert error.reason_text.startswith(text) and str(error) == f"{code}: {error.reason_text}"
    for late in (one.cancel_order, lambda **which: one.modify_order(new_quantity=200, **which)):
        with pytest.raises(kumiki.OrderRejectedError) as refused:
            late(client_order_id="nobody")
        assert refused.value.reason_code == "ORDER_STATUS_UNKNOWN"
        with pytest.raises(ValueError, match="client_order_id"):
            late()
    with pytest.raises(kumiki.OrderRejectedError, match="BUY"):
        one.submit_order(**order(side="buy"))
    assert frames.take_wrong() == ["SubmitOrder"]
    with pytest.raises(kumiki.ValidationError, match="^price: 2500.5 .float. was given; give an exact amount"):
        one.submit_order(**order(order_type="LIMIT", price=2500.5))
    assert one.order_list() == [] and one.status == "running"


def test_the_same_order_is_sent_once(trading):
    one, price = trading
    low = price * Decimal("0.95") // 10 * 10
    first = one.submit_order(**order(order_type="LIMIT", price=low, client_order_id="a"))
    again = one.submit_order(**order(order_type="LIMIT", price=str(low) + ".00", client_order_id="a"))
    assert (again.outcome, again.venue_order_id) == ("IdempotentReplay", first.venue_order_id)
    with pytest.raises(kumiki.ConflictError) as other:
        one.submit_order(**order(order_type="LIMIT", price=low - 10, client_order_id="a"))
    assert (other.value.venue_order_id, other.value.code) == (first.venue_order_id, "conflict")
    assert len(one.order_list()) == 1


def test_many_orders_are_cancelled_at_once(trading, market):
    one, price = trading
    low = price * Decimal("0.95") // 10 * 10
    end = datetime.datetime.fromisoformat(f"{market.days[2]}T15:00:00").replace(tzinfo=kumiki.JST)
    for number in range(3):
        one.submit_order(**order(order_type="LIMIT", price=low, client_order_id=f"a{number}"))
    lasting = one.submit_order(**order(order_type="LIMIT", price=low, time_in_force="GTD", expire_time=end))
    assert one.order_list()[-1].expire_time_ns == kumiki.to_ns(end), lasting
    assert one.cancel_all(side="SELL") == kumiki.CancelAllResult(0, 0)
    assert one.cancel_all(instrument_id="7203.TSE") == kumiki.CancelAllResult(4, 0)
    assert {row.status for row in one.order_list()} == {"CANCELED"}


@NEEDS_PANDAS
def test_events_may_answer_with_orders(session, market):
    """As a strategy of a person's own: it buys at the first trade and sells what it has bought."""
    one = session()
    one.subscribe("7203")
    one.load("7203.TSE", market.days[1], market.days[1])
    sent = []

    def trade(event):
        if event.name == "Trades" and not sent:
            sent.append(one.submit_order(**order()).client_order_id)
        elif event.name == "PositionOpened":
            sent.append(one.submit_order(**order(side="SELL")).client_order_id)
            one.set_speed("max")

    result = one.run(
        strategy_file=component("empty"), multiplier=20, initial_cash=CASH, execution=EXECUTION, on_event=trade,
    )
    assert result.fills()["client_order_id"].tolist() == sent and len(sent) == 2
    assert result.status == "completed"


def test_a_cancel_that_is_too_late_is_answered(session, market):
    """Orders take long to arrive here, so that the exchange has filled what is to be cancelled."""
    one = session(timeout=30)
    one.subscribe("7203")
    one.load("7203.TSE", market.days[1], market.days[1])
    slow = {**EXECUTION, "latency_ns": 60_000_000_000}
    with one.events("OrderAccepted", "OrderFilled", timeout=60) as events:
        one.run(strategy_file=component("empty"), multiplier=100, initial_cash=CASH, execution=slow, wait=False)
        name = "late"
        one.set_speed(2000)
        one.submit_order(**order(client_order_id=name))
        with pytest.raises(kumiki.OrderRejectedError) as refused:
            # It meets the first trade after it has arrived.
            one.cancel_order(client_order_id=name)
        assert refused.value.reason_code == "VENUE_REJECTED", refused.value
        assert {event.client_order_id for event in (next(events), next(events))} == {name}


def test_an_order_that_ends_on_its_way_is_told_at_once(session, market):
    one = session()
    one.load("7203.TSE", market.days[1], market.days[2])
    late = {**EXECUTION, "latency_ns": 17 * 3600 * 10**9}
    run = one.run(strategy_file=component("empty"), multiplier=20, initial_cash=CASH, execution=late, wait=False)
    with one.events("OrderSubmitted", timeout=60) as sent, concurrent.futures.ThreadPoolExecutor(1) as other:
        answer = other.submit(one.submit_order, **order(client_order_id="late"))
        next(sent)
        one.set_speed("max")
        with pytest.raises(kumiki.OrderRejectedError, match="EXPIRED: the order ended on its way") as told:
            answer.result(60)
    assert told.value.client_order_id == "late"
    assert run.result(60).status == "completed"
