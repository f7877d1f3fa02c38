"""Pins P108, P109 and P119, sentence by sentence, at the engine's door: the real engine at the simulated gateway, asked
by a client that was written from the specification alone. And `kumiki live run` beside an engine that starts."""

import contextlib
import json
import os
import subprocess
import sys
import time

import pytest
from conftest import program
from engine_process import EXECUTION, component, lock
from local_world import PASSWORD, QUICK, Gateway, LocalWorld, logged_out, subscribe
from plain_client import PATIENCE, Refused
from test_live_paper import DAY

#: The close, in seconds of the day.
CLOSE = 15 * 3600 + 30 * 60
CONFIG = {"instrument_id": "7203.TSE", "max_qty": 1_000, "max_notional_jpy": 10_000_000, "initial_cash": "10000000",
          "paper": True}
ORDER = {"client_order_id": "p1", "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "MARKET",
         "quantity": "100", "price": None, "trigger_price": None, "trigger_type": None, "time_in_force": "DAY",
         "expire_time_ns": None, "post_only": False, "reduce_only": False, "tags": None}


class Pins(LocalWorld):
    """A gateway whose market stands, an engine, and a client that is logged in and watches a symbol."""

    def __init__(self, folder, *settings, **how):
        super().__init__(folder, *settings, gateway=("--first-day", DAY), **how)
        self.plain = self.client()
        self.plain.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        subscribe(self, self.plain)
        self.rows, self.clock = 0, 9 * 3600

    def close(self):
        self.plain.socket.close()
        super().close()

    def begin(self, strategy="buy-and-hold", **how):
        """Starts a run."""
        config = {**CONFIG, "strategy_file": component(strategy), **how}
        config = {name: value for name, value in config.items() if value is not None}
        started = self.plain.ask("StartEngine", "EngineStarted", engine="Live", strategy_id="one", config=config)
        self.rows = 0
        return started

    def first(self):
        """The first frame, which is no trade (P54)."""
        self.trade("2850")
        self.plain.wait("DepthSnapshot")
        return self

    def trade(self, price, at=None):
        """A trade of the market, a second after the one before."""
        self.clock = at or self.clock + 1
        minutes, seconds = divmod(self.clock, 60)
        self.gateway.trade(price, time=f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}")

    def tick(self, price, at=None):
        """The same, and waits until the strategy has got it."""
        self.trade(price, at)
        self.rows += 1
        self.until(lambda: self.session()["rows_done"] >= self.rows, f"row {self.rows} was given")

    def session(self):
        return self.plain.ask("GetSession", "Session")

    def stop(self):
        return self.plain.ask("StopEngine", "EngineStopped", strategy_id="one")


@pytest.fixture
def world(tmp_path):
    one = Pins(tmp_path).first()
    yield one
    one.close()


def refused(client, op, **fields):
    with pytest.raises(Refused) as told:
        client.ask(op, "never", **fields)
    return told.value.event


def test_p108_what_a_session_tells_of_a_live_run(world):
    idle = world.session()
    assert (idle["state"], idle.get("run_id"), idle["instruments"], idle["rows_done"]) == ("Idle", None, [], 0)
    started = world.begin(execution=EXECUTION)
    world.tick("2850")
    world.tick("2851")
    world.tick("2852")
    told = world.session()
    assert (told["state"], told["run_id"], told["strategy_id"], told["account_id"], told["rows_done"]) == (
        "Running", started["run_id"], "one", "PAPER", 3)
    assert told["instruments"] == [], "instruments []"
    for name in ("cash", "buying_power", "equity", "multiplier"):
        assert told.get(name) is None, f"no {name}"
    order, = told["orders"]
    assert (order["origin"], order["instrument_id"], order["status"]) == ("strategy", "7203.TSE", "FILLED")
    fill, = told["executions"]
    assert (fill["origin"], fill["client_order_id"], fill["qty"]) == ("strategy", order["client_order_id"], "100")
    assert told["signals"] and all(signal["instrument_id"] == "7203.TSE" for signal in told["signals"])
    position, = told["positions"]
    assert (position["instrument_id"], position["qty"], position["venue"]) == ("7203.TSE", "100", "paper")
    world.stop()
    assert (world.session()["state"], world.session()["last_run"]["run_id"]) == ("Idle", started["run_id"])


