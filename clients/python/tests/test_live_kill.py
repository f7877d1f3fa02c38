"""The engine dies at every point of the submit path, and while the broker holds a request: afterwards the same command
is sent again. The broker never has two orders for it, and whoever sent it learns the truth."""

import random
import re
import time

import pytest
from engine_process import ABORTED
from live_world import CANCEL, CORRECT, NEW, ROOT, SPEC, VENDOR, check_log
from websockets.exceptions import ConnectionClosed

POINTS = (
    "command_taken id_in_map guard_asked guard_answered before_submit_line submit_line_half submit_line_unsynced "
    "submit_line_synced before_send sending answer_received before_accepted_line accepted_line_written "
    "accepted_broadcast"
).split()
#: At these the broker has the order, or may have it.
LATE = POINTS[POINTS.index("sending"):]
#: At these the log has the order.
LOGGED = POINTS[POINTS.index("submit_line_unsynced"):]


def log_of(one):
    return one.folder / "engine" / "config" / "web_broker_orders.jsonl"


def truth(one, name, **order):
    """Sends the same command again until it is known what became of it, and gives the number that the order has. The
    order list is read in between, as the warning says."""
    for _ in range(3):
        result = one.submit(name, **order)
        if result["event"] == "OrderRejected":
            assert result["reason_code"] == "INTERNAL_ERROR", result
            continue
        assert result["event"] == "SubmitOrderResult", result
        if result["venue_order_id"] is not None:
            assert result["status"] in ("ACCEPTED", "FILLED"), result
            return result["outcome"], result["venue_order_id"]
        assert (result["outcome"], result["status"], result["warning_code"]) == (
            "IdempotentReplay", "SUBMITTED", "order_status_unknown"), result
        assert len(one.requests(NEW)) <= 1, "it was not sent again while it is unknown"
        one.orders()
        told = one.known(name)
        if told["event"] == "OrderRejected":
            assert told["reason_text"].startswith("NOT_AT_BROKER: "), told
    raise AssertionError("nobody tells what became of the order")


def hold_the_end(one, name, held_up=False, **order):
    """What must hold after a kill, whatever it was that was killed; `held_up`: while the broker held a request."""
    outcome, number = truth(one, name, **order)
    held = one.broker.view()
    assert [each["number"] for each in held["orders"]] == [number], "one order, and it is the one that was told"
    assert [each["count"] for each in held["contents"]] == [1]
    row, = one.orders()
    assert (row["client_order_id"], row["venue_order_id"]) == (name, number)
    again = one.submit(name, **order)
    assert (again["outcome"], again["venue_order_id"]) == ("IdempotentReplay", number)
    lines = check_log(log_of(one), [int(each) for each in one.p_nos()])
    accepted = [line for line in lines if line["phase"] == "accepted"]
    assert {line["venue_order_id"] for line in accepted} == {number}, lines
    assert lines[-1]["phase"] == "accepted"
    assert one.cancel(name)["event"] == "OrderCanceled", "it is an order like any other"
    if held_up:
        one.until(lambda: one.broker.view()["counts"]["in_flight"] == 0, "the broker is done with the old request")
        assert len(one.broker.orders()) == 1, "also when the request came through at last"
    one.check(alone=not held_up)
    return outcome, number


def test_the_points_are_those_of_the_program():
    source = (ROOT / "host" / "orders" / "src" / "kill.rs").read_text(encoding="utf-8")
    named = re.search(r"POINTS: \[&str; (\d+)\] = \[(.*?)\];", source, re.DOTALL)
    assert re.findall(r'"(\w+)"', named[2]) == POINTS and int(named[1]) == len(POINTS) >= 12


#: At the others the vendor's dialect has no part in what happens.
OF_BOTH = [point for point in POINTS
           if point not in ("id_in_map", "guard_answered", "before_submit_line", "submit_line_synced")]


