"""The pins about the engine process: commands, errors, data and starts, P61 to P66, each by its name;
`test_pins_run.py`, `test_pins_orders.py` and `test_pins_told.py` have the others. What another test holds wholly is
not repeated: the docstrings name it."""

import contextlib
import datetime
import json
import os
import shutil
import subprocess
import time
from decimal import Decimal

import pytest

pytest.importorskip("websockets")
pytest.importorskip("jsonschema")

from conftest import program  # noqa: E402
from engine_process import component, write_market  # noqa: E402
from plain_client import PATIENCE, REFUSALS, Client, validators  # noqa: E402
from sessions import last_trade_price, order, submit  # noqa: E402

DAY = {"start_date": "2025-01-06", "end_date": "2025-01-06"}
#: A command of each kind that its form lets pass, without an id.
LEAST = {
    "Ping": {}, "SetSecondPassword": {"value": "1234"}, "ForgetSecondPassword": {},
    "SubmitOrder": {"venue": "replay", "order": order("a")},
    "ModifyOrder": {"venue": "replay", "change": {"new_quantity": "200"}}, "CancelOrder": {"venue": "replay"},
    "CancelAllOrders": {"venue": "replay"}, "GetOrderList": {"venue": "replay"},
    "LoadReplayData": {"instrument_id": "7203.TSE", **DAY, "granularity": "Trade"},
    "StartEngine": {"engine": "Backtest", "strategy_id": "one", "config": {"instrument_id": "7203.TSE"}},
    "StopEngine": {"strategy_id": "one"}, "SetReplaySpeed": {"multiplier": 1}, "GetSession": {},
    "Subscribe": {"venue": "replay", "ticker": "7203"}, "Unsubscribe": {"venue": "replay", "ticker": "7203"},
    "GetBoard": {"venue": "web_broker", "ticker": "7203"}, "EvictLru": {"venue": "local_broker"},
    "RequestVenueLogin": {"venue": "web_broker"}, "GetVenueState": {"venue": "web_broker"},
    "GetBuyingPower": {"venue": "replay"}, "GetPositions": {"venue": "replay"}, "Shutdown": {},
    "SettleOrder": {"client_order_id": "a", "origin": "person", "venue_order_id": None}, "GetStrategyPositions": {},
    "AdjustStrategyPosition": {"strategy_id": "one", "instrument_id": "7203.TSE", "quantity": "100",
                               "average_price": "2850", "why": "of a test"},
    "OpenConsole": {}, "SignOut": {}, "GetDataCatalog": {}, "GetStrategies": {}, "GetRuns": {},
    "GetHistory": {"venue": "replay", "ticker": "7203", "kind": "trades", "limit": 1},
    "GetStrategyParameters": {"strategy_file": "empty"}, "OpenReport": {"run_id": "one"},
    "GetInstrument": {"venue": "replay", "instrument_id": "7203.TSE"},
}


@contextlib.contextmanager
def served(folder, *arguments, mode="replay", env=()):
    """A client of `kumiki serve --standalone` as people start it: with these arguments and no others."""
    config = folder / "config"
    config.mkdir(parents=True, exist_ok=True)
    command = [program(), "serve", "--mode", mode, "--standalone", "--port", "0", "--config-dir", config,
               "--cache-dir", folder / "cache", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("KUMIKI_DATA", "KUMIKI_CACHE")}
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, cwd=folder,
                               env={**environment, **dict(env)})
    try:
        assert process.stdout.readline(), f"it ended with {process.wait()}"
        said = json.loads((config / "engine-session.json").read_text(encoding="utf-8"))
        with Client(said["port"], said["token"], mode=mode) as client:
            yield client
    finally:
        process.kill()
        process.communicate()


def midnight_ms(date):
    """Midnight in Japan, in milliseconds since 1970 UTC."""
    return int(datetime.datetime.fromisoformat(f"{date}T00:00:00+09:00").timestamp()) * 1000


def told(client, request_id, since=0):
    """The names of the events with an id."""
    return [event["event"] for event in client.since(since) if event.get("request_id") == request_id]


