"""The pins about orders in a replay, P71 to P74, each by its name. What another test holds wholly is not repeated:
the docstrings name it."""

import datetime
import json
import pathlib
from decimal import Decimal

import pytest

pytest.importorskip("websockets")
pytest.importorskip("jsonschema")

from engine_process import EXECUTION, JAPAN, Engine, component, write_market  # noqa: E402
from plain_client import REFUSALS  # noqa: E402
from sessions import (  # noqa: E402
    RICH, check_run, filled, last_trade_price, order, orders, submit, table,
)
from websockets.exceptions import ConnectionClosed  # noqa: E402

SECOND = 10**9
PAGE = 10_000


def at(date, clock):
    """Nanoseconds since 1970 UTC of a time in Japan."""
    return int(datetime.datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=JAPAN).timestamp()) * SECOND


def minutes(first, count, price="850", shares="100"):
    """A trade each minute."""
    hour, minute = map(int, first.split(":"))
    clocks = [divmod(hour * 60 + minute + number, 60) for number in range(count)]
    return [f"{hour:02}:{minute:02}:00 {price} {shares}" for hour, minute in clocks]


@pytest.fixture
def slow(start, tmp_path):
    """Runs over given days, a row in at most 0.2 s; gives a client that is told the trades, after the first."""
    clients = []

    def slow(*days, strategy="empty", name="slow", **more):
        one = write_market(tmp_path / name, *days)
        client = start(data=one.folder).client()
        clients.append(client)
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        last = len(one.days) - 1
        one.load(client, 0, last)
        one.run(client, strategy, first=0, last=last, multiplier=1, **more)
        client.wait("Trades")
        return client

    yield slow
    for client in clients:
        client.socket.close()


def finish(client):
    client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
    return client.wait("EngineStopped")


def test_p71_events_of_orders_say_whose_they_are(client, market):
    """Commands of people about the strategy's orders, and CancelAllOrders:
    `test_people_and_the_strategy_keep_their_orders_apart`."""
    market.load(client)
    market.run(client, "trades-at-random", strategy_id="theirs", multiplier=300, initial_cash=RICH,
               strategy_init_kwargs={"seed": 3, "every": 3})
    theirs = client.wait("OrderAccepted", origin="strategy")["client_order_id"]
    low = str(int(last_trade_price(client) * Decimal("0.9")))
    submit(client, order(theirs, price=low))
    change = {"new_quantity": "200"}
    client.ask("ModifyOrder", "OrderUpdated", venue="replay", client_order_id=theirs, change=change)
    client.ask("CancelOrder", "OrderCanceled", venue="replay", client_order_id=theirs)
    submit(client, order("now"))
    submit(client, order("day", price=low))
    filled(client, "now")
    client.refusal("SubmitOrder", venue="replay", order=order("lot", quantity="150"))
    assert finish(client)["status"] == "completed"
    run = check_run(client.events)
    events = [event for event in run if event["event"].startswith("Order")]
    answers = ("OrderSubmitted", "OrderAccepted", "OrderPendingUpdate", "OrderUpdated", "OrderPendingCancel",
               "OrderCanceled", "OrderRejected")
    for event in events:
        is_persons = event["client_order_id"] in ("now", "day", "lot") or event.get("request_id") is not None
        assert (event["venue"], event["instrument_id"]) == ("replay", "7203.TSE"), event
        assert event["order_side"] in ("BUY", "SELL"), event
        assert event["origin"] == ("person" if is_persons else "strategy"), event
        assert event.get("strategy_id") == (None if is_persons else "theirs"), event
        assert (event.get("request_id") is not None) is (is_persons and event["event"] in answers), event
        assert ("ts_event_ns" in event) is (event["event"] == "OrderFilled"), event
    kinds = {(event["origin"], event["event"]) for event in events}
    assert kinds >= {("person", name) for name in (*answers, "OrderFilled", "OrderExpired")}
    assert kinds >= {("strategy", name) for name in ("OrderSubmitted", "OrderAccepted", "OrderFilled", "OrderCanceled")}
    # Numbers and trades are counted over both.
    accepted = [event["venue_order_id"] for event in events if event["event"] == "OrderAccepted"]
    assert accepted == [f"R{number + 1}" for number in range(len(accepted))]
    fills = [event for event in events if event["event"] == "OrderFilled"]
    assert {fill["origin"] for fill in fills} == {"person", "strategy"}
    assert [fill["trade_id"] for fill in fills] == [str(number + 1) for number in range(len(fills))]
    # An order is known by whose it is and its id together.
    rows = orders(client)
    both = [row["origin"] for row in rows if row["client_order_id"] == theirs]
    assert sorted(both) == ["person", "strategy"]
    assert len({(row["origin"], row["client_order_id"]) for row in rows}) == len(rows) == len(accepted)


