"""Sessions that trade: with an engine that nobody has logged in, and with one that is played by a script."""

import asyncio
import getpass
import inspect
import json
import logging
import subprocess
import sys
import time
import traceback
import uuid
import warnings
from decimal import Decimal

import kumiki
import kumiki.aio
import kumiki.live
import pytest
from conftest import ROOT, program
from kumiki._requests import Request, Requests
from kumiki.events import Event
from venue_engine import TOKEN, VENUE, VenueEngine

ORDER = {"client_order_id": "mine", "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "LIMIT",
         "quantity": 100, "price": "2440.50"}
TIME = 1_736_121_600_000
STRATEGY = {"instrument_id": "7203.TSE", "strategy_file": "sma-cross", "max_qty": 100, "max_notional_jpy": 500_000}


# --- The engine as it is.


@pytest.fixture
def trading(tmp_path):
    """A running engine in live mode: the folder with its session file."""
    config = tmp_path / "config"
    command = [program(), "serve", "--mode", "live", "--standalone", "--port", "0", "--config-dir", config,
               "--cache-dir", tmp_path / "cache"]
    engine = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    engine.stdout.readline()
    yield config
    engine.kill()
    engine.communicate()


def test_a_venue_without_orders_says_so(trading):
    """P58: every command about orders, so that none is taken for one of another venue; P44: what it can do."""
    with kumiki.LiveSession(attach=trading, venue="local_broker") as one:
        assert (one.mode, one.status, one.venue) == ("attach", "idle", "local_broker")
        assert one.venue_capabilities == {
            "requires_local_app": True, "max_push_symbols": 50, "supports_amend": False,
            "requires_trade_password_for_cancel": True, "is_production": False,
        }
        assert one.capabilities["strategy_engine"]["replay"] is False
        assert one.session().state == "Idle" and one.venue_state().state == "Disconnected"
        for command in (
            lambda: one.submit_order(**ORDER), one.cancel_all, lambda: one.cancel_order(venue_order_id="1"),
            lambda: one.modify_order(client_order_id="mine", new_price=2_450),
        ):
            with pytest.raises(kumiki.VenueUnsupportedError, match="PHASE_1: ") as refused:
                command()
            assert refused.value.reason_code == "VENUE_UNSUPPORTED"
        with pytest.raises(kumiki.UnsupportedInstrumentError, match="FUTURES: "):
            one.submit_order(**{**ORDER, "instrument_id": "160060018.OSE"})
        with pytest.raises(kumiki.BusyError):
            one.stop()
    with kumiki.LiveSession(attach=trading, venue="moon") as one:
        with pytest.raises(kumiki.ValidationError, match="^VENUE: `moon`"):
            one.login()


def test_nothing_is_sent_before_a_login(trading):
    with kumiki.LiveSession(attach=trading) as one:
        assert one.venue_capabilities == VENUE and one.venue_state().state == "Disconnected"
        for command in (
            lambda: one.submit_order(**ORDER), one.order_list, one.cancel_all,
            lambda: one.modify_order(client_order_id="mine", new_price=2_450),
            lambda: one.cancel_order(venue_order_id="1"),
        ):
            with pytest.raises(kumiki.OrderRejectedError) as refused:
                command()
            assert refused.value.reason_code in ("SESSION_EXPIRED", "ORDER_STATUS_UNKNOWN")
        for command in (one.positions, one.buying_power):
            with pytest.raises(kumiki.KumikiError, match="NOT_LOGGED_IN"):
                command()
        with pytest.raises(kumiki.VenueNotAvailableError, match="for market data use local_broker"):
            one.subscribe("7203")
        assert one.set_second_password(value="x") is None and one.forget_second_password() is None


def test_an_engine_of_the_other_mode_is_refused(trading, start):
    with pytest.raises(kumiki.ModeError) as refused:
        kumiki.ReplaySession(attach=trading).open()
    assert refused.value.code == "mode_mismatch"
    replay = start(standalone=True)
    # Also where any that runs is looked for: another one could not be started beside it.
    for how in ({"attach": replay.session_file}, {"config_dir": replay.config_dir}):
        with pytest.raises(kumiki.ModeError):
            kumiki.LiveSession(**how).open()