@pytest.mark.parametrize("form, point", [(SPEC, point) for point in POINTS] + [(VENDOR, point) for point in OF_BOTH])
def test_killed_at(world, form, point):
    one = world(form=form)
    client = one.ready(KUMIKI_KILL_AT=point)
    try:
        one.send("SubmitOrder", order=one.order("killed"))
    except ConnectionClosed:
        pass
    told = client.to_the_end()
    ended = one.engine.process.wait(30)
    assert ended == ABORTED, f"it died at {point}"
    number = [event["venue_order_id"] for event in told if event["event"] == "OrderAccepted"]
    torn = log_of(one).read_bytes()
    assert (b"killed" in torn) == (point in LOGGED or point == "submit_line_half")
    one.ready()
    assert torn.rpartition(b"\n")[0] in log_of(one).read_bytes(), "whole lines are kept"
    outcome, truly = hold_the_end(one, "killed")
    assert number in ([], [truly]), "the client was told another number before"
    assert len(one.requests(NEW)) == 1
    if point in LATE:
        assert outcome == "IdempotentReplay", "the broker had it: it was found, and not sent again"
    else:
        assert outcome == "Created", "the broker did not have it"


@pytest.mark.parametrize("form", [SPEC, VENDOR])
@pytest.mark.parametrize("fault", ["delay-request", "delay-answer", "drop-answer", "guard", "before"])
def test_killed_while_the_broker_holds_it(world, fault, form):
    """SIGKILL from outside: before the broker takes it, after that, after a lost answer, and while it is asked for
    the balance."""
    one = world(form=form)
    one.ready()
    if fault == "guard":
        one.fault("delay-answer", value=1500, request="CLMZanKaiKanougaku", times=1)
    elif fault == "drop-answer":
        one.fault("drop-answer", request=NEW, times=1)
        # The list that tells of it comes too late.
        one.fault("delay-request", value=1500, request="CLMOrderList", times=1)
    elif fault == "before":
        one.fault("drop-before", request=NEW, times=1)
        one.fault("delay-request", value=1500, request="CLMOrderList", times=1)
    else:
        one.fault(fault, value=1500, request=NEW, times=1)
    answer = one.send("SubmitOrder", order=one.order("killed"))
    one.until_seen("CLMZanKaiKanougaku" if fault == "guard" else NEW)
    if fault in ("drop-answer", "before"):
        unknown = answer()
        assert (unknown["event"], unknown["code"]) == ("Error", "INTERNAL_ERROR"), unknown
    one.kill_engine()
    one.ready()
    outcome, _ = hold_the_end(one, "killed", held_up=True)
    assert outcome == ("IdempotentReplay" if fault in ("delay-answer", "drop-answer") else "Created")


def test_killed_again_and_again(world):
    """At one point after the other, over one log and one broker: still one order."""
    one = world()
    for point in ("submit_line_half", "submit_line_synced", "sending"):
        client = one.ready(KUMIKI_KILL_AT=point)
        since = len(client.events)
        try:
            result = one.submit("killed")
            assert result["warning_code"] == "order_status_unknown"
            assert one.known("killed")["event"] == "OrderRejected"
            one.send("SubmitOrder", order=one.order("killed"))
        except (ConnectionClosed, AssertionError):
            assert client.socket.close_code is not None, client.events[since:]
        client.to_the_end()
        assert one.engine.process.wait(30) == ABORTED
    one.ready()
    outcome, _ = hold_the_end(one, "killed")
    assert outcome == "IdempotentReplay"