def test_p71_also_what_was_never_sent_has_a_side(start, market):
    with start().client() as client:
        market.load(client)
        market.run(client, "floods-output", strategy_init_kwargs={"flood": "rejected-orders"}, multiplier=20)
        rejected = client.wait("OrderRejected")
        assert (rejected["venue"], rejected["origin"], rejected["strategy_id"], rejected["instrument_id"]) == (
            "replay", "strategy", "one", "7203.TSE")
        assert rejected.get("order_side") == "BUY"


def test_p72_what_people_may_send(slow):
    """What cannot be, before OrderSubmitted: `test_what_cannot_be_is_refused_before_it_is_told`; rounding:
    `test_prices_are_rounded_away_from_the_market`; commands that cannot be read:
    `test_an_order_that_cannot_be_read_is_rejected_by_its_id`; a password is never asked for."""
    client = slow(("2025-01-06", *minutes("09:00", 100)))
    for tags, code, text in (
        (["cash_margin=margin_general_new"], "VENUE_UNSUPPORTED", "MARGIN: "),
        (["cash_margin=margin_credit_repay"], "VENUE_UNSUPPORTED", "MARGIN: "),
        (["tategyoku=17"], "VENUE_UNSUPPORTED", "MARGIN: "),
        (["close_action=physical_settle_buy"], "VENUE_UNSUPPORTED", "MARGIN: "),
        (["account_type=nisa_growth"], "VENUE_UNSUPPORTED", "ACCOUNT_TYPE: "),
        (["account_type=nisa"], "VENUE_UNSUPPORTED", "ACCOUNT_TYPE: "),
        (["close_strategy=funari"], "VENUE_UNSUPPORTED", "CONFLICTING_TAGS: "),
        (["account_type=general", "account_type=specific"], "VENUE_UNSUPPORTED", "CONFLICTING_TAGS: "),
    ):
        since = len(client.events)
        refused = client.refusal("SubmitOrder", venue="replay", order=order("tags", price="800", tags=tags))
        assert refused["reason_code"] == code and refused["reason_text"].startswith(text), (tags, refused)
        assert not client.since(since, "OrderSubmitted", "SecondPasswordRequired")
    # What phase O3 adds is there.
    later = at("2025-01-07", "15:00:00")
    stop = {"order_type": "STOP_LIMIT", "trigger_price": "900", "trigger_type": "LAST"}
    for wanted in (
        order("cash", price="800", tags=["cash_margin=cash", "account_type=general"]),
        order("stop", price="905", **stop),
        order("gtd", price="800", time_in_force="GTD", expire_time_ns=later),
        order("open", price="800", time_in_force="AT_THE_OPEN"), order("close", time_in_force="AT_THE_CLOSE"),
        order("funari", price="800", time_in_force="AT_THE_CLOSE", tags=["close_strategy=funari"]),
    ):
        submit(client, wanted)
    # An answer is told with what was odd (P10), and a cancel of all counts (P13).
    answer = submit(client, order("odd", price="800", tags=["colour=red"]))
    assert (answer["status"], answer["warning_code"]) == ("ACCEPTED", "unknown_tag")
    all_cancelled = client.ask("CancelAllOrders", "CancelAllResult", venue="replay")
    assert all_cancelled["canceled_count"] + all_cancelled["failed_count"] == 7
    listed = client.wait("OrderListUpdated", request_id=all_cancelled["request_id"])
    assert client.events.index(listed) < client.events.index(all_cancelled) and len(listed["orders"]) == 7