def test_an_own_engine_keeps_what_must_last(tmp_path, monkeypatch):
    """What protects orders from being sent twice lies in the folder for settings, which stays."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "system"))
    how = {"program": program(), "cache_dir": tmp_path / "cache", "attach": None}
    for config, told, variable in (
        (tmp_path / "own", {"config_dir": tmp_path / "own"}, ""), (tmp_path / "told", {}, str(tmp_path / "told")),
        (tmp_path / "system/kumiki", {}, ""),
    ):
        if not told and not variable and sys.platform != "linux":
            continue
        monkeypatch.setenv("KUMIKI_CONFIG_DIR", variable)
        with kumiki.LiveSession(**how, **told) as one:
            assert one.mode == "spawn" and (config / "engine-session.json").is_file()
            assert one.venue_state().state == "Disconnected"
            with pytest.raises(kumiki.EngineStartError) as second:
                kumiki.LiveSession(**how, **told).open()
            assert second.value.exit_code == 15
            with kumiki.LiveSession(config_dir=config) as other:
                assert other.mode == "attach"
        assert config.is_dir()
    with pytest.raises(kumiki.ConnectionLostError, match="not open"):
        one.login()


# --- An engine with a venue.


@pytest.fixture
def played():
    """Makes sessions with an engine that a function plays."""
    opened = []

    def played(play, **how):
        engine = VenueEngine(play)
        one = kumiki.LiveSession(attach=engine.port, token=TOKEN, **how)
        opened.append((one, engine))
        return one.open(), engine

    yield played
    for one, engine in opened:
        one.close()
        engine.close()


def event(name, command, **fields):
    return {"event": name, "request_id": command["request_id"], **fields}


def of_order(name, command, client_order_id="mine", **fields):
    return event(name, command, client_order_id=client_order_id, ts_event_ms=TIME, venue="web_broker", **fields)


def taken(command, outcome="Created", venue_order_id="77", **warning):
    return event(
        "SubmitOrderResult", command, client_order_id=command["order"]["client_order_id"], outcome=outcome,
        status="SUBMITTED" if venue_order_id is None else "ACCEPTED", venue_order_id=venue_order_id,
        **{"warning_code": None, "warning_text": None, **warning},
    )


def test_a_login(played):
    answers = []
    one, engine = played(lambda command: answers.pop(0)(command))
    started = {"event": "VenueLoginStarted", "venue": "web_broker"}
    answers.append(lambda command: [
        {**started, "request_id": command["request_id"]},
        {"event": "VenueReady", "venue": "local_broker"},
        event("VenueReady", command, venue="web_broker"),
        {"event": "VenueCredentialsRefreshed", "venue": "web_broker", "session_epoch": 1, "changed": [], "ts_ms": 1},
    ])
    assert one.login() is None
    assert one.venue_capabilities == VENUE and engine.heard[0]["venue"] == "web_broker"
    # One that was under way already: its end has the id of who asked first.
    answers.append(lambda _: [started, {"event": "VenueReady", "venue": "web_broker", "request_id": "another"}])
    one.login()
    for code in ("login_failed", "local_app_down", "token_expired"):
        answers.append(lambda _, code=code: [
            {"event": "VenueError", "venue": venue, "code": code, "message": f"as told by {venue}"}
            for venue in ("local_broker", "web_broker")])
        with pytest.raises(kumiki.VenueError, match="as told by web_broker") as failed:
            one.login()
        assert (failed.value.code, failed.value.venue) == (code, "web_broker")
    for named in ({}, {"request_id": "another"}):
        answers.append(lambda _, named=named: [{"event": "VenueLoginCancelled", "venue": "web_broker", **named}])
        with pytest.raises(kumiki.VenueError) as failed:
            one.login()
        assert failed.value.code == "login_cancelled"
    answers.append(lambda command: [event("Error", command, code="rate_limited", message="slowly")])
    with pytest.raises(kumiki.VenueError, match="slowly"):
        one.login()
    answers.append(lambda _: [started])
    with pytest.raises(kumiki.EngineTimeoutError, match="RequestVenueLogin within 0.2 s"):
        one.login(timeout=0.2)
    answers.append(lambda command: [event(
        "VenueState", command, venue="web_broker", state="Ready", push=None, code=None, since_ms=TIME)])
    state = one.venue_state()
    assert (state.state, state.since_ns, kumiki.to_datetime(state.since_ns).year) == ("Ready", TIME * 10**6, 2025)


def test_an_order_is_sent_as_the_payload_says(played):
    one, engine = played(lambda command: [
        of_order("OrderSubmitted", command), of_order("OrderAccepted", command, venue_order_id="77"), taken(command)])
    sent = one.submit_order(**ORDER)
    assert sent == kumiki.SubmitOrderResult("mine", "Created", "ACCEPTED", "77", None, None)
    one.submit_order(
        client_order_id="all", instrument_id="7203.TSE", order_side="SELL", order_type="STOP_LIMIT",
        quantity=Decimal(200), price=Decimal("2440.0"), trigger_price=2445, trigger_type="LAST", time_in_force="GTD",
        expire_time_ns=kumiki.to_datetime(TIME * 10**6), post_only=True, reduce_only=True, tags=["cash_margin=cash"],
    )
    plain = {"client_order_id": "mine", "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "LIMIT",
             "quantity": "100", "price": "2440.5", "time_in_force": "DAY", "post_only": False, "reduce_only": False}
    full = {"client_order_id": "all", "instrument_id": "7203.TSE", "order_side": "SELL", "order_type": "STOP_LIMIT",
            "quantity": "200", "price": "2440", "trigger_price": "2445", "trigger_type": "LAST",
            "time_in_force": "GTD", "expire_time_ns": TIME * 10**6, "post_only": True, "reduce_only": True,
            "tags": ["cash_margin=cash"]}
    assert [command["order"] for command in engine.heard] == [plain, full]
    assert {command["venue"] for command in engine.heard} == {"web_broker"}
    for wrong in ({"price": 2440.5}, {"quantity": True}):
        with pytest.raises(kumiki.ValidationError, match="exact amount"):
            one.submit_order(**{**ORDER, **wrong})
    with pytest.raises(TypeError, match="client_order_id"):
        one.submit_order(**{name: value for name, value in ORDER.items() if name != "client_order_id"})
    assert len(engine.heard) == 2


def test_the_guide_trades(played, monkeypatch):
    """The script of the package's guide, with an engine that has a venue and asks for the password."""
    guide = (ROOT / "clients" / "python" / "README.md").read_text(encoding="utf-8")
    script, = (block for block in guide.split("```python\n")[1:] if 'LiveSession(venue="web_broker")' in block)
    script = script.split("```")[0]
    asked = []

    def play(command):
        answers = {
            "RequestVenueLogin": ("VenueReady", {"venue": "web_broker"}),
            "SetSecondPassword": ("SecondPasswordSet", {}),
        }
        if command["op"] in answers:
            name, fields = answers[command["op"]]
            return [event(name, command, **fields)]
        asked.append(command)
        return [event("SecondPasswordRequired", command)] if len(asked) == 1 else [taken(command)]

    one, engine = played(play)
    monkeypatch.setattr(kumiki.live, "LiveSession", lambda venue: one)
    monkeypatch.setattr("getpass.getpass", lambda: "1234")
    names = {"kumiki": kumiki, "uuid": uuid, "getpass": getpass}
    exec(script, names)
    assert engine.ops() == ["RequestVenueLogin", "SubmitOrder", "SetSecondPassword", "SubmitOrder"]
    assert asked[0]["order"] == asked[1]["order"] and names["sent"].outcome == "Created"


