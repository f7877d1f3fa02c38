"""`kumiki.LiveSession` and `kumiki serve --mode live` at a simulated web broker: real processes, real sockets."""

import asyncio
import hashlib
import json
import subprocess

import kumiki
import kumiki.aio
import pytest
from conftest import program
from engine_process import lock, wait_until
from web_broker import AUTH_ID, ORDER, PASSWORD, SECOND_PASSWORD, USER, Broker, Trading, dialect, refused_start

FORMS = ("web-broker-spec", "web-broker-v4r8", "web-broker-v4r10")


@pytest.fixture(params=FORMS)
def form(request):
    dialect(request.param)
    return request.param


@pytest.fixture
def desk(tmp_path):
    """Starts brokers and engines that trade there, and ends them after the test."""
    processes = []

    def desk(*arguments, form="web-broker-spec", **how):
        dialect(form)
        broker = Broker(tmp_path / f"broker-{len(processes)}", form=form)
        processes.append(broker)
        engine = Trading(tmp_path / f"engine-{len(processes)}", broker.url, *arguments, form=form, **how)
        processes.append(engine)
        return broker, engine

    yield desk
    for process in processes:
        process.kill()
        print(process.stderr, process.stderr.read_text(encoding="utf-8", errors="replace"))


@pytest.fixture
def session(desk):
    """A session that is logged in and holds the second password, with its broker and its engine."""
    opened = []

    def session(*arguments, **how):
        broker, engine = desk(*arguments, **how)
        one = kumiki.LiveSession(attach=engine.config).open()
        opened.append(one)
        one.login()
        one.set_second_password(value=SECOND_PASSWORD)
        return one, broker, engine

    yield session
    for one in opened:
        one.close()


def numbers(order, **other):
    """An order as the package takes it."""
    order = {name: value for name, value in {**ORDER, **other}.items()}
    return {name: int(value) if name == "quantity" else value for name, value in order.items()}


def test_an_order_is_placed_changed_filled_and_another_cancelled(session, form):
    one, broker, engine = session(form=form)
    placed = one.submit_order(client_order_id="first", **numbers(ORDER, price="2850"))
    assert (placed.outcome, placed.status) == ("Created", "ACCEPTED") and placed.venue_order_id
    again = one.submit_order(client_order_id="first", **numbers(ORDER, price="2850"))
    assert (again.outcome, again.venue_order_id) == ("IdempotentReplay", placed.venue_order_id)
    with pytest.raises(kumiki.ConflictError):
        one.submit_order(client_order_id="first", **numbers(ORDER, price="2849"))
    changed = one.modify_order(client_order_id="first", new_price="2840")
    assert changed.price == 2_840
    other = one.submit_order(client_order_id="second", **numbers(ORDER, price="2800"))
    cancelled = one.cancel_order(client_order_id="second")
    assert cancelled.venue_order_id == other.venue_order_id
    with one.events("OrderFilled", timeout=30) as fills:
        broker.trade("2840", 100)
        fill = next(iter(fills))
    assert (fill["client_order_id"], fill["last_qty"], fill["last_price"], fill["leaves_qty"]) == (
        "first", 100, 2_840, 0)
    listed = {order.client_order_id: order.status for order in one.order_list()}
    assert listed == {"first": "FILLED", "second": "CANCELED"}
    held = [(position.instrument_id, position.qty) for position in one.positions()]
    assert held == [("7203.TSE", 100)]
    assert one.buying_power().cash_available == 10_000_000 - 284_000
    assert len(broker.orders()) == 2, "no order was sent twice"


def test_all_are_cancelled(session):
    one, broker, _ = session()
    for number in range(3):
        one.submit_order(client_order_id=f"o{number}", **numbers(ORDER, price=f"{2800 + number}"))
    broker.control({"do": "order", "issue": "7261", "side": "buy", "quantity": 100, "price": "970"})
    wait_until(lambda: len(one.order_list()) == 4, "the order placed elsewhere is listed")
    only = one.cancel_all(instrument_id="7261.TSE")
    assert (only.canceled_count, only.failed_count) == (1, 0)
    every = one.cancel_all()
    assert (every.canceled_count, every.failed_count) == (3, 0)
    assert {order.status for order in one.order_list()} == {"CANCELED"}


def test_what_the_engine_says_of_itself(desk, form):
    """Ready names the dialect and the venue."""
    _, engine = desk(form=form)
    sha256 = hashlib.sha256(dialect(form).read_bytes()).hexdigest()
    with engine.client() as client:
        assert client.ready["dialects"]["web_broker"] == {"name": form, "sha256": sha256}
        assert set(client.ready["dialects"]) == {"web_broker", "local_broker"}
        (place,) = client.ready["simulators"].items()
        assert place[0] == "web_broker" and place[1].startswith("127.0.0.1:"), place
        venue = client.ready["venue_capabilities"]["web_broker"]
        assert (venue["is_production"], venue["supports_amend"]) == (False, True)
        assert client.ask("GetSession", "Session")["state"] == "Idle"