def test_p72_an_order_is_sent_at_the_row_handled_last(slow, desk, tmp_path):
    """Its time, and the latency, which the strategy's have too. That it is answered in a sleep, which it leaves as it
    is: `test_p68_a_change_of_speed_goes_on_with_a_sleep`."""
    day = ("2025-01-06", *minutes("09:00", 100))
    client = slow(day, strategy="buy-and-hold", execution={**EXECUTION, "latency_ns": 90 * SECOND})
    since = len(client.events)
    sent = client.send("SubmitOrder", venue="replay", order=order("mine", price="840"))
    submitted = client.wait("OrderSubmitted", since=since, request_id=sent)
    before = [event for event in client.events[:client.events.index(submitted)] if event["event"] == "Trades"]
    assert submitted["ts_event_ms"] == before[-1]["trades"][-1]["ts_ms"]
    client.wait("SubmitOrderResult", request_id=sent)
    for origin in ("person", "strategy"):
        submitted, accepted = (client.wait(name, origin=origin) for name in ("OrderSubmitted", "OrderAccepted"))
        assert accepted["ts_event_ms"] - submitted["ts_event_ms"] == 90_000, origin
    # Before the first row it is midnight; only a run that is repeated is surely told so early.
    folder, call = desk
    early = {"rows_done": 0, "at": "row", "ts_event_ms": 0, "command": {"op": "SubmitOrder", "order": order("early")}}
    commands = tmp_path / "commands.jsonl"
    commands.write_text(json.dumps(early) + "\n", encoding="utf-8")
    one = write_market(tmp_path / "one", day)
    call("replay", "run", component("empty"), "--data", str(one.folder), "--instrument", "7203.TSE",
         "--commands", str(commands), "--out", str(tmp_path / "out"), "--quiet")
    row, = table(tmp_path / "out", "orders")
    assert (row["client_order_id"], int(row["ts_submitted_ns"])) == ("early", at("2025-01-06", "00:00:00"))


def test_p72_orders_between_sessions_wait(slow):
    """It arrives in the lunch break, another one at night: both are taken, and wait for the next session."""
    days = (("2025-01-06", *minutes("11:00", 29), "12:31:00 851 1000", "14:00:00 852 1000"),
            ("2025-01-07", "09:00:00 853 1000", "09:01:00 854 1000"))
    for number, (latency, clock) in enumerate((("00:50", "12:31:00"), ("17:00", "09:00:00"))):
        hours, more = map(int, latency.split(":"))
        execution = {**EXECUTION, "latency_ns": (hours * 60 + more) * 60 * SECOND}
        client = slow(*days, execution=execution, name=f"wait-{number}")
        sent = [client.send("SubmitOrder", venue="replay", order=order(name, **more)) for name, more in (
            ("market", {"time_in_force": "GTD", "expire_time_ns": at("2025-01-07", "15:00:00")}),
            ("limit", {"price": "900", "time_in_force": "GTD", "expire_time_ns": at("2025-01-07", "15:00:00")}))]
        end = finish(client)
        assert end["status"] == "completed" and not client.since(0, *REFUSALS)
        for id in sent:
            client.wait("OrderAccepted", request_id=id)
        fills = client.since(0, "OrderFilled")
        assert {fill["client_order_id"] for fill in fills} == {"market", "limit"}
        assert {fill["ts_event_ns"] for fill in fills} == {at("2025-01-06" if number == 0 else "2025-01-07", clock)}


def test_p61_an_order_that_expires_on_its_way_is_answered(slow):
    """Neither taken nor rejected: its end is the only answer there is, as where a run is stopped
    (`test_p67_an_order_under_way_ends_with_its_run`)."""
    client = slow(("2025-01-06", *minutes("09:00", 60)), execution={**EXECUTION, "latency_ns": 17 * 3600 * SECOND})
    sent = client.send("SubmitOrder", venue="replay", order=order("late", price="840"))
    client.wait("OrderSubmitted", request_id=sent)
    assert finish(client)["status"] == "completed"
    expired = client.wait("OrderExpired", client_order_id="late")
    answers = ("OrderAccepted", "SubmitOrderResult", *REFUSALS)
    assert expired["venue_order_id"] is None and not client.since(0, *answers)
    assert expired.get("request_id") == sent


def test_p21_the_id_of_a_rejected_order_is_free(client, market):
    """Whether it was rejected before it was told as submitted or after."""
    market.load(client)
    market.run(client, multiplier=20)
    price = last_trade_price(client)
    below = str(int(price * Decimal("0.99")))
    for number in range(2):
        wanted = order("again", order_type="STOP_MARKET", trigger_price=below)
        sent = client.send("SubmitOrder", venue="replay", order=wanted)
        refused = client.wait("OrderRejected", request_id=sent)
        assert refused["reason_text"].startswith("STOP_TRIGGER: "), refused
    sent = client.send("SubmitOrder", venue="replay", order=order("again"))
    assert client.wait("SubmitOrderResult", *REFUSALS, request_id=sent)["outcome"] == "Created"