def test_every_argument_has_a_name_and_answers_may_take_30_seconds():
    for name, method in inspect.getmembers(kumiki.LiveSession, inspect.isfunction):
        if name in ("submit_order", "modify_order", "cancel_order", "cancel_all", "login", "run", "__init__",
                    "set_second_password"):
            kinds = [one.kind for one in inspect.signature(method).parameters.values()][1:]
            assert set(kinds) == {inspect.Parameter.KEYWORD_ONLY}, name
    assert inspect.signature(kumiki.LiveSession).parameters["timeout"].default == 30


def test_an_order_that_is_refused(played):
    answers = []
    one, _ = played(lambda command: answers.pop(0)(command))

    def rejected(code, text):
        return lambda command: [of_order("OrderSubmitted", command), of_order(
            "OrderRejected", command, reason_code=code, reason_text=text)]

    for code, text in (("VENUE_REJECTED", "11005: not enough"), ("SESSION_EXPIRED", "NOT_LOGGED_IN: log in"),
                       ("SECOND_PASSWORD_INVALID", "P_ERRNO_4: wrong"), ("SECOND_PASSWORD_LOCKED", "LOCKED: wait")):
        answers.append(rejected(code, text))
        with pytest.raises(kumiki.OrderRejectedError) as refused:
            one.submit_order(**ORDER)
        assert (refused.value.reason_code, refused.value.reason_text) == (code, text)
        assert refused.value.client_order_id == "mine"
    answers.append(lambda command: [event("Error", command, code="conflict", message="other", venue_order_id=None)])
    with pytest.raises(kumiki.ConflictError):
        one.submit_order(**ORDER)
    answers.append(lambda command: [
        {"event": "EngineBusy", "request_id": command["request_id"], "current_state": "Running", "reason": "a replay",
         "attempted_command": "SubmitOrder"}])
    with pytest.raises(kumiki.BusyError):
        one.submit_order(**ORDER)


