"""What the tests of the engine do with a session, and what holds for every run."""

import csv
import json
from decimal import Decimal

import jsonschema
from engine_process import CASH
from plain_client import REFUSALS, SCHEMAS

#: So much that nothing at random uses it up.
RICH = "1000000000"
#: Events of a run that are neither market data nor how far it is.
OF_A_RUN = (
    "EngineStarted OrderSubmitted OrderAccepted OrderRejected OrderPendingUpdate OrderUpdated OrderPendingCancel "
    "OrderCanceled OrderExpired OrderFilled SubmitOrderResult CancelAllResult ExecutionMarker StrategySignal "
    "PositionOpened PositionClosed PositionsUpdated ReplayBuyingPower ReplayStopped EngineError EngineStopped"
).split()


def order(client_order_id, side="BUY", price=None, quantity="100", **more):
    """An order: a limit where a price is given, else a market order."""
    return {
        "client_order_id": client_order_id, "instrument_id": "7203.TSE", "order_side": side,
        "order_type": "MARKET" if price is None else "LIMIT", "quantity": quantity,
        **({} if price is None else {"price": price}), "time_in_force": "DAY", "post_only": False, "reduce_only": False,
        **more,
    }


def submit(client, wanted):
    """Submits an order that is accepted, and gives the answer: the order's events come in their order."""
    since = len(client.events)
    request_id = client.send("SubmitOrder", venue="replay", order=wanted)
    answer = client.wait("SubmitOrderResult", *REFUSALS, since=since, request_id=request_id)
    assert answer["event"] == "SubmitOrderResult", answer
    told = [event["event"] for event in client.since(since) if event.get("request_id") == request_id]
    assert told[:2] == ["OrderSubmitted", "OrderAccepted"] and told.index("SubmitOrderResult") >= 2, told
    assert (answer["outcome"], answer["client_order_id"]) == ("Created", wanted["client_order_id"])
    return answer


def filled(client, client_order_id):
    """Waits until an order is filled, and gives its fills, each followed by what belongs to it."""
    last = client.wait("OrderFilled", client_order_id=client_order_id, leaves_qty="0")
    place = client.events.index(last)
    client.wait("ReplayBuyingPower", since=place)
    return [event for event in client.since(0, "OrderFilled") if event["client_order_id"] == client_order_id]


def last_trade_price(client, since=0):
    """The price of the last trade that came in; waits for one."""
    client.wait("Trades", since=since)
    return Decimal(client.since(since, "Trades")[-1]["trades"][-1]["price"])


def orders(client, **filter):
    """The orders of the replay, over all frames of the list."""
    since = len(client.events)
    answer = client.ask("GetOrderList", "OrderListUpdated", venue="replay", filter=filter)
    rows = list(answer["orders"])
    while answer.get("more"):
        since = client.events.index(answer, since) + 1
        answer = client.wait("OrderListUpdated", since=since, request_id=answer["request_id"])
        rows += answer["orders"]
    return rows


def table(folder, name):
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def check_run(events):
    """What holds for the events of every run; gives them from its start to its end."""
    names = [event["event"] for event in events]
    first, last = names.index("EngineStarted"), names.index("EngineStopped")
    assert not [name for name in names[:first] + names[last + 1:] if name in OF_A_RUN], "events outside of the run"
    run = [event for event in events[first:last + 1] if event["event"] in OF_A_RUN]
    times = [event["ts_event_ms"] for event in run if "ts_event_ms" in event]
    assert times == sorted(times), "virtual time goes on"
    for event in run:
        name = event["event"]
        if name.startswith("Order") and name != "OrderRejected":
            assert event["venue"] == "replay" and event["origin"] in ("person", "strategy"), event
            assert event["instrument_id"] and event["order_side"] in ("BUY", "SELL"), event
        if name == "OrderFilled":
            assert event["ts_event_ns"] // 1_000_000 == event["ts_event_ms"], event
    fills = [event for event in run if event["event"] == "OrderFilled"]
    assert [fill["trade_id"] for fill in fills] == [str(number + 1) for number in range(len(fills))]
    powers = [event for event in run if event["event"] == "ReplayBuyingPower"]
    assert powers[-1]["equity"] == run[-1]["final_equity"]
    return run