def test_p72_what_is_sold_is_the_account_s(client, market):
    """A person may sell what is held less what both have in open sells, whoever bought it; the strategy trades on."""
    seen = set()
    for seed in range(5, 15):
        place = len(client.events)
        asked = sells_against(client, market, seed)
        end = client.wait("EngineStopped", since=place)
        seen |= check_sells(check_run(client.since(place)), asked, audit(end["run_dir"]))
        # Some were taken, and some refused only for what the strategy has in open sells.
        if seen >= {(False, True), (True, True)}:
            return
    pytest.fail(f"other parameters are needed: {seen}")


def sells_against(client, market, seed):
    """Sells what there is and a lot more while a strategy trades; gives the shares of each order by its id."""
    market.load(client)
    place = len(client.events)
    market.run(client, "trades-at-random", multiplier=300, initial_cash=RICH,
               strategy_init_kwargs={"seed": seed, "every": 3})
    high = str(int(last_trade_price(client) * Decimal("1.08")))
    asked = {}
    for number in range(15):
        client.wait("OrderAccepted", "EngineStopped", since=len(client.events))
        session = client.ask("GetSession", "Session")
        if session["state"] != "Running":
            break
        rows = [row for row in session["orders"] if row["order_side"] == "SELL"]
        selling = sum(int(row["leaves_qty"]) for row in rows if row["status"] in ("SUBMITTED", "ACCEPTED"))
        left = sum(int(row["qty"]) for row in session["positions"]) - selling
        for name, quantity in ((f"more-{number}", left + 100), (f"all-{number}", left)):
            if quantity > 0:
                asked[name] = quantity
                wanted = order(name, "SELL", price=high, quantity=str(quantity))
                client.send("SubmitOrder", venue="replay", order=wanted)
        client.ask("CancelAllOrders", "CancelAllResult", venue="replay")
    if not client.since(place, "EngineStopped"):
        client.send("StopEngine", strategy_id="one")
    return asked


def audit(run_dir):
    """Shares of each order of a run when it was sent, by whose it is and its id."""
    text = (pathlib.Path(run_dir) / "web_broker_orders_replay.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return {(line["origin"], line["client_order_id"]): int(line["quantity"]) for line in lines
            if line["phase"] == "submit"}


def check_sells(run, asked, sent):
    """Works out from the events what could be sold when each order of a person came, and compares."""
    held, selling, filled_of, seen = 0, {}, {}, set()
    for event in run:
        key, name = (event.get("origin"), event.get("client_order_id")), event["event"]
        if key[0] == "person" and name in ("OrderSubmitted", "OrderRejected"):
            of_both, of_people = sum(selling.values()), sum(qty for (who, _), qty in selling.items() if who == "person")
            is_refused, quantity = name == "OrderRejected", asked[key[1]]
            assert is_refused is (quantity > held - of_both), (event, held, selling)
            if is_refused:
                assert (event["reason_code"], event["reason_text"][:12]) == ("VENUE_REJECTED", "SHORT_SALE: "), event
            seen.add((is_refused, quantity <= held - of_people))
        if event.get("order_side") == "SELL" and name == "OrderSubmitted":
            selling[key] = sent[key]
        elif key in selling and name == "OrderUpdated":
            selling[key] = int(event["quantity"]) - filled_of.get(key, 0)
        elif key in selling and name in ("OrderCanceled", "OrderExpired", "OrderRejected"):
            del selling[key]
        elif name == "OrderFilled":
            held += int(event["last_qty"]) * (1 if event["order_side"] == "BUY" else -1)
            if key in selling:
                selling[key], filled_of[key] = int(event["leaves_qty"]), int(event["cumulative_qty"])
    return seen


def test_p72_a_quantity_that_is_filled_already_is_refused(slow):
    client = slow(("2025-01-06", *minutes("09:00", 100)))
    submit(client, order("large", price="860", quantity="11000"))
    client.wait("OrderFilled", where=lambda event: int(event["cumulative_qty"]) >= 200)
    for quantity in ("100", "200"):
        since = len(client.events)
        change = {"new_quantity": quantity}
        refused = client.refusal("ModifyOrder", venue="replay", client_order_id="large", change=change)
        assert (refused["event"], refused["reason_code"]) == ("OrderRejected", "VALIDATION_ERROR")
        assert refused["reason_text"].startswith("NEW_QUANTITY: "), refused
        assert not client.since(since, "OrderPendingUpdate", "OrderUpdated")
    nothing = dict.fromkeys(("new_quantity", "new_price", "new_trigger_price", "new_expire_time_ns"))
    refused = client.refusal("ModifyOrder", venue="replay", client_order_id="large", change=nothing)
    assert refused["reason_code"] == "VALIDATION_ERROR", "nothing is to change (P16)"
    row, = orders(client)
    # P74: what is filled in part stands there as ACCEPTED.
    assert (row["status"], row["quantity"], int(row["filled_qty"]) >= 200) == ("ACCEPTED", "11000", True)
    assert int(row["filled_qty"]) + int(row["leaves_qty"]) == 11000
    assert orders(client, status="ACCEPTED") and orders(client, status="PARTIALLY_FILLED") == []
    more = client.ask("ModifyOrder", "OrderUpdated", venue="replay", client_order_id="large",
                      change={"new_quantity": "10900"})
    assert more["quantity"] == "10900"