def test_an_unknown_outcome_has_a_class_of_its_own(played):
    """A script must not send the order anew: that is told of every command that may have reached the venue, and of no
    other."""
    one, engine = played(
        lambda command: [event("Error", command, code="INTERNAL_ERROR", message="OUTCOME_UNKNOWN: no answer came")])
    change = {"venue_order_id": "77", "new_price": 2500}
    for ask, order_id in (
        (lambda: one.submit_order(**ORDER), "mine"),
        (lambda: one.modify_order(client_order_id="mine", **change), "mine"),
        (lambda: one.modify_order(**change), None), (lambda: one.cancel_order(client_order_id="mine"), "mine"),
        (lambda: one.cancel_order(venue_order_id="77"), None), (one.cancel_all, None),
    ):
        with pytest.raises(kumiki.OrderOutcomeUnknownError, match="no answer came") as unknown:
            ask()
        assert (unknown.value.code, unknown.value.client_order_id) == ("INTERNAL_ERROR", order_id)
        assert isinstance(unknown.value, kumiki.InternalError), "what was caught before still is"
        assert not isinstance(unknown.value, kumiki.OrderRejectedError)
    for ask in (one.order_list, one.positions, one.buying_power):
        with pytest.raises(kumiki.InternalError) as failed:
            ask()
        assert type(failed.value) is kumiki.InternalError
    assert len(engine.heard) == 9, "nothing is sent again by itself"


def test_the_second_password_is_asked_for_and_the_order_sent_again(played):
    held = []

    def play(command):
        op = command["op"]
        if op == "SetSecondPassword":
            held.append(command["value"])
            return [event("SecondPasswordSet", command)]
        if op == "Ping":
            return [event("Pong", command, ts_ms=1)]
        if op == "ForgetSecondPassword":
            return held.clear() or []
        if not held:
            return [event("SecondPasswordRequired", command)]
        return [taken(command)]

    one, engine = played(play)
    with pytest.raises(kumiki.SecondPasswordRequiredError, match="SubmitOrder: the second password is needed") as asked:
        one.submit_order(**ORDER)
    assert (asked.value.client_order_id, asked.value.code) == ("mine", "second_password_required")
    assert engine.ops() == ["SubmitOrder"], "nothing is sent again by itself"
    one.set_second_password(value="1234")
    assert one.submit_order(**ORDER).venue_order_id == "77"
    first, _, again = engine.heard
    assert first["order"] == again["order"] and first["request_id"] != again["request_id"]
    assert one.forget_second_password() is None and held == []
    for command, name in (
        (lambda: one.modify_order(client_order_id="mine", new_quantity=200), "mine"), (one.cancel_all, None),
        (lambda: one.cancel_order(client_order_id="mine"), "mine"),
        (lambda: one.cancel_order(venue_order_id="1"), None),
    ):
        with pytest.raises(kumiki.SecondPasswordRequiredError) as asked:
            command()
        assert asked.value.client_order_id == name


