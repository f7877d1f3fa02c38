"""Orders that people send into a replay: what is refused, rounded, kept apart from the strategy's, and ended."""

import datetime
from decimal import Decimal

from engine_process import EXECUTION, JAPAN
from sessions import RICH, check_money, check_run, filled, last_trade_price, order, orders, submit

DAY_NANOS = 86_400 * 10**9


def at(date, clock):
    """Nanoseconds since 1970 UTC of a time in Japan."""
    return int(datetime.datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=JAPAN).timestamp()) * 10**9


def test_what_cannot_be_is_refused_before_it_is_told(client, market):
    """Pin P72."""
    market.load(client, 1, 2)
    market.run(client, last=2, multiplier=20)
    price = last_trade_price(client)
    low = str(int(price * Decimal("0.98")))
    soon = at(market.days[2], "15:00:00")
    for wrong, code, text in [
        (order("lot", quantity="150"), "VALIDATION_ERROR", "QUANTITY: "),
        (order("zero", quantity="0"), "VALIDATION_ERROR", "QUANTITY: "),
        (order("zeros", quantity="0100"), "VALIDATION_ERROR", "QUANTITY: "),
        (order("plus", quantity="+100"), "VALIDATION_ERROR", "QUANTITY: "),
        (order("issue", instrument_id="9984.TSE"), "VALIDATION_ERROR", "INSTRUMENT_ID: "),
        (order("market", instrument_id="7203.OSE"), "VALIDATION_ERROR", "INSTRUMENT_ID: "),
        (order(" "), "VALIDATION_ERROR", "CLIENT_ORDER_ID: "),
        (order(""), "VALIDATION_ERROR", "CLIENT_ORDER_ID: "),
        (order("x" * 37), "VALIDATION_ERROR", "CLIENT_ORDER_ID: "),
        (order("tab\t"), "VALIDATION_ERROR", "CLIENT_ORDER_ID: "),
        (order("bare", order_type="LIMIT"), "VALIDATION_ERROR", "PRICE: "),
        (order("priced", order_type="MARKET", price="100"), "VALIDATION_ERROR", "PRICE: "),
        (order("word", price="high"), "VALIDATION_ERROR", "PRICE: "),
        (order("zeros", price="0" + low), "VALIDATION_ERROR", "PRICE: "),
        (order("plus", price="+5"), "VALIDATION_ERROR", "PRICE: "),
        (order("point", price=".5"), "VALIDATION_ERROR", "PRICE: "),
        (order("triggered", price=low, trigger_price=low), "VALIDATION_ERROR", "TRIGGER_PRICE: "),
        (order("bid", order_type="STOP_MARKET", trigger_price=low, trigger_type="BID"),
         "VENUE_UNSUPPORTED", "TRIGGER_TYPE: "),
        (order("stop", order_type="STOP_MARKET"), "VALIDATION_ERROR", "TRIGGER_PRICE: "),
        (order("day", price=low, expire_time_ns=soon), "VALIDATION_ERROR", "EXPIRE_TIME_NS: "),
        (order("gtd", price=low, time_in_force="GTD"), "VALIDATION_ERROR", "EXPIRE_TIME_NS: "),
        (order("past", price=low, time_in_force="GTD", expire_time_ns=at(market.days[0], "15:00:00")),
         "VALIDATION_ERROR", "EXPIRE_TIME_NS: "),
        (order("far", price=low, time_in_force="GTD", expire_time_ns=soon + 30 * DAY_NANOS),
         "VALIDATION_ERROR", "EXPIRE_TIME_NS: "),
        (order("tag", tags=["no"]), "VALIDATION_ERROR", "TAGS: "),
        (order("touched", order_type="MARKET_IF_TOUCHED", trigger_price=low), "VENUE_UNSUPPORTED", ""),
        (order("gtc", time_in_force="GTC"), "VENUE_UNSUPPORTED", ""),
        (order("ioc", price=low, time_in_force="IOC"), "VENUE_UNSUPPORTED", ""),
        (order("post", price=low, post_only=True), "VENUE_UNSUPPORTED", ""),
        (order("reduce", price=low, reduce_only=True), "VENUE_UNSUPPORTED", ""),
        (order("two", tags=["account_type=general", "account_type=specific"]), "VENUE_UNSUPPORTED", "CONFLICTING_TAGS"),
        (order("margin", tags=["cash_margin=margin_credit_new"]), "VENUE_UNSUPPORTED", "MARGIN: "),
        (order("lots", tags=["tategyoku=1"]), "VENUE_UNSUPPORTED", "MARGIN: "),
        (order("limit", price=str(int(price * 3))), "VENUE_REJECTED", "PRICE_LIMIT"),
        (order("short", side="SELL"), "VENUE_REJECTED", "SHORT_SALE"),
        (order("rich", quantity="1000000"), "INSUFFICIENT_FUNDS", ""),
    ]:
        seen = len(client.events)
        refused = client.refusal("SubmitOrder", venue="replay", order=wrong)
        told = (wrong["client_order_id"], refused)
        assert refused["event"] == "OrderRejected" and refused["reason_code"] == code, told
        text_told = refused["reason_text"]
        assert text_told.startswith(text) and len(text_told) <= 512 and "\n" not in text_told, told
        assert refused["client_order_id"] == wrong["client_order_id"], told
        assert (refused["venue"], refused["origin"], refused["order_side"]) == (
            "replay", "person", wrong["order_side"]), told
        assert refused.get("instrument_id") == ("7203.TSE" if wrong["instrument_id"] == "7203.TSE" else None), told
        ids = [event.get("request_id") for event in client.since(seen, "OrderSubmitted")]
        assert refused["request_id"] not in ids, "it was told as submitted"
    assert orders(client) == []
    for op, fields, code in [
        ("CancelOrder", {"client_order_id": "nobody"}, "ORDER_STATUS_UNKNOWN"),
        ("ModifyOrder", {"client_order_id": "nobody", "change": {"new_quantity": "200"}}, "ORDER_STATUS_UNKNOWN"),
        ("ModifyOrder", {"client_order_id": "nobody", "change": {}}, "VALIDATION_ERROR"),
        ("CancelOrder", {}, "VALIDATION_ERROR"),
    ]:
        refused = client.refusal(op, venue="replay", **fields)
        assert (refused["event"], refused["reason_code"]) == ("OrderRejected", code), refused
    # An id whose order was refused is free. A tag that is given twice counts once.
    answer = submit(client, order("lot", price=low, tags=["account_type=specific", "account_type=specific", "x=y"]))
    assert answer["warning_code"] == "unknown_tag" and "`x=y`" in answer["warning_text"], answer
    refused = client.refusal("SubmitOrder", venue="replay", order=order("lot", quantity="150"))
    assert refused["reason_code"] == "VALIDATION_ERROR"
    row, = orders(client)
    assert (row["status"], row["quantity"]) == ("ACCEPTED", "100"), "the refusal left the order alone"
    # What is refused of an order that is there says what it is about.
    refused = client.refusal("ModifyOrder", venue="replay", client_order_id="lot", change={"new_price": "+5"})
    assert (refused["instrument_id"], refused["order_side"]) == ("7203.TSE", "BUY"), refused