def test_commands_before_a_login_and_for_other_venues(desk):
    """Pins P15, P23b."""
    _, engine = desk()
    order = {"client_order_id": "c", **ORDER}
    with engine.client() as client, engine.client() as other:
        early = client.refusal("SubmitOrder", venue="web_broker", order=order)
        assert (early["reason_code"], early["client_order_id"]) == ("SESSION_EXPIRED", "c")
        assert early["reason_text"].startswith("NOT_LOGGED_IN: ")
        moon = client.refusal("SubmitOrder", venue="moon", order=order)
        assert (moon["event"], moon["reason_code"]) == ("OrderRejected", "VALIDATION_ERROR")
        assert moon["reason_text"].startswith("VENUE: `moon`") and moon["client_order_id"] == "c"
        every = client.refusal("CancelAllOrders", venue="moon")
        assert (every["event"], every["client_order_id"]) == ("OrderRejected", None)
        balance = client.refusal("GetBuyingPower", venue="moon")
        assert (balance["event"], balance["code"]) == ("Error", "validation_error")
        assert client.refusal("SubmitOrder", venue="replay", order=order)["code"] == "venue_not_available"
        local = client.refusal("SubmitOrder", venue="local_broker", order=order)
        assert (local["reason_code"], local["venue"]) == ("VENUE_UNSUPPORTED", "local_broker")
        assert local["reason_text"].startswith("PHASE_1: ")
        assert client.refusal("Subscribe", venue="web_broker", ticker="7203")["code"] == "venue_not_available"
        odd = client.refusal("SubmitOrder", venue="web_broker", order={**order, "speed": 2})
        assert odd["reason_text"].startswith("SPEED: ") and odd["venue"] == "web_broker" and "origin" not in odd
        assert odd["ts_event_ms"] > 1_700_000_000_000, "the time is that of the wall clock"
        other.wait("OrderRejected", request_id=odd["request_id"])
        refused = other.since(0, "OrderRejected")
        assert [event["request_id"] for event in refused] == [
            event["request_id"] for event in client.since(0, "OrderRejected")], "all clients are told"
        assert other.since(0, "Error") == [], "errors are for who asked"
    assert not (engine.config / "web_broker_orders.jsonl").read_text(), "nothing of it is in the log"


def test_the_second_password(session):
    """Pins P41, P42."""
    one, broker, engine = session(
        "--web-broker", "second_password_max_failures=2", "--web-broker", "second_password_lockout_secs=2")
    one.forget_second_password()
    with pytest.raises(kumiki.SecondPasswordRequiredError):
        one.submit_order(client_order_id="a", **numbers(ORDER))
    for _ in range(2):
        one.set_second_password(value="wrong")
        with pytest.raises(kumiki.OrderRejectedError) as refused:
            one.submit_order(client_order_id="a", **numbers(ORDER))
        assert refused.value.reason_code == "SECOND_PASSWORD_INVALID"
    one.set_second_password(value=SECOND_PASSWORD)
    with pytest.raises(kumiki.OrderRejectedError) as refused:
        one.submit_order(client_order_id="a", **numbers(ORDER))
    assert refused.value.reason_code == "SECOND_PASSWORD_LOCKED"

    def is_open():
        try:
            return one.submit_order(client_order_id="a", **numbers(ORDER)).status == "ACCEPTED"
        except kumiki.OrderRejectedError as locked:
            assert locked.reason_code == "SECOND_PASSWORD_LOCKED"
            return False

    wait_until(is_open, "the lock ends")
    assert len(broker.orders()) == 1


def test_a_session_that_the_broker_ends(session):
    """The venue freezes, nothing logs in by itself, and after a login orders go again (pins P3, P23a)."""
    one, broker, engine = session()
    one.submit_order(client_order_id="before", **numbers(ORDER, price="2800"))
    broker.control({"do": "end-session"})
    with pytest.raises(kumiki.OrderRejectedError) as refused:
        one.submit_order(client_order_id="during", **numbers(ORDER, price="2800"))
    assert refused.value.reason_code == "SESSION_EXPIRED"
    assert one.venue_state().state == "TokenExpired"
    with pytest.raises(kumiki.OrderRejectedError) as refused:
        one.submit_order(client_order_id="during", **numbers(ORDER, price="2800"))
    assert refused.value.reason_text.startswith("FROZEN: ")
    one.login()
    assert one.venue_state().state == "Ready"
    with pytest.raises(kumiki.SecondPasswordRequiredError):
        one.submit_order(client_order_id="during", **numbers(ORDER, price="2800"))
    one.set_second_password(value=SECOND_PASSWORD)
    assert one.submit_order(client_order_id="during", **numbers(ORDER, price="2800")).status == "ACCEPTED"
    again = one.submit_order(client_order_id="before", **numbers(ORDER, price="2800"))
    assert again.outcome == "IdempotentReplay" and len(broker.orders()) == 2
    assert [line["phase"] for line in engine.log()] == [
        "submit", "accepted", "session_expired", "submit", "accepted"], "what was not sent is not in it"