def test_the_second_password_is_seen_nowhere(played, caplog):
    """Neither where everything is logged, nor in what is raised, nor in what objects show of themselves."""
    secret = "-".join(("open", "sesame"))
    answers = []
    for name in (None, "websockets", "websockets.client", "asyncio", "kumiki", "kumiki.engine", "kumiki.connection"):
        caplog.set_level(logging.DEBUG, logger=name)
    one, engine = played(lambda command: answers.pop(0)(command), timeout=0.3)
    shown = [repr(one), repr(one._core), str(vars(one)), str(vars(one._core))]
    one._loop._loop.set_debug(True)

    def fails(command):
        pending = list(one._core._connection._requests._waiting.values())
        shown.extend(map(repr, pending))
        shown.extend(repr(task) for task in asyncio.all_tasks(one._loop._loop))
        return [event("Error", command, code="validation_error", message="VALUE: too long")]

    answers += [fails, lambda _: [], lambda command: [event("SecondPasswordSet", command)]]
    for error in (kumiki.ValidationError, kumiki.EngineTimeoutError):
        with pytest.raises(error) as refused:
            one.set_second_password(value=secret)
        told = "".join(traceback.format_exception(refused.type, refused.value, refused.tb))
        shown += [repr(refused.value), str(vars(refused.value)), told]
    one.set_second_password(value=secret)
    with pytest.raises(kumiki.ValidationError, match="^value: give a text$") as wrong:
        one.set_second_password(value=secret.encode())
    shown.append(repr(wrong.value))
    one.close()
    with pytest.raises(kumiki.ConnectionLostError) as closed:
        one.set_second_password(value=secret)
    shown += [repr(closed.value), str(vars(one)), str(vars(one._core))]
    assert [command["value"] for command in engine.heard] == [secret] * 3
    assert caplog.records and len(shown) > 12
    assert [text for text in (caplog.text, *shown) if secret in text] == []


def test_an_answer_that_does_not_come(played):
    """The order may be at the venue: the same call tells, and sends nothing twice."""
    answers = [
        lambda command: [of_order("OrderSubmitted", command)],
        lambda command: [taken(command, "IdempotentReplay", None, warning_code="order_status_unknown",
                               warning_text="read the order list first")],
        lambda command: [event("OrderListUpdated", command, orders=[])],
        lambda command: [taken(command, "IdempotentReplay", "77")],
    ]
    one, engine = played(lambda command: answers.pop(0)(command), timeout=0.5)
    with pytest.raises(TimeoutError, match="SubmitOrder within 0.5 s") as late:
        one.submit_order(**ORDER)
    assert isinstance(late.value, kumiki.EngineTimeoutError)
    again = one.submit_order(**ORDER)
    assert (again.outcome, again.status, again.venue_order_id) == ("IdempotentReplay", "SUBMITTED", None)
    assert (again.warning_code, again.warning_text) == ("order_status_unknown", "read the order list first")
    assert one.order_list() == [] and one.submit_order(**ORDER).venue_order_id == "77"
    assert {command["order"]["client_order_id"] for command in engine.heard if "order" in command} == {"mine"}


def test_the_time_of_an_order_counts_from_its_sending():
    """A login, and a load, may say that they go on; what is told of an order is no answer to it."""
    async def main():
        future = asyncio.get_running_loop().create_future
        waiting = Requests()
        order = Request({"op": "SubmitOrder", "request_id": "1", "order": ORDER}, future(), 10.0)
        login = Request({"op": "RequestVenueLogin", "request_id": "2", "venue": "web_broker"}, future(), 10.0)
        for one in (order, login):
            waiting.add(one)
        waiting.take(Event(of_order("OrderSubmitted", order.fields)), 12.0)
        waiting.take(Event(event("VenueLoginStarted", login.fields, venue="web_broker")), 12.0)
        assert (order.heard, login.heard) == (10.0, 12.0)
        assert not order.done.done() and not login.done.done()

    asyncio.run(main())