def test_p109_a_live_engine_loads_nothing_and_has_no_speed(world):
    load = {"instrument_id": "7203.TSE", "start_date": "2025-01-06", "end_date": "2025-01-07", "granularity": "Trade"}
    for state in ("Idle", "Running"):
        if state == "Running":
            world.begin("empty")
        told = refused(world.plain, "LoadReplayData", **load)
        assert (told["event"], told["code"]) == ("Error", "value_error"), told
        for multiplier in (1, 1_000, "max"):
            told = refused(world.plain, "SetReplaySpeed", multiplier=multiplier)
            assert (told["event"], told["current_state"], told["attempted_command"]) == (
                "EngineBusy", state, "SetReplaySpeed"), told
        assert world.session()["state"] == state, "nothing has changed"
    world.stop()


def test_p119_initial_cash_is_required_and_execution_is_allowed_as_in_a_replay(world):
    for wrong in (None, "0", "-1"):
        config = {**CONFIG, "strategy_file": component("empty"), "initial_cash": wrong}
        config = {name: value for name, value in config.items() if value is not None}
        told = world.plain.refusal("StartEngine", engine="Live", strategy_id="one", config=config)
        assert (told["event"], told["code"]) == ("Error", "validation_error"), told
        assert told["message"].startswith("INITIAL_CASH: "), told
    for model in (None, "strict", "optimistic"):
        started = world.begin("empty", execution=model and {"model": model})
        assert (started["account_id"], started["multiplier"]) == ("PAPER", 1)
        assert started["execution"]["model"] == (model or "realistic")
        world.stop()
    config = {**CONFIG, "strategy_file": component("empty"), "execution": {"model": "generous"}}
    told = world.plain.refusal("StartEngine", engine="Live", strategy_id="one", config=config)
    assert (told["event"], told["code"]) == ("Error", "validation_error"), told


def test_p119_the_web_broker_need_not_be_there(world):
    """P84's check asks for local_broker only, and nothing is checked against the broker's masters."""
    state = world.plain.ask("GetVenueState", "VenueState", venue="web_broker")
    assert state["state"] == "Disconnected", state
    world.begin("empty")
    world.stop()


def test_p119_orders_go_to_the_simulated_exchange(world):
    """Events have venue "paper", and the account is told once a second and on fills."""
    since = len(world.plain.events)
    world.begin(execution=EXECUTION)
    world.tick("2850")
    world.tick("2851")
    world.tick("2852")
    filled = world.plain.wait("OrderFilled", since=since)
    at = world.plain.events.index(filled)
    power = world.plain.wait("BuyingPowerUpdated", since=at)
    assert power["venue"] == "paper" and int(power["cash_available"]) == 10_000_000 - 100 * int(filled["last_price"])
    last = len(world.plain.events)
    for _ in range(2):
        power = world.plain.wait("BuyingPowerUpdated", since=last)
        assert power["venue"] == "paper", "without a fill"
        last = len(world.plain.events)
    world.stop()
    of_run = ("OrderSubmitted", "OrderAccepted", "OrderFilled", "PositionOpened", "BuyingPowerUpdated")
    told = [event for event in world.plain.since(since) if event["event"] in of_run]
    assert {event["event"] for event in told} == set(of_run)
    assert all(event["venue"] == "paper" for event in told)


def test_p119_a_run_begins_flat(world):
    for _ in range(2):
        world.begin(execution=EXECUTION)
        assert (world.session()["positions"], world.session()["orders"]) == ([], [])
        since = len(world.plain.events)
        world.tick("2850")
        world.tick("2851")
        world.plain.wait("PositionOpened", since=since)
        world.stop()


def test_p119_lots_and_price_steps_are_those_of_a_replay(world, tmp_path):
    """Of `execution`, else of instruments.csv in the data folder, else 100 shares."""
    def lot_of(one, **how):
        since = len(one.plain.events)
        one.begin(strategy_init_kwargs={"quantity": 50}, **how)
        one.tick("2850")
        told = one.plain.wait("OrderSubmitted", "OrderRejected", since=since)
        one.stop()
        return told.get("reason_text", "taken").split(":")[0]

    assert lot_of(world, execution=EXECUTION) == "QUANTITY"
    assert lot_of(world, execution={**EXECUTION, "lot": 50}) == "taken"
    wrong = world.plain.refusal("StartEngine", engine="Live", strategy_id="one", config={
        **CONFIG, "strategy_file": component("empty"), "execution": {**EXECUTION, "ticks": "coarse"}})
    assert wrong["message"].startswith("TICKS: "), wrong
    data = tmp_path / "data"
    data.mkdir()
    (data / "instruments.csv").write_text("code,name,market,lot,ticks,from,to\n7203,T,0111,50,topix500,,\n")
    with contextlib.closing(Pins(tmp_path / "other", environment={"KUMIKI_DATA": str(data)})) as other:
        other.first()
        assert lot_of(other, execution=EXECUTION) == "taken"