def test_p61_every_command_has_an_id_of_1_to_64_characters(start):
    """Ids that are none, of one command: `test_a_command_that_is_none_is_an_error_and_the_connection_stays`; 64
    characters, and an id that is used again: `test_what_may_be_is_taken`."""
    known = validators("Command", "op")
    assert known.keys() - {"Hello"} == LEAST.keys(), "each command is tried here"
    engine = start()
    # P3 lets these two be without one.
    may_lack = {"ForgetSecondPassword", "RequestVenueLogin"}
    assert {op for op in LEAST if "request_id" not in known[op].schema["required"]} == may_lack
    for op, fields in LEAST.items():
        # A connection takes some errors only.
        with engine.client() as client:
            without = [] if op in may_lack else [{}]
            for id in (*without, {"request_id": ""}, {"request_id": "x" * 65}, {"request_id": 1}):
                since = len(client.events)
                client.wrong(json.dumps({"op": op, **fields, **id}))
                refused = client.wait(*REFUSALS, since=since)
                assert "validation_error" in (refused.get("code"), refused.get("reason_code", "").lower()), (op, id)
            assert client.ask("Ping", "Pong")["event"] == "Pong"


def test_p61_answers_go_to_the_asker_and_events_to_all(start, market):
    """What is refused is told to the asker alone: also `test_what_does_not_fit_the_state_is_told_as_busy`."""
    engine = start()
    with engine.client() as client, engine.client() as other:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        loaded = market.load(client)
        started = market.run(client, multiplier=20)
        low = str(int(last_trade_price(client) * Decimal("0.97")))
        answer = submit(client, order("mine", price=low))
        again = client.ask("SubmitOrder", "SubmitOrderResult", venue="replay", order=order("mine", price=low))
        conflict = client.refusal("SubmitOrder", venue="replay", order=order("mine", price=low, quantity="200"))
        updated = client.ask("ModifyOrder", "OrderUpdated", venue="replay", client_order_id="mine",
                             change={"new_quantity": "200"})
        rejected = client.refusal("CancelOrder", venue="replay", client_order_id="nobody")
        for op, name, fields in (
            ("Ping", "Pong", {}), ("GetSession", "Session", {}),
            ("GetOrderList", "OrderListUpdated", {"venue": "replay"}),
            ("GetBuyingPower", "ReplayBuyingPower", {"venue": "replay"}),
            ("GetPositions", "PositionsUpdated", {"venue": "replay"}),
            ("Unsubscribe", "Unsubscribed", {"venue": "replay", "ticker": "7203"}),
        ):
            asked = client.ask(op, name, **fields)["request_id"]
            assert told(client, asked) == [name]
        all_cancelled = client.ask("CancelAllOrders", "CancelAllResult", venue="replay")
        speed = client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=30)
        # An id that was used before is only said again.
        stopped = client.ask("StopEngine", "ReplayStopped", strategy_id="one", request_id=loaded["request_id"])
        for told_to in (client, other):
            told_to.wait("EngineStopped")
        to_all = {
            loaded["request_id"]: ["ReplayDataLoaded", "ReplayStopped"],
            started["request_id"]: ["EngineStarted"],
            answer["request_id"]: ["OrderSubmitted", "OrderAccepted"],
            updated["request_id"]: ["OrderPendingUpdate", "OrderUpdated"],
            rejected["request_id"]: ["OrderRejected"],
            all_cancelled["request_id"]: ["OrderPendingCancel", "OrderCanceled"],
            speed["request_id"]: ["ReplaySpeedChanged"],
        }
        assert stopped["request_id"] == loaded["request_id"]
        for id, names in to_all.items():
            assert [name for name in told(other, id) if name != "Progress"] == names
            # The asker is told the same in the same order, and its own answers.
            assert [name for name in told(client, id) if name in names] == names
        assert again["outcome"] == "IdempotentReplay" and conflict["code"] == "conflict"
        theirs = {event["request_id"] for event in other.events if event.get("request_id")}
        assert theirs == to_all.keys(), "nothing else was told to who did not ask"