@pytest.mark.parametrize("form, seed", [(SPEC, 1), (SPEC, 2), (VENDOR, 3)])
def test_killed_at_any_moment(world, form, seed):
    """SIGKILL while orders and cancels are under way, at moments that nobody has chosen for what happens there, and
    answers that are lost besides: of each order there is one, however often it was sent."""
    chance = random.Random(seed)
    one = world(form=form)
    orders = {f"o{number}": {"price": str(2700 + number)} for number in range(8)}
    accepted = {}
    for _ in range(3):
        client = one.ready()
        since = len(client.events)
        if chance.random() < 0.7:
            one.fault(chance.choice(["drop-answer", "drop-before", "half-answer"]), request=NEW, times=1)
        try:
            for name in chance.sample(sorted(orders), 5):
                one.send("SubmitOrder", order=one.order(name, **orders[name]))
            one.send("CancelOrder", client_order_id=chance.choice(sorted(orders)))
            client.next(0.5)
            time.sleep(chance.random() * 0.06)
        except TimeoutError:
            pass
        one.kill_engine()
        client.to_the_end()
        for event in client.since(since, "OrderAccepted"):
            name, number = event["client_order_id"], event["venue_order_id"]
            assert accepted.setdefault(name, number) == number, "an order has one number"
        check_log(log_of(one))
    one.ready()
    for name, order in orders.items():
        result = one.submit(name, **order)
        while result["event"] != "SubmitOrderResult" or result["venue_order_id"] is None:
            if result["event"] == "SubmitOrderResult":
                one.known(name)
            result = one.submit(name, **order)
        assert accepted.setdefault(name, result["venue_order_id"]) == result["venue_order_id"]
    held = one.broker.view()
    assert [content["count"] for content in held["contents"]] == [1] * len(orders), held["contents"]
    assert {row["client_order_id"]: row["venue_order_id"] for row in one.orders()} == accepted
    assert {order["number"] for order in held["orders"]} == set(accepted.values())
    check_log(log_of(one), [int(each) for each in one.p_nos()])


@pytest.mark.parametrize("command", [CORRECT, CANCEL])
def test_killed_while_a_change_is_under_way(world, command):
    """The broker has done it, and the engine that asked is gone: the next one tells the order as it is."""
    one = world()
    one.ready()
    number = one.placed("killed")
    one.fault("delay-answer", value=1500, request=command, times=1)
    if command == CORRECT:
        one.send("ModifyOrder", client_order_id="killed", change={"new_price": "2790"})
    else:
        one.send("CancelOrder", client_order_id="killed")
    one.until_seen(command)
    one.kill_engine()
    one.ready()
    row, = one.orders()
    assert (row["client_order_id"], row["venue_order_id"]) == ("killed", number)
    again = one.submit("killed")
    if command == CORRECT:
        assert (row["status"], row["price"]) == ("ACCEPTED", "2790")
        assert (again["outcome"], again["status"]) == ("IdempotentReplay", "ACCEPTED")
        assert one.modify("killed", new_price="2780")["price"] == "2780"
    else:
        assert row["status"] == "CANCELED"
        assert (again["outcome"], again["status"]) == ("IdempotentReplay", "CANCELED")
    assert len(one.broker.orders()) == 1
    one.check(alone=False)


@pytest.mark.parametrize("cut", range(6))
def test_a_log_that_was_cut_anywhere(world, cut):
    """As after a power cut that took a part of the last lines: nothing is made up, and nothing sent twice."""
    one = world()
    one.ready()
    number = one.placed("cut")
    one.kill_engine()
    log = log_of(one)
    whole = log.read_bytes()
    submit = whole.index(b"\n") + 1
    keep = [submit - 1, submit, submit + 1, (submit + len(whole)) // 2, len(whole) - 1, len(whole)][cut]
    log.write_bytes(whole[:keep])
    one.ready()
    row, = one.orders()
    if cut == 0:
        # The submit line itself is gone, which a synced line cannot be: to the engine it is an order placed elsewhere.
        assert (row["client_order_id"], row["venue_order_id"]) == (None, number)
    else:
        assert row["client_order_id"] == "cut"
        result = one.submit("cut")
        assert (result["outcome"], result["venue_order_id"]) == ("IdempotentReplay", number)
        check_log(log)
    assert len(one.broker.orders()) == 1