@pytest.mark.parametrize("end", ["a later day", "5 minutes after the close"])
def test_p119_the_day_ends(world, end):
    """Orders of the day end with the close as their time."""
    since = len(world.plain.events)
    # A trade fills less than a trading unit, so the order works to the end of the day.
    world.begin(execution={**EXECUTION, "participation_percent": 1}, strategy_init_kwargs={"quantity": 1_000})
    world.tick("2850")
    world.tick("2850")
    world.plain.wait("OrderAccepted", since=since)
    assert not world.plain.since(since, "OrderExpired", "OrderFilled")
    if end == "a later day":
        world.gateway.control({"do": "day"}, {"do": "volume-reset"})
        world.trade("2850", 9 * 3600 + 1)
        world.trade("2850")
    else:
        # The engine's clock goes with the market's: 5 minutes after the close are a second away.
        world.tick("2850", CLOSE - 1)
        world.trade("2850", CLOSE + 299)
    expired = world.plain.wait("OrderExpired", since=since)
    in_japan = (expired["ts_event_ms"] // 1000 + 9 * 3600) % 86_400
    # The last row, where that is later.
    assert in_japan == (CLOSE if end == "a later day" else CLOSE + 299), "it ends with the close"
    assert world.session()["state"] == "Running"
    world.stop()


def test_p119_a_stop_ends_the_day(world):
    since = len(world.plain.events)
    world.begin(execution={**EXECUTION, "participation_percent": 1}, strategy_init_kwargs={"quantity": 1_000})
    world.tick("2850")
    world.tick("2850")
    world.plain.wait("OrderAccepted", since=since)
    stopped = world.stop()
    assert [event["event"] for event in world.plain.since(since, "OrderCanceled", "OrderExpired")] == ["OrderCanceled"]
    days = (world.engine.cache / "runs" / stopped["run_id"] / "days.csv").read_text(encoding="utf-8").splitlines()
    assert len(days) == 2 and DAY in days[1], days


def test_p119_orders_of_people_are_for_no_run_on_paper(world):
    commands = [
        ("SubmitOrder", {"order": ORDER}), ("CancelOrder", {"client_order_id": "p1"}), ("CancelAllOrders", {}),
        ("ModifyOrder", {"client_order_id": "p1", "change": {"new_quantity": "200"}}),
    ]
    for state in ("Idle", "Running"):
        if state == "Running":
            world.begin(execution=EXECUTION)
        for op, fields in commands:
            told = world.plain.refusal(op, venue="paper", **fields)
            assert (told["event"], told["reason_code"]) == ("OrderRejected", "VALIDATION_ERROR"), told
            assert told["reason_text"].startswith("VENUE: ") and "unknown" not in told["reason_text"], told
        for op in ("GetBuyingPower", "GetPositions"):
            told = world.plain.refusal(op, venue="paper")
            assert told["event"] == "Error" and told["message"].startswith("VENUE: "), told
        assert world.session()["orders"] == []
    world.stop()


# --- Limits, notices and texts.


def test_more_instruments_than_a_live_run_takes(world):
    ids = [f"{code}.TSE" for code in (7203, 9984, 6758, 8306, 9432)]
    config = {**CONFIG, "instrument_ids": ids, "strategy_file": component("empty")}
    told = refused(world.plain, "StartEngine", engine="Live", strategy_id="one", config=config)
    assert (told["code"], "a live run takes at most 4" in told["message"]) == ("too_many_instruments", True), told


def test_a_notice_names_the_strategy_that_runs_and_no_other(tmp_path):
    """A login that is needed after a run's end is nobody's."""
    script, notices = tmp_path / "notify.py", tmp_path / "notices"
    script.write_text(f"line = open(0, 'rb').readline()\nopen({str(notices)!r}, 'ab').write(line)\n", encoding="utf-8")

    def needed():
        lines = notices.read_text(encoding="utf-8").splitlines() if notices.exists() else []
        return [line for line in map(json.loads, lines) if line["kind"] == "login_needed"]

    environment = {"KUMIKI_NOTIFY_COMMAND": f"{sys.executable},{script}"}
    with contextlib.closing(Pins(tmp_path / "world", environment=environment)) as one:
        for count, runs in enumerate((True, False), 1):
            if runs:
                one.begin("empty")
            one.gateway.control({"do": "log-out"})
            refused(one.plain, "GetBuyingPower", venue="local_broker")
            one.until(lambda count=count: len(needed()) == count, "a login is needed")
            assert needed()[-1].get("strategy_id") == ("one" if runs else None)
            one.gateway.control({"do": "login-open"})
            one.plain.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
            if runs:
                one.stop()


# --- Runs of the command.


class LiveRun:
    """`kumiki live run` with folders of its own."""

    def __init__(self, folder, gateway, *arguments):
        self.config, self.cache = folder / "config", folder / "cache"
        self.config.mkdir(parents=True, exist_ok=True)
        self.gateway, self.arguments = gateway, arguments
        self.said = folder / f"run-{time.monotonic_ns()}.err"
        self.settings = [word for setting in (*QUICK, logged_out(720, 721), f"base_url={gateway.address}")
                         for word in ("--local-broker", setting)]
        self.environment = {**os.environ, "KUMIKI_KEY_STORE": "off", "DEV_LOCALBROKER_API_PASSWORD": PASSWORD}
        self.folders = ["--config-dir", self.config, "--cache-dir", self.cache]

    def serve(self):
        """Starts an engine, and waits for nothing."""
        command = [program(), "serve", "--mode", "live", "--standalone", "--dev-login", "--port", "0", *self.folders,
                   *self.settings]
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env=self.environment)

    def start(self):
        command = [program(), "live", "run", "--instrument", "7203.TSE", "--dev-login", "--port", "0", *self.folders,
                   *self.settings, *self.arguments]
        with self.said.open("wb") as errors:
            self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, text=True,
                                            env=self.environment)
        return self

    def errors(self):
        return self.said.read_text(encoding="utf-8")


