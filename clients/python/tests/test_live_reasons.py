"""Every reason_code of specification 2, "Errors", as a client of the engine is told it by a broker over sockets. The
form of each text is held by `live_world.Seen`, which sees every refusal, and by `World.check`."""

import json
import re
import subprocess
import time

import plain_client
import pytest
from conftest import program

pytest.register_assert_rewrite("live_world")
from live_world import (  # noqa: E402
    CANCEL, CORRECT, NEW, REASON_CODES, REMOVED_CODES, ROOT, SPEC, VENDOR, World, check_log)

try:
    import resource
except ImportError:
    # A system without limits of files.
    resource = None

DAY_NS = 86_400 * 10**9
MARKET = {"order_type": "MARKET", "price": None}
STOP = {"order_type": "STOP_MARKET", "price": None, "trigger_price": "2900"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One for all tests that leave it as it was: logged in, with the second password, and without any order."""
    one = World(tmp_path_factory.mktemp("reasons") / "world")
    one.ready()
    yield one
    try:
        assert one.broker.orders() == [], "nothing that is refused reaches the broker"
        one.check()
    finally:
        one.close()


def refused(event, code, tag=None):
    """A refusal by this code, whose text begins with this tag."""
    assert event["event"] == "OrderRejected", event
    assert event["reason_code"] == code, event
    assert tag is None or event["reason_text"].startswith(f"{tag}: "), event
    return event


def wrong(one, op="SubmitOrder", **fields):
    """The refusal of a command that may break its schema."""
    return one.client.refusal(op, **{"venue": "web_broker", **fields})


def test_the_codes_are_those_of_the_schema():
    schema = (ROOT / "schemas" / "ipc.schema.json").read_text(encoding="utf-8")
    forms = json.loads(schema)["$defs"]

    def constants(form):
        if isinstance(form, dict):
            yield from form.get("enum", [])
            if "const" in form:
                yield form["const"]
            for inner in form.values():
                yield from constants(inner)
        elif isinstance(form, list):
            for inner in form:
                yield from constants(inner)

    assert set(constants(forms["ReasonCode"])) == REASON_CODES
    for path in (ROOT / "schemas").iterdir():
        text = path.read_text(encoding="utf-8")
        assert [code for code in REMOVED_CODES if code in text] == [], path


def test_every_code_has_a_test():
    """By the tests of this file: each names the codes that it makes the engine say."""
    source = open(__file__, encoding="utf-8").read()
    assert set(re.findall(r'refused\(.+?, "([A-Z0-9_]+)"[,)]', source.replace("\n", " "))) >= REASON_CODES


@pytest.mark.parametrize("tag, change", [
    ("QUANTITY", {"quantity": "0"}), ("QUANTITY", {"quantity": "-100"}), ("QUANTITY", {"quantity": "1e2"}),
    ("QUANTITY", {"quantity": "0100"}), ("QUANTITY", {"quantity": "150"}), ("QUANTITY", {"quantity": 100}),
    ("CLIENT_ORDER_ID", {"client_order_id": " "}), ("CLIENT_ORDER_ID", {"client_order_id": "x" * 37}),
    ("INSTRUMENT_ID", {"instrument_id": "7203"}), ("INSTRUMENT_ID", {"instrument_id": "7203.OSE"}),
    ("INSTRUMENT_ID", {"instrument_id": "9999.TSE"}), ("INSTRUMENT_ID", {"instrument_id": "表ソ\n.TSE"}),
    ("PRICE", {"price": None}), ("PRICE", {"order_type": "MARKET"}), ("PRICE", {"price": "0"}),
    ("TRIGGER_PRICE", {"trigger_price": "2900"}), ("TRIGGER_PRICE", {**STOP, "trigger_price": None}),
    ("EXPIRE_TIME_NS", {"expire_time_ns": 1}), ("EXPIRE_TIME_NS", {"time_in_force": "GTD"}),
    ("EXPIRE_TIME_NS", {"time_in_force": "GTD", "expire_time_ns": 1_700_000_000 * 10**9}),
    ("TAGS", {"tags": ["cash_margin"]}), ("TAGS", {"tags": ["a=b=c"]}), ("TAGS", {"tags": ["a=表"]}),
    ("SPEED", {"speed": 2}), ("ORDER_SIDE", {"order_side": "buy"}), ("ORDER_TYPE", {"order_type": "limit"}),
], ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_what_breaks_its_shape(shared, tag, change):
    refused(wrong(shared, order=shared.order("shape", **change)), "VALIDATION_ERROR", tag)


def test_what_lies_beyond_the_broker_days(shared):
    beyond = time.time_ns() + 40 * DAY_NS
    order = shared.order("late", time_in_force="GTD", expire_time_ns=beyond)
    refused(wrong(shared, order=order), "VALIDATION_ERROR", "EXPIRE_TIME_NS")


def test_an_unknown_venue(shared):
    """Pin P23b."""
    for op, fields in {
        "SubmitOrder": {"order": shared.order("moon")}, "ModifyOrder": {"client_order_id": "m", "change": {
            "new_price": "1"}}, "CancelOrder": {"client_order_id": "m"}, "CancelAllOrders": {},
    }.items():
        refused(wrong(shared, op, venue="moon", **fields), "VALIDATION_ERROR", "VENUE")


def test_changes_without_sense(shared):
    """Pin P16."""
    for change in ({}, {"new_price": None}, {"new_quantity": "0"}, {"new_price": "-1"}, {"new_speed": "1"}):
        answer = wrong(shared, "ModifyOrder", client_order_id="nobody", change=change)
        refused(answer, "VALIDATION_ERROR")
    refused(wrong(shared, "CancelOrder"), "VALIDATION_ERROR", "CLIENT_ORDER_ID")
    refused(wrong(shared, "GetOrderList", filter={"status": "SLEEPING"}), "VALIDATION_ERROR", "STATUS")
    refused(wrong(shared, "GetOrderList", filter={"date": "2026-11-23"}), "VALIDATION_ERROR", "DATE")


@pytest.mark.parametrize("instrument", ["167060019.OSE", "167060019.TSE", "131120018.TSE", "167060019"])
def test_futures_and_options(shared, instrument):
    refused(wrong(shared, order=shared.order("f", instrument_id=instrument)), "UNSUPPORTED_INSTRUMENT", "FUTURES")
    refused(wrong(shared, "CancelAllOrders", instrument_id=instrument), "UNSUPPORTED_INSTRUMENT", "FUTURES")


@pytest.mark.parametrize("tag, change", [
    ("MARKET_IF_TOUCHED", {**STOP, "order_type": "MARKET_IF_TOUCHED"}),
    ("LIMIT_IF_TOUCHED", {"order_type": "LIMIT_IF_TOUCHED", "trigger_price": "2800"}),
    ("GTC", {"time_in_force": "GTC"}), ("IOC", {"time_in_force": "IOC"}), ("FOK", {"time_in_force": "FOK"}),
    (None, {**STOP, "trigger_type": "BID_ASK"}), ("POST_ONLY", {"post_only": True}),
    ("REDUCE_ONLY", {"reduce_only": True}),
    ("CONFLICTING_TAGS", {"tags": ["cash_margin=cash", "cash_margin=margin_credit_new"]}),
    ("CONFLICTING_TAGS", {"tags": ["account_type=general", "account_type=specific"]}),
    ("CONFLICTING_TAGS", {"tags": ["close_strategy=funari"]}),
    ("CONFLICTING_TAGS", {"tags": ["cash_margin=margin_credit_new", "account_type=nisa"]}),
    ("CONFLICTING_TAGS", {"tags": ["close_action=physical_settle_buy"]}),
    ("ACCOUNT_TYPE", {"tags": ["account_type=nisa"]}), ("ACCOUNT_TYPE", {"tags": ["account_type=nisa_growth"]}),
], ids=lambda value: value if isinstance(value, str) else None)
def test_what_the_broker_cannot_do(shared, tag, change):
    refused(wrong(shared, order=shared.order("cannot", **change)), "VENUE_UNSUPPORTED", tag)


def test_phases(world):
    """Pin P34."""
    one = world("--web-broker", "order_phase=O0")
    one.ready()
    for change in ({}, {**MARKET, "order_side": "SELL"}, {**MARKET, "tags": ["cash_margin=cash"]},
                   {**MARKET, "time_in_force": "AT_THE_OPEN"}, {**MARKET, "post_only": True},
                   {**MARKET, "reduce_only": True}, {**MARKET, "trigger_type": "LAST"}):
        refused(one.submit("early", **change), "UNSUPPORTED_IN_PHASE_O0", "PHASE")
    number = one.placed("market", **MARKET)
    refused(one.modify("market", new_quantity="100"), "UNSUPPORTED_IN_PHASE_O0", "PHASE")
    refused(one.cancel("market"), "UNSUPPORTED_IN_PHASE_O0", "PHASE")
    refused(one.cancel_all(), "UNSUPPORTED_IN_PHASE_O0", "PHASE")
    refused(one.send("GetOrderList", filter={})(), "UNSUPPORTED_IN_PHASE_O0", "PHASE")
    one.kill_engine()
    one.arguments = (*one.arguments, "--web-broker", "order_phase=O1")
    one.ready()
    for change in (STOP, {"tags": ["cash_margin=margin_credit_new"]}, {"time_in_force": "AT_THE_CLOSE"},
                   {"trigger_type": "LAST"}):
        refused(one.submit("early", **change), "VENUE_UNSUPPORTED", "PHASE" if "trigger_type" not in change else None)
    assert one.cancel("market")["event"] in ("OrderCanceled", "OrderRejected")
    assert [order["number"] for order in one.broker.orders()] == [number]
    one.check()


@pytest.mark.parametrize("form", [SPEC, VENDOR])
def test_the_second_password(world, form):
    """Pins P41, P42: asked for, refused, locked, and open again with time."""
    one = world("--web-broker", "second_password_lockout_secs=1", form=form)
    one.ready()
    number = one.placed("kept")
    one.client.send("ForgetSecondPassword")
    for op, fields in {
        "SubmitOrder": {"order": one.order("a")}, "CancelOrder": {"client_order_id": "kept"}, "CancelAllOrders": {},
        "ModifyOrder": {"client_order_id": "kept", "change": {"new_price": "2790"}},
    }.items():
        since = len(one.client.events)
        request_id = one.client.send(op, venue="web_broker", **fields)
        one.client.wait("SecondPasswordRequired", since=since, request_id=request_id)
        one.client.send("ForgetSecondPassword")
        told = one.client.wait("OrderRejected", since=since, request_id=request_id)
        refused(told, "SECOND_PASSWORD_REQUIRED", "NO_PASSWORD")
        assert one.client.since(since, "OrderSubmitted") == []
    for name in "abc":
        one.password("canary-wrong")
        refused(one.submit(name), "SECOND_PASSWORD_INVALID")
    one.password()
    for answer in (one.submit("d"), one.cancel("kept"), one.cancel_all(), one.modify("kept", new_price="2790")):
        refused(answer, "SECOND_PASSWORD_LOCKED", "LOCKED")
    assert [order["number"] for order in one.broker.orders()] == [number]
    one.until(lambda: one.submit("d")["event"] == "SubmitOrderResult", "the lock ends")
    assert len(one.broker.orders()) == 2
    one.check()


def test_a_second_password_is_forgotten(world):
    """With time, with the broker's night, and with other addresses of a session."""
    one = world("--web-broker", "second_password_idle_secs=1")
    one.ready()
    one.until(lambda: one.modify("nobody", new_price="2790")["event"] == "OrderRejected", "a command without use of it")
    time.sleep(1.2)
    assert one.submit("idle")["event"] == "SecondPasswordRequired"
    one.password()
    one.fault("venue-closed", value=900)
    one.until(lambda: one.submit("night")["event"] == "OrderRejected", "the frame has come")
    refused(one.submit("night"), "MARKET_CLOSED", "VENUE_CLOSED")
    one.broker.control({"do": "clear-faults", "name": "venue-closed"})
    one.until(lambda: one.submit("night")["event"] != "OrderRejected", "it is open again")
    assert one.submit("night")["event"] == "SecondPasswordRequired"
    one.password()
    one.login()
    # The new stream tells the day's phases again, the one that was closed too, and then that it is open.
    told = one.submit("addresses")
    while told["event"] == "OrderRejected":
        refused(told, "MARKET_CLOSED", "VENUE_CLOSED")
        told = one.submit("addresses")
    assert told["event"] == "SecondPasswordRequired", told
    assert one.broker.orders() == []
    one.check()


@pytest.mark.parametrize("form", [SPEC, VENDOR])
def test_an_ended_session(world, form):
    """Pins P14, P23a, P23b."""
    one = world(form=form)
    one.start()
    for when, tag in (("early", "NOT_LOGGED_IN"), ("frozen", "FROZEN")):
        if when == "frozen":
            one.login()
            one.password()
            one.placed("kept")
            one.fault("errno", value=2, request=NEW, times=1)
            refused(one.submit("last"), "SESSION_EXPIRED", "SESSION_EXPIRED")
        refused(one.submit(when), "SESSION_EXPIRED", tag)
        refused(one.cancel_all(), "SESSION_EXPIRED", tag)
        refused(one.send("GetOrderList", filter={})(), "SESSION_EXPIRED", tag)
        for op in ("GetBuyingPower", "GetPositions"):
            told = one.send(op)()
            assert (told["event"], told["code"]) == ("Error", "SESSION_EXPIRED"), told
    refused(one.modify("kept", new_price="2790"), "SESSION_EXPIRED", "FROZEN")
    refused(one.cancel("kept"), "SESSION_EXPIRED", "FROZEN")
    lines = check_log(one.engine.config / "web_broker_orders.jsonl")
    phases = [line["phase"] for line in lines]
    assert phases == ["submit", "accepted", "submit", "session_expired", "rejected"]
    assert lines[-1]["reason_code"] == "SESSION_EXPIRED" and lines[-1]["client_order_id"] == "last"
    one.check()


def test_no_connection(world):
    """Pin P32: the broker's machine refuses the connection, and nothing was sent."""
    one = world()
    one.ready()
    one.placed("kept")
    one.broker.process.kill()
    one.broker.process.wait()
    for answer in (one.submit("a"), one.cancel("kept"), one.modify("kept", new_price="2790")):
        refused(answer, "CONNECTION_ERROR", "CONNECTION_REFUSED")
    assert one.client.ask("GetVenueState", "VenueState", venue="web_broker")["state"] == "Ready", "no logout"
    phases = [line["phase"] for line in check_log(one.engine.config / "web_broker_orders.jsonl")]
    assert phases == ["submit", "accepted"]
    # The log as SQL sees it, while the engine has it open.
    query = "SELECT run, phase, client_order_id FROM audit ORDER BY phase DESC"
    asked = [program(), "sql", "--config-dir", one.engine.config, "--prices", one.folder, "--format", "csv", query]
    rows = subprocess.run(asked, capture_output=True, check=True, text=True).stdout.splitlines()
    assert rows == ["run,phase,client_order_id", "live,submit,kept", "live,accepted,kept"], rows


@pytest.mark.parametrize("form", [SPEC, VENDOR])
def test_out_of_hours(world, form):
    """By the broker's word only (pin P2): a result code, p_errno -12 and -62, and a frame."""
    one = world(form=form)
    one.ready()
    one.placed("kept")
    one.fault("result", value=11102, request=NEW, times=1)
    refused(one.submit("by-code"), "MARKET_CLOSED", "11102")
    one.fault("result", value=13122, request=CANCEL, times=1)
    refused(one.cancel("kept"), "MARKET_CLOSED", "13122")
    one.fault("venue-closed", value=300)
    one.until(lambda: one.submit("by-frame")["event"] == "OrderRejected", "the frame has come")
    refused(one.submit("by-frame"), "MARKET_CLOSED", "VENUE_CLOSED")
    one.broker.control({"do": "clear-faults", "name": "venue-closed"})
    one.until(lambda: one.submit("open")["event"] == "SubmitOrderResult", "it is open again")
    for errno in (-12, -62):
        # Until the broker says that it is open, which a list that it answers between two orders does too.
        for attempt in range(10):
            one.fault("errno", value=errno, request=NEW, times=1)
            told = one.submit(f"by{errno}-{attempt}")
            refused(told, "MARKET_CLOSED", f"P_ERRNO_MINUS_{-errno}")
            told = one.submit(f"after{errno}-{attempt}")
            if told["event"] != "SubmitOrderResult":
                break
        refused(told, "MARKET_CLOSED", "VENUE_CLOSED")
        one.fault("venue-closed", value=300)
        one.broker.control({"do": "clear-faults", "name": "venue-closed"})
        one.until(lambda: one.submit(f"open{errno}")["event"] == "SubmitOrderResult", "it is open again")
    one.check()


def test_out_of_hours_by_the_masters(world):
    """What they say counts before any frame has come (pin P2)."""
    one = world(broker=("--fault", "venue-closed=300", "--fault", "refuse-events"))
    one.start()
    one.client.send("RequestVenueLogin", venue="web_broker")
    one.client.wait("VenueCredentialsRefreshed")
    one.password()
    refused(one.submit("closed"), "MARKET_CLOSED", "VENUE_CLOSED")
    assert one.requests(NEW) == []


def test_the_night_s_closing_in_an_early_phase(world):
    """Frames of the venue count in every phase (pin P34)."""
    one = world("--web-broker", "order_phase=O1")
    one.ready()
    names = (f"night{number}" for number in range(10**6))
    one.fault("venue-closed", value=900)
    one.until(lambda: one.submit(next(names))["event"] == "OrderRejected", "the frame has come")
    refused(one.submit("night"), "MARKET_CLOSED", "VENUE_CLOSED")
    one.broker.control({"do": "clear-faults", "name": "venue-closed"})
    one.until(lambda: one.submit("open")["event"] == "SecondPasswordRequired", "the second password was forgotten")


def test_what_the_account_lacks(world):
    """Pin P40."""
    one = world(broker=("--cash", "285000", "--margin", "300000", "--holding", "7261=100"))
    one.ready()
    for change, tag in (
        ({"quantity": "200", "price": "2850"}, "CASH"), (MARKET, "CASH"),
        ({"order_side": "SELL", "price": "2900"}, "SELLABLE"),
        ({"order_side": "SELL", "instrument_id": "7261.TSE", "quantity": "200", "price": "990"}, "SELLABLE"),
        ({"order_side": "SELL", "instrument_id": "7261.TSE", "price": "990", "tags": ["account_type=general"]},
         "SELLABLE"),
        ({"quantity": "200", "tags": ["cash_margin=margin_credit_new"]}, "MARGIN"),
        ({"quantity": "200", "order_side": "SELL", "price": "2900", "tags": ["cash_margin=margin_credit_new"]},
         "MARGIN"),
        ({"order_side": "SELL", "price": "2900", "tags": ["cash_margin=margin_credit_repay", "tategyoku=1"]},
         "TATEGYOKU"),
    ):
        refused(one.submit("poor", **change), "INSUFFICIENT_FUNDS", tag)
    assert one.requests(NEW) == [] and one.broker.orders() == []
    assert (one.engine.config / "web_broker_orders.jsonl").read_bytes() == b"", "a guard leaves no line"
    one.placed("rich", price="2850")
    one.check()


@pytest.mark.parametrize("form", [SPEC, VENDOR])
def test_what_the_broker_refuses(world, form):
    one = world(form=form)
    one.ready()
    one.placed("kept")
    one.fault("result", value=11249, request=NEW, times=1)
    told = refused(one.submit("by-code"), "VENUE_REJECTED", "11249")
    assert "指定された異常です" in told["reason_text"], "the broker's own words"
    # By the broker itself: a price that the day does not allow.
    told = refused(one.submit("limit", price="10000", quantity="100"), "VENUE_REJECTED")
    assert re.match(r"1\d{4}: \S", told["reason_text"])
    for errno, tag in ((6, "P_ERRNO_6"), (8, "P_ERRNO_8"), (-1, "P_ERRNO_MINUS_1"), (1, "P_ERRNO_1")):
        one.fault("errno", value=errno, request=NEW, times=1)
        refused(one.submit(f"errno{errno}"), "VENUE_REJECTED", tag)
    one.fault("errno", value=-1, request=CANCEL, times=1)
    refused(one.cancel("kept"), "VENUE_REJECTED", "P_ERRNO_MINUS_1")
    one.fault("result", value=12249, request=CORRECT, times=1)
    since = len(one.client.events)
    refused(one.modify("kept", new_price="2790"), "VENUE_REJECTED", "12249")
    if form == SPEC:
        # It counts as rejected until the list that follows (pin P26).
        one.client.wait("OrderAccepted", client_order_id="kept", since=since)
    assert one.cancel("kept")["event"] == "OrderCanceled", "it works on after that"
    refused(one.cancel("kept"), "VENUE_REJECTED", "ORDER_STATE")
    assert len(one.broker.orders()) == 1
    # Every one of them is free again (pin P21).
    assert one.placed("by-code") and one.placed("errno6")
    one.check()


def test_an_order_without_a_number(world):
    """Neither known nor numbered: nothing is sent."""
    one = world()
    one.ready()
    for answer in (one.cancel("nobody"), one.modify("nobody", new_price="1"), one.cancel("", number="99999999"),
                   one.modify("", number="99999999", new_price="1")):
        refused(answer, "ORDER_STATUS_UNKNOWN")
    one.fault("drop-answer", request=NEW, times=1)
    one.fault("delay-answer", value=700, request="CLMOrderList", times=2)
    unknown = one.submit("lost")
    assert (unknown["event"], unknown["code"]) == ("Error", "INTERNAL_ERROR"), unknown
    refused(one.cancel("lost"), "ORDER_STATUS_UNKNOWN")
    refused(one.modify("lost", new_price="2790"), "ORDER_STATUS_UNKNOWN")
    assert one.known("lost")["event"] == "OrderAccepted"
    assert one.requests(CANCEL) == one.requests(CORRECT) == []
    one.check()


def test_nothing_is_at_the_broker(world):
    """Pin P20; the log has a line of each, and both ids are free."""
    one = world()
    one.ready()
    for name, fault in (("dropped", {"name": "drop-before"}), ("status", {"name": "http-status", "value": 503})):
        one.fault(request=NEW, times=1, **fault)
        unknown = one.submit(name)
        assert (unknown["event"], unknown["code"]) == ("Error", "INTERNAL_ERROR"), unknown
        refused(one.known(name), "INTERNAL_ERROR", "NOT_AT_BROKER")
        assert one.placed(name)
    phases = [line["phase"] for line in check_log(one.engine.config / "web_broker_orders.jsonl")]
    assert phases == ["submit", "rejected", "submit", "accepted"] * 2
    one.check()


@pytest.mark.parametrize("fault", [{"name": "garbage"}, {"name": "half-answer"}, {"name": "drop-answer"},
                                   {"name": "errno", "value": -2}, {"name": "http-status", "value": 500},
                                   {"name": "result", "value": 990001}], ids=lambda fault: fault["name"])
def test_a_balance_that_cannot_be_had(shared, fault):
    """Nothing was sent, so it is a refusal (pin P40)."""
    shared.fault(request="CLMZanKaiKanougaku", times=1, **fault)
    refused(shared.submit("guard"), "INTERNAL_ERROR", "GUARD")


def test_a_master_without_dates(world):
    """Pin P4: orders with a date fail, and no others."""
    one = world(broker=("--fault", "no-date-master"))
    one.ready()
    dated = one.submit("dated", time_in_force="GTD", expire_time_ns=time.time_ns() + DAY_NS)
    refused(dated, "INTERNAL_ERROR", "MASTER_MISSING")
    assert one.placed("undated")
    one.check()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit")
def test_a_log_that_cannot_be_written(world, monkeypatch):
    """A line that is not on the disk: nothing is sent, the log is cut back, the id is free (pin P22)."""
    real = subprocess.Popen
    # A file that may not grow is an error to it, and not its death by a signal.
    monkeypatch.setattr(subprocess, "Popen", lambda *all, **how: real(*all, restore_signals=False, **how))
    one = world()
    one.ready()
    one.placed("before")
    log = one.engine.config / "web_broker_orders.jsonl"
    whole = log.read_bytes()
    pid, free = one.engine.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (0, 1, 100):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (len(whole) + room, free[1]))
        refused(one.submit("full"), "INTERNAL_ERROR", "AUDIT_LOG")
        assert log.read_bytes() == whole
    resource.prlimit(pid, resource.RLIMIT_FSIZE, free)
    assert len(one.requests(NEW)) == 1
    assert one.placed("full")
    assert [line["phase"] for line in check_log(log)] == ["submit", "accepted"] * 2
    one.check()


def test_texts_of_a_broker_that_chatters(shared):
    """What is repeated of a command is cut and shown on one line."""
    long = "表" * 2_000
    for change in ({"instrument_id": f"{long}.TSE"}, {"instrument_id": "a\r\nb\u2028c\x7f"}, {"tags": [f"{long}=1"]},
                   {long: 1}, {"a\nb": 1}):
        answer = wrong(shared, order=shared.order("chatter", **change))
        refused(answer, "VALIDATION_ERROR")
    assert plain_client.SCHEMA_MINOR == 4
