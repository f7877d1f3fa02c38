"""Orders for the auctions, the closing of margin positions, and what each phase takes, from a client through an engine
to a simulated broker and back, in both dialects. What the broker holds afterwards is its own word, `/control`."""

from decimal import Decimal

import pytest

pytest.register_assert_rewrite("live_world")
from live_world import CANCEL, CORRECT, LIST, NEW, SPEC, VENDOR, days_ahead  # noqa: E402

FORMS = [SPEC, VENDOR]
MARKET = {"order_type": "MARKET", "price": None}
STOP = {"order_type": "STOP_MARKET", "price": None, "trigger_price": "2900"}
FUNARI = {"time_in_force": "AT_THE_CLOSE", "tags": ["close_strategy=funari"]}
#: What guards ask for.
GUARDS = ("CLMZanKaiKanougaku", "CLMZanShinkiKanoIjiritu", "CLMZanUriKanousuu", "CLMShinyouTategyokuList")


@pytest.fixture(params=FORMS)
def ready(world, request):
    """Logged in, with room for all of these orders."""
    one = world(form=request.param, broker=("--holding", "7261=1000", "--cash", "100000000", "--margin", "100000000"))
    one.ready()
    return one


def refused(event, code, tag):
    assert event["event"] == "OrderRejected", event
    assert event["reason_code"] == code and event["reason_text"].startswith(f"{tag}: "), event
    return event


def at_broker(one, number):
    """An order as the broker holds it."""
    order, = (order for order in one.broker.orders() if order["number"] == number)
    return order


def row_of(one, number):
    row, = (row for row in one.orders() if row["venue_order_id"] == number)
    return row


def newest(one):
    """The fields of the newest order that the broker has seen."""
    return one.requests(NEW)[-1]["fields"]


# --- Auctions.


def test_orders_for_the_auctions(ready):
    """Funari is a limit order up to the close, and a market order there: what a limit at the close does not get, it
    does. Changes leave it what it is."""
    one = ready
    funari = one.placed("funari", price="2700", **FUNARI)
    close = one.placed("close", price="2700", time_in_force="AT_THE_CLOSE")
    begin = one.placed("open", **MARKET, time_in_force="AT_THE_OPEN")
    sale = one.placed("sale", **{**FUNARI, "instrument_id": "7261.TSE", "order_side": "SELL", "price": "1100"})
    assert {number: at_broker(one, number)["content"]["condition"] for number in (funari, close, begin, sale)} == {
        funari: "6", close: "4", begin: "2", sale: "6"}
    assert {number: row_of(one, number)["time_in_force"] for number in (funari, close, begin)} == {
        funari: "AT_THE_CLOSE", close: "AT_THE_CLOSE", begin: "AT_THE_OPEN"}
    changed = one.modify("funari", new_price="2710", new_quantity="100")
    assert (changed["event"], changed["price"]) == ("OrderUpdated", "2710"), changed
    refused(one.modify("funari", new_expire_time_ns=days_ahead(one, 1)[0]), "VALIDATION_ERROR", "NEW_EXPIRE_TIME_NS")
    content = at_broker(one, funari)["content"]
    assert (content["condition"], content["price"], content["side"]) == ("6", "2710", "3")
    # An answer that is lost: the list knows the order again by what it is for.
    one.fault("drop-answer", request=NEW, times=1)
    since = len(one.client.events)
    assert one.submit("lost", price="2705", **FUNARI)["event"] == "Error"
    lost = one.known("lost", since)
    assert lost["event"] == "OrderAccepted" and at_broker(one, lost["venue_order_id"])["content"]["condition"] == "6"
    assert one.cancel("lost")["event"] == "OrderCanceled"
    # The morning's close, above all limits; the afternoon's open.
    one.broker.control(*({"do": "trade", "issue": issue, "price": price, "quantity": 1000, "time": time}
                         for issue, price, time in (("7203", "2855", "11:30:00"), ("7261", "985", "11:30:00.5"),
                                                    ("7203", "2860", "12:30:00"))))
    told = {name: one.client.wait("OrderFilled", client_order_id=name) for name in ("funari", "open", "sale")}
    assert {name: (fill["last_price"], fill["leaves_qty"]) for name, fill in told.items()} == {
        "funari": ("2855", "0"), "open": ("2860", "0"), "sale": ("985", "0")}
    assert one.client.wait("OrderExpired", client_order_id="close")["venue_order_id"] == close
    assert {number: (order["filled"], order["status"]) for number in (funari, begin, sale, close)
            for order in [at_broker(one, number)]} == {
        funari: (100, "10"), begin: (100, "10"), sale: (100, "10"), close: (0, "12")}
    held = {held["issue"]: held["quantity"] for held in one.broker.view()["holdings"]}
    assert held == {"7203": 200, "7261": 900}
    assert {row["client_order_id"]: row["status"] for row in one.orders()} == {
        "funari": "FILLED", "close": "EXPIRED", "open": "FILLED", "sale": "FILLED", "lost": "CANCELED"}
    one.check()