def test_prices_are_rounded_away_from_the_market(client, market):
    """Pin P72."""
    market.load(client)
    market.run(client, multiplier=20, execution={**EXECUTION, "ticks": "5"})
    price = last_trade_price(client)
    base = int(price) // 5 * 5
    submit(client, order("held"))
    filled(client, "held")
    low, high = base - 50, base + 50
    stop = {"order_type": "STOP_MARKET", "trigger_type": "LAST"}
    for wanted, field, rounded in [
        (order("buy", price=f"{low + 3}.7"), "price", low),
        (order("sell", "SELL", price=f"{high + 1}"), "price", high + 5),
        (order("buy stop", **stop, trigger_price=str(high + 1)), "trigger_price", high + 5),
    ]:
        submit(client, wanted)
        row, = [row for row in orders(client) if row["client_order_id"] == wanted["client_order_id"]]
        assert (row[field], row["status"]) == (str(rounded), "ACCEPTED")
    # The same order in the same words is the same; in other words, though they mean the same, it is another.
    again = client.ask("SubmitOrder", "SubmitOrderResult", venue="replay", order=order("buy", price=f"{low + 3}.7"))
    assert again["outcome"] == "IdempotentReplay"
    other = client.refusal("SubmitOrder", venue="replay", order=order("buy", price=f"{low + 3}.70"))
    assert (other["event"], other["code"]) == ("Error", "conflict")
    changed = client.ask("ModifyOrder", "OrderUpdated", venue="replay", client_order_id="buy",
                         change={"new_price": str(low + 4)})
    assert changed["price"] == str(low)