def test_an_order_is_changed_and_cancelled(played):
    """A venue confirms a cancel by a notice, which has no request_id."""
    def play(command):
        if command["op"] == "ModifyOrder" and "new_price" not in command["change"]:
            return [of_order("OrderRejected", command, reason_code="ORDER_STATUS_UNKNOWN", reason_text="UNKNOWN: wait")]
        if command["op"] == "ModifyOrder":
            return [of_order("OrderPendingUpdate", command), of_order(
                "OrderUpdated", command, venue_order_id="77", quantity="300", price="2450", trigger_price=None,
                expire_time_ns=None)]
        name = command.get("client_order_id")
        done = {**of_order("OrderCanceled", command, name, venue_order_id="77"), "request_id": None}
        other = {**of_order("OrderCanceled", command, "other", venue_order_id="78"), "request_id": None}
        return [of_order("OrderPendingCancel", command, name), other, done]

    one, engine = played(play)
    changed = one.modify_order(client_order_id="mine", new_quantity=300, new_price=Decimal("2450.0"))
    assert changed == kumiki.ModifyOrderResult("mine", "77", 300, Decimal(2450), None, None, TIME * 10**6)
    with pytest.raises(kumiki.OrderRejectedError, match="ORDER_STATUS_UNKNOWN"):
        one.modify_order(venue_order_id="77", new_trigger_price=1, new_expire_time_ns=5)
    assert [command["change"] for command in engine.heard] == [
        {"new_quantity": "300", "new_price": "2450"}, {"new_trigger_price": "1", "new_expire_time_ns": 5}]
    assert one.cancel_order(client_order_id="mine") == kumiki.CancelOrderResult("mine", "77", TIME * 10**6)
    # One that was placed elsewhere is known by its number alone.
    assert one.cancel_order(venue_order_id="77") == kumiki.CancelOrderResult(None, "77", TIME * 10**6)
    with pytest.raises(ValueError, match="client_order_id"):
        one.cancel_order()


def test_all_orders_are_cancelled(played):
    one, engine = played(lambda command: [
        of_order("OrderPendingCancel", command, "a"), of_order("OrderCanceled", command, "a", venue_order_id="1"),
        of_order("OrderRejected", command, "b", reason_code="VENUE_REJECTED", reason_text="12: too late"),
        event("OrderListUpdated", command, orders=[]),
        event("CancelAllResult", command, canceled_count=1, failed_count=1),
    ] if "order_side" in command else [{
        **of_order("OrderRejected", command, None, reason_code="SESSION_EXPIRED", reason_text="FROZEN: log in")}])
    assert one.cancel_all(instrument_id="7203.TSE", order_side="BUY") == kumiki.CancelAllResult(1, 1)
    with pytest.raises(kumiki.OrderRejectedError, match="SESSION_EXPIRED"):
        one.cancel_all()
    assert "instrument_id" not in engine.heard[1]


def test_the_account(played):
    row = {"client_order_id": None, "venue_order_id": "9", "instrument_id": "7203.TSE", "order_side": "SELL",
           "order_type": "STOP_LIMIT", "quantity": "200", "filled_qty": "100", "leaves_qty": "100", "price": "2440.5",
           "trigger_price": "2445", "time_in_force": "AT_THE_CLOSE", "expire_time_ns": None, "status": "ACCEPTED",
           "ts_event_ms": TIME, "extra": {"Exchange": 1}}
    held = {"instrument_id": "7203.TSE", "qty": "100", "market_value": None, "side": "SELL",
            "position_type": "margin_credit", "tategyoku_id": "T1", "venue": "web_broker"}
    ticker = {"symbol": "7203", "exchange": "TSE", "market_kind": "Stock", "display_name_ja": None}
    answers = {
        "GetOrderList": ("OrderListUpdated", {"orders": [row]}),
        "GetPositions": ("PositionsUpdated", {"venue": "web_broker", "positions": [held], "ts_ms": TIME}),
        "GetBuyingPower": ("BuyingPowerUpdated", {"venue": "web_broker", "cash_available": "1000000.5",
                                                  "cash_shortfall": "0", "credit_available": None, "ts_ms": TIME}),
        "Subscribe": ("Subscribed", {"venue": "web_broker", "ticker": "7203", "ticker_info": ticker}),
        "Unsubscribe": ("Unsubscribed", {"venue": "web_broker", "ticker": "7203"}),
        "Ping": ("Pong", {"ts_ms": TIME}),
    }

    def play(command):
        name, fields = answers[command["op"]]
        trades = {"event": "Trades", "venue": "web_broker", "exchange": "TSE", "ticker": "7203",
                  "stream_session_id": "s", "trades": []}
        return [event(name, command, **fields), *([trades] if name == "Subscribed" else [])]

    one, engine = played(play)
    listed, = one.order_list(status="ACCEPTED", date="2025-01-06")
    assert (listed.client_order_id, listed.venue_order_id, listed.leaves_qty, listed.trigger_price) == (
        None, "9", 100, Decimal(2445))
    assert (listed.origin, listed.extra) == (None, {"Exchange": 1})
    assert engine.heard[0]["filter"] == {"status": "ACCEPTED", "date": "20250106"}
    position, = one.positions()
    assert (position.qty, position.side, position.tategyoku_id, position.market_value) == (100, "SELL", "T1", None)
    power = one.buying_power()
    assert power == kumiki.VenueBuyingPower("web_broker", Decimal("1000000.5"), Decimal(0), None, TIME * 10**6)
    with one.events("Trades", timeout=30) as trades:
        one.subscribe("7203")
        assert next(trades).ticker == "7203"
    one.unsubscribe("7203")