def test_p62_errors_are_of_three_kinds(start, market):
    """Error for commands, EngineError for the engine, the strategy and the greeting, EngineBusy for the state.
    Each form of a command that is none: `test_a_command_that_is_none_is_an_error_and_the_connection_stays`; binary
    frames and 1 MiB: `test_a_frame_that_is_none_ends_the_connection`; UTF-8:
    `test_text_that_is_no_utf_8_ends_the_connection`; the hundredth error:
    `test_who_errs_a_hundred_times_is_sent_away`; 65,536 frames: `test_who_does_not_read_is_sent_away`; 64 MiB:
    `test_p62_a_client_that_is_64_mib_behind_is_sent_away`; the greeting: `test_a_wrong_greeting_is_refused`."""
    engine = start()
    with engine.client() as client:
        wrong = client.refusal("LoadReplayData", **DAY, instrument_id="7203", granularity="Trade")
        assert wrong.keys() - {"venue_order_id"} == {"event", "request_id", "code", "message"}
        client.wrong('{"op":"Nothing"}')
        unknown = client.wait("Error", where=lambda event: event is not wrong)
        assert unknown["code"] == "validation_error" and unknown.get("request_id") is None and unknown["message"]
        market.load(client)
        config = market.config("empty")
        refused = client.refusal("StartEngine", engine="Live", strategy_id="one", config=config)
        assert (refused["event"], refused["strategy_id"]) == ("EngineError", "one")
        assert client.refusal("StopEngine", strategy_id="one")["event"] == "EngineBusy"
        market.run(client, "panics-in-event", strategy_init_kwargs={"at": 20}, multiplier="max")
        fault = client.wait("EngineError", code="strategy_fault")
        assert fault["strategy_id"] == "one" and fault.get("request_id") is None and fault["message"]
        assert client.is_alive()


def test_p63_data_are_where_a_flag_the_environment_or_the_settings_say(market, tmp_path):
    """A start without any: `test_a_start_that_fails_says_why`."""
    settings = tmp_path / "kumiki.toml"
    settings.write_text(f'[replay]\ndata = "{market.folder.as_posix()}"\n', encoding="utf-8")
    nowhere = {"KUMIKI_DATA": str(tmp_path / "nowhere")}
    for number, (arguments, env) in enumerate((
        (("--data", market.folder), nowhere),
        ((), {"KUMIKI_DATA": str(market.folder)}),
        (("--config", settings), {}),
    )):
        with served(tmp_path / str(number), *arguments, env=env) as client:
            assert market.load(client)["trades_loaded"] > 0
    command = [program(), "serve", "--mode", "replay", "--standalone", "--port", "0", "--config-dir", tmp_path / "c",
               "--cache-dir", tmp_path / "d"]
    ended = subprocess.run([str(part) for part in command], capture_output=True, timeout=PATIENCE,
                           env={name: value for name, value in os.environ.items() if name != "KUMIKI_DATA"})
    assert ended.returncode == 14 and b"--data" in ended.stderr and b"KUMIKI_DATA" in ended.stderr


def test_p63_what_a_load_does(start, market, tmp_path):
    """Loads add up, replace, and are all or nothing: `test_what_cannot_be_loaded_changes_nothing`; a fifth
    instrument: `test_a_fifth_instrument_is_refused`; while Running:
    `test_what_does_not_fit_the_state_is_told_as_busy`."""
    with start().client() as client:
        base = {"instrument_id": "7203.TSE", **market.span(1, 2), "granularity": "Trade"}
        for change in ({"granularity": "Tick"}, {"granularity": "trade"}, {"start_date": None}, {"end_date": 20250106}):
            refused = client.refusal("LoadReplayData", **{**base, **change})
            assert (refused["event"], refused["code"]) == ("Error", "validation_error"), (change, refused)
        # The first of a list that has no row is named, in an order of its own.
        refused = client.refusal("LoadReplayData", **base, instrument_ids=["7203.TSE", "1301.TSE", "1605.TSE"])
        assert refused["code"] == "data_not_found" and "1301" in refused["message"], refused
        assert "1605" not in refused["message"] and client.ask("GetSession", "Session")["state"] == "Idle"
        # One day that is there is enough, and both ends belong to the range.
        loaded = client.ask("LoadReplayData", "ReplayDataLoaded", **{**base, "end_date": "2025-01-31"})
        assert loaded["trades_loaded"] == len(market.trades("7203.TSE", market.days[1:]))
        refused = client.refusal("LoadReplayData", **{**base, "start_date": "2025-01-25", "end_date": "2025-01-31"})
        assert (refused["code"], "7203" in refused["message"]) == ("data_not_found", True), refused

        market.load(client)
        market.run(client)
        client.send("StopEngine", strategy_id="one")
        late = client.send("LoadReplayData", **base)
        stopped = client.wait("EngineStopped")
        answer = client.wait("EngineBusy", "ReplayDataLoaded", request_id=late)
        if client.events.index(answer) < client.events.index(stopped):
            assert (answer["event"], answer["current_state"]) == ("EngineBusy", "Stopping"), answer