def test_what_goes_with_no_auction(ready):
    """Pin P37: refused before anything is sent, or by the broker."""
    one = ready
    for name, order, tag in (("market", {**MARKET, **FUNARI}, "FUNARI_WITH_MARKET"),
                             ("stop", {**STOP, "time_in_force": "AT_THE_CLOSE"}, "CONDITION_WITH_STOP")):
        told = one.submit(name, **order)
        if one.form == VENDOR:
            refused(told, "VENUE_UNSUPPORTED", tag)
            assert one.requests(NEW) == []
        else:
            assert (told["event"], told["reason_code"]) == ("OrderRejected", "VENUE_REJECTED"), told
    refused(one.submit("day", tags=["close_strategy=funari"]), "VENUE_UNSUPPORTED", "CONFLICTING_TAGS")
    assert one.broker.orders() == []
    one.check()


# --- Margin positions.


def opened(one, name, quantity, side="BUY", issue="7203", price="2850", kind="credit"):
    """Opens a margin position, and gives its number."""
    before = {position["number"] for position in one.broker.view()["positions"]}
    one.placed(name, instrument_id=f"{issue}.TSE", quantity=str(quantity), order_side=side, price=price,
               tags=[f"cash_margin=margin_{kind}_new"])
    one.broker.trade(price, quantity, issue)
    one.client.wait("OrderFilled", client_order_id=name, leaves_qty="0")
    position, = (position for position in one.broker.view()["positions"] if position["number"] not in before)
    assert (position["side"], position["open"]) == ("3" if side == "BUY" else "1", quantity)
    return position["number"]


def open_shares(one):
    """Open shares of the broker's positions, by their numbers."""
    return {position["number"]: position["open"] for position in one.broker.view()["positions"]}


def closing(one, name, quantity, *positions, side="SELL", kind="credit", action=None, **other):
    tags = [f"cash_margin=margin_{kind}_repay", *(f"tategyoku={number}" for number in positions)]
    tags += [f"close_action={action}"] if action else []
    return one.submit(name, order_side=side, quantity=str(quantity), tags=tags, **other)


def closed(one, name, price, quantity):
    """A trade that fills what closes a position."""
    one.broker.trade(price, quantity)
    fill = one.client.wait("OrderFilled", client_order_id=name, leaves_qty="0")
    assert (fill["last_price"], fill["last_qty"]) == (price, str(quantity))


def test_positions_are_closed_by_their_numbers(ready):
    """Pin P39: one takes the order's quantity; several are filled in ascending number, whatever their order is."""
    one = ready
    first, second, third = (opened(one, f"open{quantity}", quantity) for quantity in (100, 200, 300))
    cash = Decimal(one.broker.view()["cash"])
    assert closing(one, "one", 100, second, price="2860")["event"] == "SubmitOrderResult"
    assert [(row["sTategyokuNumber"], row["sOrderSuryou"]) for row in newest(one)["aCLMKabuHensaiData"]] == [
        (second, "100")]
    # What an order closes already is not open to another one, until it ends.
    refused(closing(one, "more", 200, second, price="2860"), "INSUFFICIENT_FUNDS", "TATEGYOKU")
    assert one.cancel("one")["event"] == "OrderCanceled"
    assert open_shares(one) == {first: 100, second: 200, third: 300}
    assert closing(one, "again", 100, second, price="2860")["event"] == "SubmitOrderResult"
    closed(one, "again", "2860", 100)
    assert open_shares(one) == {first: 100, second: 100, third: 300}
    assert closing(one, "several", 300, third, first, second, price="2870")["event"] == "SubmitOrderResult"
    asked = newest(one)
    assert (asked["sGenkinShinyouKubun"], asked["sBaibaiKubun"], asked["sTatebiType"]) == ("4", "1", "1")
    assert [(row["sTatebiZyuni"], row["sTategyokuNumber"], row["sOrderSuryou"])
            for row in asked["aCLMKabuHensaiData"]] == [("1", first, "100"), ("2", second, "100"), ("3", third, "100")]
    closed(one, "several", "2870", 300)
    assert open_shares(one) == {first: 0, second: 0, third: 200}
    view = one.broker.view()
    assert Decimal(view["cash"]) == cash + 100 * 10 + 300 * 20 and [held["issue"] for held in view["holdings"]] == [
        "7261"]
    sent = len(one.requests(NEW))
    refused(closing(one, "gone", 100, first, price="2870"), "INSUFFICIENT_FUNDS", "TATEGYOKU")
    refused(closing(one, "much", 300, third, price="2870"), "INSUFFICIENT_FUNDS", "TATEGYOKU")
    assert len(one.requests(NEW)) == sent, "a guard sends nothing"
    told = closing(one, "any", 200, price="2870")
    if one.form == VENDOR:
        refused(told, "VENUE_UNSUPPORTED", "TATEGYOKU_REQUIRED")
        assert len(one.requests(NEW)) == sent
    else:
        assert (told["event"], newest(one)["sTatebiType"]) == ("SubmitOrderResult", "*")
        closed(one, "any", "2870", 200)
        assert open_shares(one) == {first: 0, second: 0, third: 0}
    one.check()