def test_what_the_account_lacks_is_warned_of(played):
    """The engine tells a row that it left out once: of positions and amounts behind the answer, of orders to all."""
    odd = {"event": "OrderDiscrepancy", "venue": "web_broker", "client_order_id": None, "venue_order_id": "9",
           "discrepancy": "unreadable", "message": "order 9 is left out", "ts_event_ms": TIME}
    other = {**odd, "discrepancy": "ambiguous", "message": "of another kind"}
    amounts = {"cash_available": None, "cash_shortfall": None, "credit_available": None}
    answers = {
        "GetOrderList": ("OrderListUpdated", {"orders": []}),
        "GetPositions": ("PositionsUpdated", {"venue": "web_broker", "positions": [], "ts_ms": TIME}),
        "GetBuyingPower": ("BuyingPowerUpdated", {"venue": "web_broker", **amounts, "ts_ms": TIME}),
        "Ping": ("Pong", {"ts_ms": TIME}),
    }
    told = set()

    def play(command):
        name, fields = answers[command["op"]]
        answer = event(name, command, **fields)
        if name == "Pong" or name in told:
            return [answer]
        told.add(name)
        if name == "OrderListUpdated":
            return [odd, other, answer]
        return [answer, event("Error", command, code="INTERNAL_ERROR", message=f"{name} lacks a row")]

    one, _ = played(play)
    for call, words in ((one.order_list, "order 9 is left out"), (one.positions, "PositionsUpdated lacks a row"),
                        (one.buying_power, "BuyingPowerUpdated lacks a row")):
        with warnings.catch_warnings(record=True) as warned:
            # Only of these: files of other tests may be collected here.
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", kumiki.LeftOutWarning)
            first = call()
            assert [(one.category, str(one.message)) for one in warned] == [(kumiki.LeftOutWarning, words)]
            assert call() == first and len(warned) == 1
    told.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", kumiki.LeftOutWarning)
        for call in (one.order_list, one.positions, one.buying_power):
            with pytest.raises(kumiki.LeftOutWarning):
                call()
            call()


def test_the_same_with_asyncio(trading):
    async def main():
        async with kumiki.aio.LiveSession(attach=trading) as one:
            for command in (one.submit_order(**ORDER), one.cancel_all(), one.order_list()):
                with pytest.raises(kumiki.OrderRejectedError, match="NOT_LOGGED_IN"):
                    await command
        engine = VenueEngine(lambda command: [taken(command)])
        async with kumiki.aio.LiveSession(attach=engine.port, token=TOKEN) as one:
            orders = [one.submit_order(**{**ORDER, "client_order_id": f"o{number}"}) for number in range(5)]
            sent = await asyncio.gather(*orders)
            assert [answer.client_order_id for answer in sent] == [f"o{number}" for number in range(5)]
        engine.close()

    asyncio.run(main())