@pytest.fixture
def gateway(tmp_path):
    one = Gateway(tmp_path / "gateway", "--first-day", DAY)
    yield one
    one.kill()


def test_live_run_waits_for_an_engine_that_starts(tmp_path, gateway):
    """It starts no second one, and attaches to it."""
    run = LiveRun(tmp_path, gateway, component("empty"), "--for", "1s")
    engine = run.serve()
    try:
        deadline = time.monotonic() + PATIENCE
        while not (run.config / "engine.lock").exists():
            assert time.monotonic() < deadline, "the engine takes its folder"
            time.sleep(0.001)
        run.start()
        out, _ = run.process.communicate(timeout=PATIENCE)
        assert run.process.returncode == 0, run.errors()
        assert "on paper, no order goes to a broker" in out and "one is started" not in run.errors(), run.errors()
        assert engine.poll() is None, "the engine goes on"
    finally:
        engine.kill()
        engine.wait()
        engine.stdout.close()


def test_live_run_starts_an_engine_where_the_one_that_it_waited_for_has_ended(tmp_path, gateway):
    run = LiveRun(tmp_path, gateway, component("empty"), "--for", "1s")
    with (run.config / "engine.lock").open("wb") as file:
        lock(file)
        run.start()
        deadline = time.monotonic() + PATIENCE
        while "an engine is starting or ending; waiting for it\n" not in run.errors():
            assert time.monotonic() < deadline and run.process.poll() is None, run.errors()
            time.sleep(0.02)
    run.process.communicate(timeout=PATIENCE)
    assert run.process.returncode == 0, run.errors()
    assert run.errors().count("waiting for it") == 1 and "one is started" in run.errors(), run.errors()


def test_texts_of_a_strategy_stay_on_their_line(tmp_path):
    """Signals, tags, log lines, ids and faults of a guest that wants to steer the terminal."""
    with contextlib.closing(Pins(tmp_path / "world")) as one:
        one.first()
        command = [program(), "live", "run", component("steers-terminal"), "--instrument", "7203.TSE", "--id", "one",
                   "--execution", "strict", "--config-dir", one.config, "--cache-dir", one.engine.cache]
        run = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        one.plain.wait("EngineStarted")
        for _ in range(3):
            one.trade("2850")
        one.plain.wait("EngineStopped")
        out, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 3, errors
    assert "\\u001b[2J" in out and "\\u000aerror: forged" in out, out
    for text in (out, errors, one.log()):
        assert not any(line.lstrip().startswith("error: forged") for line in text.splitlines()), text
        assert "\x1b" not in text and "\x9b" not in text and "\r" not in text, text


# --- SQL.


def test_sql_says_which_runs_are_on_paper_and_which_were_killed(world):
    """P111: a run is partial until its end, and after a kill."""
    def asked():
        command = [program(), "sql", "--runs", world.engine.cache / "runs", "--format", "csv",
                   "SELECT run, run_kind FROM runs"]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE)

    first = world.begin("empty")["run_id"]
    world.tick("2850")
    world.stop()
    second = world.begin("empty")["run_id"]
    left_out = f"left out, because it is running, or was killed before its end; its journal has what it did: {second}\n"
    for is_killed in (False, True):
        if is_killed:
            world.engine.kill()
        told = asked()
        assert told.stdout.splitlines() == ["run,run_kind", f"{first},paper"], told
        assert left_out in told.stderr, told.stderr