def test_positions_are_closed_with_shares_and_with_cash(ready):
    """`close_action`: shares are taken for cash (7), or given (5), whatever side the order names."""
    one = ready
    bought, later = opened(one, "buy", 200), opened(one, "later", 100)
    general = opened(one, "general", 100, side="SELL", issue="7261", price="980", kind="general")
    before = one.broker.view()
    settle = {**MARKET, "action": "physical_settle_buy"}
    conflict = {"price": "2850", "action": "physical_settle_buy"}
    refused(closing(one, "limit", 100, bought, **conflict), "VENUE_UNSUPPORTED", "CONFLICTING_TAGS")
    refused(closing(one, "none", 100, **settle), "VENUE_UNSUPPORTED", "CONFLICTING_TAGS")
    refused(closing(one, "close", 100, bought, **settle, time_in_force="AT_THE_CLOSE"), "VENUE_UNSUPPORTED",
            "CONFLICTING_TAGS")
    taken = closing(one, "take", 100, bought, side="BUY", **settle)
    assert taken["event"] == "SubmitOrderResult", taken
    assert (newest(one)["sBaibaiKubun"], newest(one)["sGenkinShinyouKubun"]) == ("7", "4")
    one.client.wait("OrderFilled", client_order_id="take", leaves_qty="0")
    assert closing(one, "both", 200, later, bought, **settle)["event"] == "SubmitOrderResult"
    one.client.wait("OrderFilled", client_order_id="both", leaves_qty="0")
    given = closing(one, "give", 100, general, side="BUY", kind="general", instrument_id="7261.TSE", **MARKET,
                    action="physical_settle_sell")
    assert given["event"] == "SubmitOrderResult", given
    assert (newest(one)["sBaibaiKubun"], newest(one)["sGenkinShinyouKubun"]) == ("5", "8")
    one.client.wait("OrderFilled", client_order_id="give", leaves_qty="0")
    view = one.broker.view()
    assert open_shares(one) == {bought: 0, later: 0, general: 0}
    assert {held["issue"]: held["quantity"] for held in view["holdings"]} == {"7203": 300, "7261": 900}
    assert Decimal(view["cash"]) == Decimal(before["cash"]) - 300 * 2850 + 100 * 980
    sides = [order["content"]["side"] for order in view["orders"] if order["content"]["side"] in "57"]
    assert sides == ["7", "7", "5"], "each was sent once"
    assert {row["client_order_id"]: row["status"] for row in one.orders()}["both"] == "FILLED"
    one.check()


# --- Phases.