@pytest.mark.parametrize("how", ["kill", "end"])
def test_an_order_outlives_its_engine(session, how, tmp_path):
    one, broker, engine = session()
    placed = one.submit_order(client_order_id="kept", **numbers(ORDER, price="2800"))
    one.close()
    if how == "kill":
        engine.kill()
    else:
        assert engine.end() == 0
    next_one = Trading(engine.folder, broker.url)
    try:
        with kumiki.LiveSession(attach=next_one.config) as two:
            two.login()
            two.set_second_password(value=SECOND_PASSWORD)
            again = two.submit_order(client_order_id="kept", **numbers(ORDER, price="2800"))
            assert (again.outcome, again.venue_order_id) == ("IdempotentReplay", placed.venue_order_id)
            two.cancel_order(client_order_id="kept")
        assert len(broker.orders()) == 1
    finally:
        next_one.kill()


def test_a_lost_answer_is_found_again(session):
    """The answer is dropped after the broker took the order: unknown first, then the list says it (P18, P19)."""
    one, broker, _ = session()
    broker.control({"do": "fault", "name": "drop-answer", "request": "CLMKabuNewOrder", "times": 1})
    with pytest.raises(kumiki.OrderOutcomeUnknownError, match="^OUTCOME_UNKNOWN: ") as unknown:
        one.submit_order(client_order_id="lost", **numbers(ORDER, price="2800"))
    assert unknown.value.client_order_id == "lost"

    def is_known():
        again = one.submit_order(client_order_id="lost", **numbers(ORDER, price="2800"))
        assert again.outcome == "IdempotentReplay"
        return again.venue_order_id is not None

    wait_until(is_known, "the list tells which order it is")
    assert len(broker.orders()) == 1


def test_the_end_waits_for_the_answer_that_is_on_its_way(session):
    """What the broker says belongs in the log; the engine's end takes no more than that."""
    one, broker, engine = session()
    broker.control({"do": "fault", "name": "delay-answer", "value": 1000, "request": "CLMKabuNewOrder", "times": 1})
    with engine.client() as client:
        client.send("SubmitOrder", venue="web_broker", order={"client_order_id": "last", **ORDER})
        client.wait("OrderSubmitted")
        client.send("Shutdown")
        client.wait("OrderAccepted", client_order_id="last")
        assert client.closed() == 1001
    assert engine.process.wait(30) == 0
    assert [line["phase"] for line in engine.log()] == ["submit", "accepted"]


@pytest.mark.parametrize("is_allowed", [True, False])
def test_the_line_that_starts_the_engine_allows_a_login_of_development(tmp_path, is_allowed):
    broker = Broker(tmp_path / "broker")
    engine = Trading(tmp_path / "engine", broker.url, start_line={"dev_login_allowed": is_allowed})
    try:
        with kumiki.LiveSession(attach=engine.config) as one:
            if is_allowed:
                one.login()
            else:
                with pytest.raises(kumiki.VenueError, match="KUMIKI_WEB_BROKER_USER is not set"):
                    one.login()
    finally:
        engine.kill()
        broker.kill()


def test_asyncio(session):
    one, broker, engine = session()

    async def trade():
        async with kumiki.aio.LiveSession(attach=engine.config) as two:
            placed = await two.submit_order(client_order_id="aio", **numbers(ORDER, price="2800"))
            await two.cancel_order(venue_order_id=placed.venue_order_id)
            return [order.status for order in await two.order_list()]

    assert asyncio.run(trade()) == ["CANCELED"]


def test_no_credentials(desk):
    """What is missing is told with what to do."""
    _, engine = desk(dev_login=False)
    with engine.client() as client:
        since = len(client.events)
        request_id = client.send("RequestVenueLogin", venue="web_broker")
        client.wait("VenueLoginStarted", since=since, request_id=request_id)
        client.wait("VenueLoginCancelled", since=since, request_id=request_id)
        error = client.wait("VenueError", since=since)
        assert error["code"] == "login_failed"
        assert "kumiki key set web-broker-user" in error["message"], error
        state = client.ask("GetVenueState", "VenueState", venue="web_broker")
        assert (state["state"], state["code"]) == ("Disconnected", "login_failed")
    with kumiki.LiveSession(attach=engine.config) as one:
        with pytest.raises(kumiki.VenueError, match="kumiki key set web-broker-user"):
            one.login()