def test_p64_what_was_loaded_is_told(start, market, tmp_path):
    """Days of the exchange without a row are counted, and holidays are none of them."""
    folder = tmp_path / "holes"
    first, second, third = market.days
    write_market(folder, (first, "09:00:00 850 100"), (third, "09:00:00 850 100", "09:00:01 851 100"))
    with start(data=folder).client() as client:
        # 2025-01-13 is a holiday, 11 and 12 are a weekend; the 7th, 9th, 10th and 14th are missing.
        span = {"start_date": first, "end_date": "2025-01-14"}
        loaded = client.ask("LoadReplayData", "ReplayDataLoaded", instrument_id="7203.TSE", **span, granularity="Trade")
        assert (first, second, third) == ("2025-01-06", "2025-01-07", "2025-01-08")
        assert loaded == {
            "event": "ReplayDataLoaded", "request_id": loaded["request_id"], "instrument_id": "7203.TSE",
            "instrument_ids": ["7203.TSE"], "granularity": "Trade", **span, "trades_loaded": 3, "bars_loaded": 0,
            "days": 2, "days_missing": 4, "session_epoch": 1, "ts_event_ms": midnight_ms(first),
        }
        assert client.ask("GetSession", "Session")["state"] == "Loaded"


def test_p64_progress_is_told_ten_times_a_second_at_most(start, market):
    with start().client() as client:
        def progress(kind, since, begun):
            steps = [event for event in client.since(since, "Progress") if event["kind"] == kind]
            assert len(steps) <= 10 * (time.monotonic() - begun) + 2, "the engine took no longer than its client saw"
            assert all(0 <= step["done"] <= step["total"] and step["unit"] for step in steps)
            assert [step["done"] for step in steps] == sorted(step["done"] for step in steps)
            return steps

        begun = time.monotonic()
        loaded = market.load(client)
        steps = progress("load", 0, begun)
        assert steps and {step["request_id"] for step in steps} == {loaded["request_id"]}
        assert steps[-1]["done"] == steps[-1]["total"]
        since, begun = len(client.events), time.monotonic()
        started = market.run(client, multiplier=20_000)
        end = client.wait("EngineStopped")
        steps = progress("run", since, begun)
        assert steps and {step["request_id"] for step in steps} == {started["request_id"]}
        assert {(step["unit"], step["total"]) for step in steps} == {("rows", end["rows_done"])}