def test_what_no_message_carries_is_no_argument_and_is_said():
    """What other programs of this kind take for a session, a login and a change, held against the messages: what they
    can carry is here under its name, and of the rest the documentation says what there is instead."""
    schema = json.loads((ROOT / "schemas" / "ipc.schema.json").read_text(encoding="utf-8"))["$defs"]
    commands = {kind["properties"]["op"]["const"]: set(kind["properties"]) for kind in schema["Command"]["oneOf"]}
    events = {kind["properties"]["event"]["const"]: set(kind["properties"]) for kind in schema["Event"]["oneOf"]}
    kind = kumiki.LiveSession

    def named(method):
        return set(inspect.signature(method).parameters) - {"self"}

    assert commands["RequestVenueLogin"] == {"op", "request_id", "venue"} and named(kind.login) == {"timeout"}
    for word in ("user_id", "password", "key\n        store"):
        assert word in kind.login.__doc__
    for name in ("OrderUpdated", "OrderCanceled"):
        assert "eig_day" not in events[name]
    for text in (kind.modify_order.__doc__, kumiki.ModifyOrderResult.__doc__, kumiki.CancelOrderResult.__doc__):
        assert "eig_day" in text
    assert not {"demo", "second_password"} & (named(kind.__init__) | commands["RequestVenueLogin"])
    assert "the demo unless" in kind.__doc__ and "set_second_password()" in kind.__doc__
    assert "is_production" in schema["VenueCapabilities"]["properties"] and "is_production" in kind.__doc__
    order = set(schema["SubmitOrderRequest"]["properties"])
    assert named(kind.submit_order) == order, "an order has the names of its message"
    change = set(schema["OrderModifyChange"]["properties"])
    which = {"client_order_id", "venue_order_id"}
    assert named(kind.modify_order) == change | which and which <= commands["ModifyOrder"]
    assert named(kind.cancel_order) == which and which <= commands["CancelOrder"]
    assert named(kind.cancel_all) == {"instrument_id", "order_side"} <= commands["CancelAllOrders"]
    for method, op in ((kind.settle_order, "SettleOrder"), (kind.adjust_strategy_position, "AdjustStrategyPosition")):
        assert named(method) == commands[op] - {"op", "request_id"}, op
    config = set(schema["EngineStartConfig"]["properties"]) - {"start_date", "end_date", "multiplier", "instrument_ids"}
    assert named(kind.run) == config | {"on_event", "wait"}, "a run has the names of its message"
    run = inspect.signature(kind.run).parameters
    assert run["strategy_id"].default is None and run["paper"].default is True
    replay = inspect.signature(kumiki.ReplaySession.run).parameters
    for name in ("initial_cash", "execution", "strategy_init_kwargs", "wait"):
        assert run[name].default == replay[name].default and run[name].annotation == replay[name].annotation, name
    assert run["max_qty"].default is run["max_notional_jpy"].default is inspect.Parameter.empty
    assert {name for name, one in inspect.getmembers(kind) if isinstance(one, property)} == {
        "status", "mode", "capabilities", "venue", "venue_capabilities"}
    assert issubclass(kumiki.BusyError, kumiki.KumikiError)


def test_arguments_of_trading_are_named_too(played):
    """Before anything is sent, as those of a replay; a secret is not shown."""
    one, engine = played(lambda _: [])
    odd = object()
    for name, call in {
        "order_side": lambda: one.submit_order(**{**ORDER, "order_side": odd}),
        "client_order_id": lambda: one.submit_order(**{**ORDER, "client_order_id": 5}),
        "trigger_type": lambda: one.submit_order(**ORDER, trigger_type=odd),
        "expire_time_ns": lambda: one.submit_order(**ORDER, expire_time_ns="2025-01-06"),
        "post_only": lambda: one.submit_order(**ORDER, post_only="yes"),
        "reduce_only": lambda: one.submit_order(**ORDER, reduce_only=1),
        "new_expire_time_ns": lambda: one.modify_order(client_order_id="mine", new_expire_time_ns=1.5),
        "max_qty": lambda: one.run(**{**STRATEGY, "max_qty": 1.5}),
        "max_notional_jpy": lambda: one.run(**{**STRATEGY, "max_notional_jpy": None}),
        "max_open_orders": lambda: one.run(**STRATEGY, max_open_orders="ten"),
        "paper": lambda: one.run(**STRATEGY, paper=1),
        "granularity": lambda: one.run(**STRATEGY, granularity=None),
        "initial_cash": lambda: one.run(**STRATEGY, initial_cash=1e6),
        "execution": lambda: one.run(**STRATEGY, execution=5),
        "instrument_id": lambda: one.run(**{**STRATEGY, "instrument_id": 7203}),
        "on_event": lambda: one.run(**STRATEGY, on_event=5),
        "timeout": lambda: one.login(timeout="soon"),
        "ticker": lambda: one.get_board(7203),
    }.items():
        with pytest.raises(kumiki.ValidationError, match=f"^{name}: .* was given; give "):
            call()
    assert engine.heard == []
    for secret in (lambda: one.set_second_password(value=12345678), lambda: kumiki.LiveSession(token=12345678)):
        with pytest.raises(kumiki.ValidationError) as wrong:
            secret()
        assert "12345678" not in str(wrong.value)