def check_money(run, cash=CASH, each=True):
    """Works cash and positions out from the fills, compares what is told after each, and gives both. A client
    that is behind is not told the cash of each."""
    held, bought, sold, paid, got = {}, {}, {}, {}, {}
    cash = Decimal(cash)
    for place, event in enumerate(run):
        if event["event"] == "ReplayBuyingPower":
            assert Decimal(event["cash"]) == Decimal(event["buying_power"]) == cash, event
        if event["event"] != "OrderFilled":
            continue
        issue, quantity = event["instrument_id"], int(event["last_qty"])
        value = quantity * Decimal(event["last_price"])
        before = held.get(issue, 0)
        is_buy = event["order_side"] == "BUY"
        held[issue] = before + (quantity if is_buy else -quantity)
        cash += -value if is_buy else value
        if before == 0:
            bought[issue], sold[issue], paid[issue], got[issue] = 0, 0, Decimal(0), Decimal(0)
        if is_buy:
            bought[issue], paid[issue] = bought[issue] + quantity, paid[issue] + value
        else:
            sold[issue], got[issue] = sold[issue] + quantity, got[issue] + value
        assert held[issue] >= 0, "nothing is sold short"
        marker, *after = run[place + 1:]
        assert marker["event"] == "ExecutionMarker", marker
        same = {"client_order_id": "client_order_id", "trade_id": "trade_id", "instrument_id": "instrument_id",
                "side": "order_side", "price": "last_price", "qty": "last_qty", "origin": "origin",
                "ts_event_ms": "ts_event_ms"}
        assert {name: marker[name] for name in same} == {name: event[other] for name, other in same.items()}
        if before == 0:
            opened = after.pop(0)
            assert opened["event"] == "PositionOpened" and opened["opened_qty"] == str(held[issue]), opened
            assert Decimal(opened["avg_open_price"]) == Decimal(event["last_price"])
        elif held[issue] == 0:
            closed = after.pop(0)
            assert closed["event"] == "PositionClosed" and closed["opened_qty"] == str(bought[issue]), closed
            assert Decimal(closed["realized_pnl"]) == got[issue] - paid[issue], closed
            assert Decimal(closed["avg_open_price"]) == half_even(paid[issue] / bought[issue])
            assert Decimal(closed["avg_close_price"]) == half_even(got[issue] / sold[issue])
        while after and after[0]["event"] == "PositionsUpdated":
            after.pop(0)
        if each:
            assert after and after[0]["event"] == "ReplayBuyingPower", f"{event} is followed by {after[:1]}"
    return cash, held


def half_even(number):
    return number.quantize(Decimal("0.0001"))


def check_folder(folder, run):
    """The run's folder says what the events said."""
    for name in ("report.html", "orders.csv", "fills.csv", "commands.jsonl", "web_broker_orders_replay.jsonl"):
        assert (folder / name).is_file(), name
    assert manifest(folder)["partial"] is (run[-1]["status"] != "completed")
    told = [(event["client_order_id"], event["venue_order_id"], event["trade_id"], event["last_qty"],
             Decimal(event["last_price"]), str(event["ts_event_ns"]), event["origin"])
            for event in run if event["event"] == "OrderFilled"]
    assert told == [(row["client_order_id"], row["venue_order_id"], row["trade_id"], row["quantity"],
                     Decimal(row["price"]), row["ts_event_ns"], row["origin"]) for row in table(folder, "fills")]
    lines = (folder / "web_broker_orders_replay.jsonl").read_text(encoding="utf-8").splitlines()
    audit = [json.loads(line) for line in lines]
    schema = json.loads((SCHEMAS / "audit-log.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for line in audit:
        validator.validate(line)
        assert line["wall_ms"] > line["ts"] and line["origin"] in ("person", "strategy"), line
    # The lines of each origin are in their order.
    for origin in ("person", "strategy"):
        sent = [event["client_order_id"] for event in run
                if event["event"] == "OrderSubmitted" and event["origin"] == origin]
        assert sent == [line["client_order_id"] for line in audit
                        if line["phase"] == "submit" and line["origin"] == origin]
        taken = {event["client_order_id"]: event["venue_order_id"] for event in run
                 if event["event"] == "OrderAccepted" and event["origin"] == origin}
        assert taken == {line["client_order_id"]: line["venue_order_id"] for line in audit
                         if line["phase"] == "accepted" and line["origin"] == origin}