def test_p65_a_live_engine_takes_strategies_on_paper_only(tmp_path, market):
    """The order of the checks, the sets, the file and its start in replay mode:
    `test_a_start_is_refused_in_the_order_of_its_checks`."""
    with served(tmp_path, mode="live") as client:
        assert client.ready["capabilities"]["strategy_engine"] == {"live": True, "replay": False}
        config = {"instrument_id": "7203.TSE", "max_qty": 100, "max_notional_jpy": 1_000_000,
                  "strategy_file": "nowhere.wasm"}

        def refusal(config=config, engine="Live", strategy_id="one"):
            return client.refusal("StartEngine", engine=engine, strategy_id=strategy_id, config=config)

        # Shape first, then the engine against the mode, before whatever else is wrong.
        for wrong in (lambda: refusal(strategy_id="x" * 65), lambda: refusal({**config, "x": 1}, "Backtest"),
                      lambda: refusal({**config, "multiplier": 0}), lambda: refusal({**config, "initial_cash": 1})):
            refused = wrong()
            assert (refused["event"], refused["code"]) == ("Error", "validation_error"), refused
        # Then the configuration, then the venues: this engine has none.
        for of, code in ((config, "venue_not_ready"), ({"instrument_id": "7203.TSE"}, "validation_error"),
                         (market.config("empty"), "validation_error")):
            refused = refusal(of)
            assert (refused["event"], refused["code"]) == ("Error", code), refused
            refused = refusal(of, "Backtest")
            assert (refused["event"], refused["code"]) == ("EngineError", "value_error"), refused
        assert client.ask("GetSession", "Session")["state"] == "Idle"


def test_p65_what_a_start_takes(start, market):
    """`strategy_file` is relative to where the engine was started; a multiplier of 1 where none is told; amounts
    are texts; and what the execution is told is what the run does."""
    engine = start()
    (engine.folder / "mine").mkdir()
    shutil.copy(component("empty"), engine.folder / "mine" / "own.wasm")
    with engine.client() as client:
        market.load(client)
        good = market.config("empty")
        for change in ({"initial_cash": 1000}, {"initial_cash": "1e6"}, {"multiplier": "5"}, {"multiplier": 1_000_001},
                       {"strategy_file": 5}, {"execution": {}}, {"execution": {"model": "strict", "fees": "none"}}):
            refused = client.refusal("StartEngine", engine="Backtest", strategy_id="one", config={**good, **change})
            assert (refused["event"], refused["code"]) == ("Error", "validation_error"), (change, refused)
        for change in ({"execution": {"model": "kind"}}, {"execution": {"model": "strict", "commission": "much"}},
                       {"initial_cash": "0"}, {"initial_cash": "-1"}):
            refused = client.refusal("StartEngine", engine="Backtest", strategy_id="one", config={**good, **change})
            assert (refused["event"], refused["code"]) == ("Error", "validation_error"), (change, refused)
        absent = {**good, "strategy_file": "own.wasm"}
        refused = client.refusal("StartEngine", engine="Backtest", strategy_id="one", config=absent)
        assert (refused["event"], refused["code"]) == ("EngineError", "strategy_load_failed"), refused
        config = {**good, "strategy_file": "mine/own.wasm", "strategy_id": "one", "strategy_init_kwargs": None}
        started = client.ask("StartEngine", "EngineStarted", engine="Backtest", strategy_id="one", config=config)
        assert started["multiplier"] == 1
        client.ask("StopEngine", "ReplayStopped", strategy_id="one")


@pytest.mark.parametrize("model, values", [
    ("strict", {"latency_ns": 0, "commission": "none"}),
    ("realistic", {"latency_ns": 100_000_000, "participation_percent": 10}),
    ("optimistic", {"slippage_ticks": 0, "queue_ahead": 0, "same_day_round_trips": True}),
])
def test_p66_a_run_begins_with_engine_started(start, market, model, values):
    with start().client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        since = len(client.events)
        execution = {"model": model, "lot": 200, "ticks": "5"}
        started = market.run(client, "buy-and-hold", multiplier=1_000_000, execution=execution)
        assert started.keys() == {
            "event", "request_id", "strategy_id", "account_id", "run_id", "multiplier", "execution", "ts_event_ms"}
        assert (started["account_id"], started["multiplier"]) == ("REPLAY", 1_000_000)
        # Before the first row it is midnight of the first day.
        assert started["ts_event_ms"] == midnight_ms(market.days[1])
        assert started["execution"].items() >= {"model": model, "lot": 200, "ticks": "5", **values}.items()
        other = {"latency_ns", "slippage_ticks", "participation_percent", "commission", "same_day_round_trips"}
        assert all(started["execution"][name] is not None for name in other), "the values that are used"
        client.wait("EngineStopped")
        before = client.events[since:client.events.index(started)]
        assert {(event["event"], event.get("kind")) for event in before} <= {("Progress", "load")}