def test_wrong_credentials(desk):
    _, engine = desk(environment={"DEV_WEBBROKER_PASSWORD": "another"}.items())
    with kumiki.LiveSession(attach=engine.config) as one:
        with pytest.raises(kumiki.VenueError) as failed:
            one.login()
        assert failed.value.code == "login_failed" and "another" not in str(failed.value)


def test_no_secret_is_anywhere(session):
    one, broker, engine = session("--log", "trace")
    one.submit_order(client_order_id="seen", **numbers(ORDER, price="2800"))
    one.set_second_password(value="canary-wrong-7741")
    with pytest.raises(kumiki.OrderRejectedError):
        one.cancel_order(client_order_id="seen")
    broker.control({"do": "end-session"})
    with pytest.raises(kumiki.KumikiError):
        one.order_list()
    assert engine.end() == 0
    found = []
    for path in engine.folder.rglob("*"):
        if path.is_file():
            found.extend((path.name, word) for word in (PASSWORD, SECOND_PASSWORD, "canary-wrong-7741", USER, AUTH_ID)
                         if word.encode() in path.read_bytes())
    assert found == []


def test_starts_that_are_refused(tmp_path):
    """Pins P1 and P22: one line, and an exit code of its own."""
    spec = ("--web-broker", f"dialect={dialect('web-broker-spec')}")
    for arguments, environment, code, told in (
        ((*spec, "--web-broker", "base_url=https://example.com/"), {}, 17, "base_url is neither"),
        ((*spec, "--web-broker", "environment=prod"), {}, 17, "WEBBROKER_ALLOW_PROD=1"),
        ((*spec, "--web-broker", "environment=prod"), {"WEBBROKER_ALLOW_PROD": "yes"}, 17, "WEBBROKER_ALLOW_PROD=1"),
        (spec, {}, 22, "web-broker-spec is not made for demo-kabuka.e-shiten.jp, only for this machine"),
        ((*spec, "--web-broker", "environment=prod"), {"WEBBROKER_ALLOW_PROD": "1"}, 22,
         "web-broker-spec is not made for kabuka.e-shiten.jp, only for this machine"),
        (("--web-broker", "dialect=no-such-one"), {}, 18, "no-such-one.wasm of web_broker cannot be used"),
        (("--web-broker", f"dialect={__file__}"), {}, 18, "test_live_trading.py of web_broker cannot be used"),
        (("--web-broker", "order_phase=O4"), {}, 2, "it takes O0, O1, O2 or O3"),
        (("--web-broker", "speed=1"), {}, 2, "there is no setting `web_broker.speed`"),
        ((), {"KUMIKI_WEB_BROKER_ANSWER_TIMEOUT_MS": "soon"}, 2, "KUMIKI_WEB_BROKER_ANSWER_TIMEOUT_MS"),
    ):
        ended, line = refused_start(tmp_path, *arguments, environment=environment.items())
        assert ended == code and told in line, (arguments, ended, line)
    replay = subprocess.run([program(), "serve", "--mode", "replay", "--web-broker", "dialect=x"], capture_output=True,
                            text=True)
    assert replay.returncode == 2 and "--mode live, because a replay has no broker" in replay.stderr
    with (tmp_path / "config" / "web_broker_orders.lock").open("wb") as file:
        lock(file)
        ended, line = refused_start(tmp_path, *spec, "--web-broker", "base_url=http://127.0.0.1:9/e/")
    assert ended == 16 and "another program writes" in line


def test_settings_of_a_file(desk, tmp_path):
    """The dialect's path is relative to the file; the phase counts."""
    spec = dialect("web-broker-spec")
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "mine.wasm").write_bytes(spec.read_bytes())
    broker = Broker(tmp_path / "broker")
    file = tmp_path / "settings" / "kumiki.toml"
    file.write_text(f'[web_broker]\nbase_url = {json.dumps(broker.url)}\ndialect = "./mine.wasm"\n'
                    'order_phase = "O0"\n', encoding="utf-8")
    engine = Trading(tmp_path / "engine", None, "--config", file, form=None)
    try:
        with engine.client() as client:
            assert client.ready["dialects"]["web_broker"]["name"] == "mine"
            assert client.ready["venue_capabilities"]["web_broker"]["supports_amend"] is False
            client.ask("RequestVenueLogin", "VenueReady", venue="web_broker")
            refused = client.refusal("SubmitOrder", venue="web_broker", order={"client_order_id": "c", **ORDER})
            assert refused["reason_code"] == "UNSUPPORTED_IN_PHASE_O0"
    finally:
        engine.kill()
        broker.kill()