def test_p73_what_a_venue_is_taken_for(start, market):
    """`replay` in every state: `test_what_does_not_fit_the_state_is_told_as_busy`."""
    of_orders = {
        "SubmitOrder": {"order": order("a")}, "CancelOrder": {"client_order_id": "a"}, "CancelAllOrders": {},
        "ModifyOrder": {"client_order_id": "a", "change": {"new_quantity": "200"}}, "GetOrderList": {},
        "Subscribe": {"ticker": "7203"},
    }
    with start().client() as client:
        def check(state):
            for venue in ("web_broker", "local_broker"):
                for op, fields in of_orders.items():
                    refused = client.refusal(op, venue=venue, **fields)
                    if state == "Idle":
                        assert (refused["event"], refused["code"]) == ("Error", "not_in_replay_mode"), (op, refused)
                    else:
                        assert (refused["event"], refused["current_state"], refused["venue"]) == (
                            "EngineBusy", state, venue), (op, refused)
                for op in ("GetBuyingPower", "GetPositions"):
                    refused = client.refusal(op, venue=venue)
                    assert (refused["event"], refused["code"]) == ("Error", "not_in_replay_mode"), (op, refused)

        check("Idle")
        market.load(client)
        check("Loaded")
        market.run(client)
        check("Running")
        refused = client.refusal("CancelAllOrders", venue="mars")
        assert (refused["event"], refused["code"]) == ("Error", "validation_error")
        client.send("StopEngine", strategy_id="one")
        late = [client.send("CancelAllOrders", venue=venue) for venue in ("replay", "web_broker")]
        stopped = client.wait("EngineStopped")
        for id in late:
            answer = client.wait(*REFUSALS, "CancelAllResult", request_id=id)
            if client.events.index(answer) < client.events.index(stopped):
                assert (answer["event"], answer["current_state"]) == ("EngineBusy", "Stopping"), answer


def test_p74_a_list_by_its_filters(slow):
    """By status, instrument and a date: also `test_a_whole_session`; what is filled in part:
    `test_p72_a_quantity_that_is_filled_already_is_refused`."""
    later = at("2025-01-08", "15:00:00")
    client = slow(("2025-01-06", *minutes("14:30", 50)), ("2025-01-07", *minutes("09:00", 100)))
    for name, more in (("z", {"price": "800"}), ("bought", {}), ("a", {"price": "801"}),
                       ("long", {"price": "802", "time_in_force": "GTD", "expire_time_ns": later})):
        submit(client, order(name, **more))
    filled(client, "bought")
    client.ask("CancelOrder", "OrderCanceled", venue="replay", client_order_id="z")
    client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=2000)
    client.wait("Trades", where=lambda event: event["trades"][-1]["ts_ns"] > at("2025-01-07", "00:00:00"))
    client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=1)
    submit(client, order("next", price="803"))

    def names(**filter):
        return [row["client_order_id"] for row in orders(client, **filter)]

    assert names() == names(date=None) == names(status=None, instrument_id=None) == ["z", "bought", "a", "long", "next"]
    assert names(date="20250106") == ["z", "bought", "a", "long"] and names(date="20250107") == ["next"]
    assert names(date="20250108") == []
    assert {status: names(status=status) for status in ("ACCEPTED", "FILLED", "CANCELED", "EXPIRED")} == {
        "ACCEPTED": ["long", "next"], "FILLED": ["bought"], "CANCELED": ["z"], "EXPIRED": ["a"]}
    assert names(instrument_id="7203.TSE", date="20250106", status="ACCEPTED") == ["long"]
    assert names(instrument_id="9984.TSE") == []
    for filter in ({"date": "2025-01-06"}, {"date": "20250230"}, {"status": "accepted"}, {"status": "DONE"}):
        refused = client.refusal("GetOrderList", venue="replay", filter=filter)
        assert (refused["event"], refused["reason_code"], refused["client_order_id"]) == (
            "OrderRejected", "VALIDATION_ERROR", None), refused
    power = client.ask("GetBuyingPower", "ReplayBuyingPower", venue="replay")
    held = client.ask("GetPositions", "PositionsUpdated", venue="replay")
    position, = held["positions"]
    assert position.keys() - {"tategyoku_id"} == {
        "instrument_id", "qty", "avg_open_price", "market_value", "unrealized_pnl", "side", "position_type", "venue"}
    assert (position["side"], position["position_type"], position["venue"]) == ("BUY", "cash", "replay")
    assert Decimal(power["equity"]) == Decimal(power["cash"]) + Decimal(position["market_value"])