#: Kinds of orders, and the first phase that takes them (pin P34).
KINDS = {
    "market": (0, MARKET),
    "limit": (1, {}),
    "sale": (1, {"order_side": "SELL", "instrument_id": "7261.TSE", "price": "1100"}),
    "account": (1, {"tags": ["account_type=specific"]}),
    "cash": (1, {"tags": ["cash_margin=cash"]}),
    "trigger-type": (2, {"trigger_type": "LAST"}),
    "margin": (3, {"tags": ["cash_margin=margin_credit_new"]}),
    "repay": (3, {"order_side": "SELL", "tags": ["cash_margin=margin_credit_repay", "tategyoku=1"]}),
    "settle": (3, {**MARKET, "tags": ["cash_margin=margin_credit_repay", "tategyoku=1",
                                      "close_action=physical_settle_buy"]}),
    "stop": (3, STOP),
    "stop-limit": (3, {**STOP, "order_type": "STOP_LIMIT", "price": "2910"}),
    "dated": (3, {"time_in_force": "GTD"}),
    "open": (3, {"time_in_force": "AT_THE_OPEN"}),
    "close": (3, {"time_in_force": "AT_THE_CLOSE"}),
    "funari": (3, FUNARI),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_phase_takes_its_kinds(world, form):
    """One engine after the other, each with a phase of its own, at one broker."""
    one = world(form=form, broker=("--holding", "7261=1000", "--cash", "100000000", "--margin", "100000000"))
    arguments, expires = one.arguments, days_ahead(one, 1)[0]
    count = 0
    for phase in range(4):
        one.arguments = (*arguments, "--web-broker", f"order_phase=O{phase}")
        one.ready()
        asked = sum(len(one.requests(kind)) for kind in GUARDS)
        for kind, (first, order) in KINDS.items():
            name = f"O{phase}-{kind}"
            order = {"price": "2700", **order, **({"expire_time_ns": expires} if kind == "dated" else {})}
            told = one.submit(name, **order)
            if phase < first:
                code = "UNSUPPORTED_IN_PHASE_O0" if phase == 0 else "VENUE_UNSUPPORTED"
                refused(told, code, "PHASE")
            elif kind in ("repay", "settle"):
                # Its position is not there.
                refused(told, "INSUFFICIENT_FUNDS", "TATEGYOKU")
            else:
                assert told["event"] == "SubmitOrderResult", told
                count += 1
        assert len(one.broker.orders()) == count, "what is refused is not sent"
        assert (sum(len(one.requests(kind)) for kind in GUARDS) > asked) == (phase == 3)
        check_changes(one, phase)
        count += check_fills(one, phase)
        one.kill_engine()
    statuses = [order["status"] for order in one.broker.orders()]
    assert (statuses.count("10"), statuses.count("7")) == (3, count - 3), "the rest was cancelled"
    one.check()


def check_fills(one, phase):
    """Fills are told from O2 on; before, the list has them. Tells how many orders were placed."""
    if phase == 0:
        return 0
    name = f"O{phase}-filled"
    number = one.placed(name, price="2860")
    one.broker.trade("2855", 100)
    assert at_broker(one, number)["filled"] == 100
    if phase >= 2:
        one.client.wait("OrderFilled", client_order_id=name, leaves_qty="0")
    assert row_of(one, number)["status"] == "FILLED"
    # What no engine told before is told, and nothing twice (pin P130).
    told = {event["client_order_id"] for event in one.client.events if event["event"] == "OrderFilled"}
    assert told == {2: {"O1-filled", "O2-filled"}, 3: {"O3-filled"}}.get(phase, set())
    return 1


def check_changes(one, phase):
    """Changes, cancels and lists; what a phase leaves open the next ones cancel."""
    ends = {"ModifyOrder": {"client_order_id": f"O{phase}-market", "change": {"new_quantity": "200"}},
            "CancelOrder": {"client_order_id": f"O{phase}-market"}, "CancelAllOrders": {},
            "GetOrderList": {"filter": {}}}
    if phase == 0:
        sent = [len(one.requests(kind)) for kind in (CORRECT, CANCEL, "CLMKabuCancelOrderAll")]
        for op, fields in ends.items():
            refused(one.send(op, **fields)(), "UNSUPPORTED_IN_PHASE_O0", "PHASE")
        assert [len(one.requests(kind)) for kind in (CORRECT, CANCEL, "CLMKabuCancelOrderAll")] == sent == [0, 0, 0]
        return
    later, day = days_ahead(one, 2)
    for name, change, wanted in (("dated", {"new_expire_time_ns": later}, ("expires", day.strftime("%Y%m%d"))),
                                 ("stop", {"new_trigger_price": "2910"}, ("trigger", "2910"))):
        if phase < 3:
            refused(one.modify(f"O{phase}-limit", **change), "VENUE_UNSUPPORTED", "PHASE")
            continue
        told = one.modify(f"O3-{name}", **change)
        assert told["event"] == "OrderUpdated", told
        field, value = wanted
        assert at_broker(one, told["venue_order_id"])["content"][field].replace("-", "") == value
    assert one.modify(f"O{phase}-limit", new_price="2710")["price"] == "2710"
    assert one.cancel(f"O{phase}-limit")["event"] == "OrderCanceled"
    row, = (row for row in one.orders() if row["client_order_id"] == f"O{phase}-limit")
    assert (row["status"], row["price"]) == ("CANCELED", "2710")
    assert one.cancel_all()["failed_count"] == 0
    assert len(one.requests(LIST)) > 0