def test_orders_end_with_their_day_and_with_the_data(client, market):
    """Pin P67."""
    trades = market.trades("7203.TSE", market.days[1:3])
    market.load(client, 1, 2)
    market.run(client, last=2, multiplier=20)
    low = str(int(last_trade_price(client) * Decimal("0.9")))
    submit(client, order("day", price=low))
    # Two days after the data ends, a business day.
    later = at(market.days[2], "15:00:00") + 2 * DAY_NANOS
    submit(client, order("gtd", price=low, time_in_force="GTD", expire_time_ns=later))
    client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
    end = client.wait("EngineStopped")
    expired = {event["client_order_id"]: event for event in client.since(0, "OrderExpired")}
    assert list(expired) == ["day", "gtd"]
    close, next_open = at(market.days[1], "15:30:00"), at(market.days[2], "09:00:00")
    assert close // 10**6 <= expired["day"]["ts_event_ms"] < next_open // 10**6
    assert expired["gtd"]["ts_event_ms"] >= trades[-1][2] // 10**6
    assert end["status"] == "completed"
    assert {row["client_order_id"]: row["status"] for row in client.ask("GetSession", "Session")["orders"]} == {
        "day": "EXPIRED", "gtd": "EXPIRED"}


def test_a_stop_is_filled_after_its_trigger(client, market):
    market.load(client)
    market.run(client, multiplier=200)
    price = last_trade_price(client)
    trigger = max(Decimal(trade[0]) for trade in market.trades("7203.TSE", market.days[1:2])[300:-10])
    assert trigger > price, "other sample data is needed"
    wanted = order("stop", order_type="STOP_MARKET", trigger_type="LAST", trigger_price=str(trigger))
    since = len(client.events)
    submit(client, wanted)
    client.send("SetReplaySpeed", multiplier="max")
    client.wait("EngineStopped")
    fill, = client.since(0, "OrderFilled")
    rows = [row for event in client.since(since, "Trades") for row in event["trades"]]
    reached = [row["ts_ns"] for row in rows if Decimal(row["price"]) >= Decimal(wanted["trigger_price"])]
    assert fill["ts_event_ns"] > reached[0], "a trade after the one that triggered it"
    assert (fill["last_price"], fill["ts_event_ns"]) in [(row["price"], row["ts_ns"]) for row in rows]


def test_people_and_the_strategy_keep_their_orders_apart(client, market):
    """Pin P71."""
    market.load(client)
    market.run(client, "trades-at-random", multiplier=100, initial_cash=RICH,
               strategy_init_kwargs={"seed": 5, "every": 3})
    theirs = client.wait("OrderAccepted", origin="strategy")
    name = theirs["client_order_id"]
    for op, fields in (("CancelOrder", {}), ("ModifyOrder", {"change": {"new_quantity": "200"}})):
        refused = client.refusal(op, venue="replay", client_order_id=name, **fields)
        assert (refused["event"], refused["reason_code"]) == ("OrderRejected", "ORDER_STATUS_UNKNOWN"), refused
        refused = client.refusal(op, venue="replay", venue_order_id=theirs["venue_order_id"], **fields)
        assert (refused["event"], refused["reason_code"]) == ("OrderRejected", "VALIDATION_ERROR"), refused
        assert refused["reason_text"].startswith("VENUE_ORDER_ID: "), refused
    # The same id is another order when a person has it.
    low = str(int(last_trade_price(client) * Decimal("0.9")))
    mine = submit(client, order(name, price=low))
    assert mine["venue_order_id"] != theirs["venue_order_id"]
    submit(client, order("mine too", price=low))
    since = len(client.events)
    answer = client.ask("CancelAllOrders", "CancelAllResult", venue="replay")
    assert (answer["canceled_count"], answer["failed_count"]) == (2, 0)
    cancelled = [event for event in client.since(since, "OrderCanceled")
                 if event.get("request_id") == answer["request_id"]]
    assert [event["client_order_id"] for event in cancelled] == [name, "mine too"]
    assert {event["origin"] for event in cancelled} == {"person"}
    rows = orders(client)
    assert len({row["venue_order_id"] for row in rows}) == len(rows)
    assert {row["origin"] for row in rows} == {"person", "strategy"}
    client.wait("OrderFilled", where=lambda _: len(client.since(0, "OrderFilled")) >= 20)
    client.ask("StopEngine", "ReplayStopped", strategy_id="one")
    client.wait("EngineStopped")
    check_money(check_run(client.events), RICH)