@pytest.fixture(scope="module")
def many(desk, tmp_path_factory):
    """An engine after a run with more orders than a page of the list has, and how many."""
    days = [f"2025-01-{day:02}" for day in (*range(6, 11), *range(14, 18), 20, 21)]
    one = write_market(tmp_path_factory.mktemp("many") / "data", *((day, *minutes("09:00", 10)) for day in days))
    engine = Engine(tmp_path_factory.mktemp("many") / "engine", one.folder, standalone=True)
    try:
        with engine.client() as client:
            one.load(client, 0, len(days) - 1)
            flood = {"flood": "cancel-replace", "count": 100}
            one.run(client, "floods-orders", first=0, last=len(days) - 1, multiplier="max", strategy_init_kwargs=flood)
            assert next_of(client, "EngineStopped")["status"] == "completed"
        yield engine, len(days) * 10 * flood["count"]
    finally:
        engine.kill()


def next_of(client, *names):
    """The next event of a name."""
    while True:
        event = client.read()
        if event["event"] in names:
            return event


def test_p74_a_long_list_comes_in_pages(many):
    engine, count = many
    with engine.client() as client:
        client.raw('{"op":"GetOrderList","request_id":"list","venue":"replay","filter":{}}')
        pages = [next_of(client, "OrderListUpdated")]
        while pages[-1]["more"]:
            pages.append(next_of(client, "OrderListUpdated"))
        assert len(json.dumps(pages[0])) > 1 << 20, "longer than a command may be"
        numbers = [int(row["venue_order_id"][1:]) for page in pages for row in page["orders"]]
        assert numbers == list(range(1, count + 1)), "each once, by arrival"
        assert {page["request_id"] for page in pages} == {"list"}
        assert [len(page["orders"]) for page in pages] == [PAGE, count - PAGE]
        assert [(page["more"], page.get("next")) for page in pages] == [(True, PAGE), (False, None)]
        client.raw('{"op":"GetSession","request_id":"session"}')
        newest = next_of(client, "Session")["orders"]
        assert [int(row["venue_order_id"][1:]) for row in newest] == numbers[-PAGE:]


def test_p74_lists_come_as_fast_as_they_are_read(many):
    """Twenty at once are 90 MB; what waits for the client stays little, so that it is not sent away as too slow."""
    engine, count = many
    with engine.client() as client:
        asked = [f"list-{number}" for number in range(20)]
        for name in asked:
            client.raw(json.dumps({"op": "GetOrderList", "request_id": name, "venue": "replay", "filter": {}}))
        told, busy = dict.fromkeys(asked, 0), []
        while any(told[name] < count for name in asked if name not in busy):
            event = next_of(client, "OrderListUpdated", "EngineBusy")
            if event["event"] == "EngineBusy":
                busy.append(event["request_id"])
            else:
                told[event["request_id"]] += len(event["orders"])
        assert len(busy) <= 4 and {told[name] for name in asked if name not in busy} == {count}
        assert client.is_alive()


def test_p62_a_client_that_is_64_mib_behind_is_sent_away(many):
    """In few frames, of some MiB each; others do not notice. Lists are told as they are read:
    `test_p74_lists_come_as_fast_as_they_are_read`."""
    engine, _ = many
    with engine.client() as other, engine.client(max_queue=1) as slow:
        other.wait("ClientConnected", count=2)
        for _ in range(60):
            slow.send("GetSession")
        other.wait("ClientConnected", count=1, since=len(other.events))
        try:
            while True:
                slow.read()
        except ConnectionClosed:
            pass
        assert slow.socket.close_code in (1006, 1008), "what is half written stays so"
        if slow.socket.close_code == 1008:
            assert slow.socket.close_reason == "too_slow"
        assert other.is_alive()
