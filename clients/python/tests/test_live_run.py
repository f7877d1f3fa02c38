"""Strategies on the live market, with an engine that is played by a script: what `LiveSession.run` sends, what it does
with what comes, and how it ends. Whole runs with the real engine: `test_live_paper.py`."""

import asyncio
import json
import pathlib
import signal
import threading
import time
from decimal import Decimal

import kumiki
import kumiki.aio
import pytest
from engine_process import interrupt_this
from venue_engine import TOKEN, VenueEngine

TIME = 1_736_121_600_000
NEEDED = {"instrument_id": "7203.TSE", "strategy_file": "sma-cross", "max_qty": 100, "max_notional_jpy": 500_000}
STRATEGY = "live-strategy"


def event(name, command=None, **fields):
    told = {} if command is None else {"request_id": command["request_id"]}
    return {"event": name, **told, **fields}


def started(command):
    return event("EngineStarted", command, strategy_id=command["strategy_id"], account_id="PAPER", run_id="r",
                 multiplier=1, execution={"model": "realistic", "latency_ns": 100_000_000}, ts_event_ms=TIME)


def stopped(command=None, status="stopped", **more):
    return event("EngineStopped", command, strategy_id=STRATEGY, run_id="r", final_equity="-1250.5", status=status,
                 run_dir="runs/r", rows_done=7, ts_event_ms=TIME, **more)


def of_an_order(name, **fields):
    return event(name, None, client_order_id="O-1", venue="paper", origin="strategy", strategy_id=STRATEGY,
                 instrument_id="7203.TSE", order_side="BUY", ts_event_ms=TIME, **fields)


#: What a run tells, from its first order to its first fill.
FILLED = [
    of_an_order("OrderSubmitted", request_id=None),
    of_an_order("OrderAccepted", request_id=None, venue_order_id="R1"),
    of_an_order("OrderFilled", venue_order_id="R1", trade_id="1", last_qty="100", last_price="2850.5",
                cumulative_qty="100", leaves_qty="0", ts_event_ns=TIME * 10**6),
    event("ExecutionMarker", strategy_id=STRATEGY, origin="strategy", client_order_id="O-1", trade_id="1",
          instrument_id="7203.TSE", side="BUY", price="2850.5", qty="100", ts_event_ms=TIME),
    event("PositionOpened", strategy_id=STRATEGY, venue="paper", instrument_id="7203.TSE", position_id="7203.TSE-1",
          side="BUY", opened_qty="100", avg_open_price="2850.5", ts_event_ms=TIME),
    event("BuyingPowerUpdated", request_id=None, venue="paper", cash_available="9714950", cash_shortfall=None,
          credit_available=None, ts_ms=TIME),
]


@pytest.fixture
def played():
    """Makes sessions with an engine that a function plays."""
    opened = []

    def played(play, **how):
        engine = VenueEngine(play)
        one = kumiki.LiveSession(venue="local_broker", attach=engine.port, token=TOKEN, **how)
        opened.append((one, engine))
        return one.open(), engine

    yield played
    for one, engine in opened:
        one.close()
        engine.close()


def runs(more=()):
    """An engine whose run tells `more`, and ends when it is stopped."""
    return lambda command: [started(command), *more] if command["op"] == "StartEngine" else [stopped(command)]


def test_p82_p119_what_is_sent(played):
    """Every argument in the field of its name; what is not given is not sent, unless a run needs it."""
    one, engine = played(runs())
    one.run(**NEEDED, wait=False)
    one.stop()
    assert engine.heard[0] == {
        "op": "StartEngine", "request_id": engine.heard[0]["request_id"], "engine": "Live", "strategy_id": STRATEGY,
        "config": {**NEEDED, "paper": True, "granularity": "Trade", "initial_cash": "10000000",
                   "strategy_id": STRATEGY},
    }
    limits = {"max_orders_per_minute": 30, "max_open_orders": 10, "max_daily_loss_jpy": 50_000, "max_position_qty": 300}
    one.run(**{**NEEDED, "instrument_id": ["7203.TSE", "9984.TSE"]}, **limits, paper=True, granularity="Minute",
            initial_cash="3000000.50", execution="strict", strategy_init_kwargs={"fast": 5}, strategy_id=STRATEGY,
            wait=False)
    one.stop()
    assert engine.heard[2]["config"] == {
        **NEEDED, **limits, "instrument_ids": ["7203.TSE", "9984.TSE"], "paper": True, "granularity": "Minute",
        "initial_cash": "3000000.5", "execution": {"model": "strict"}, "strategy_init_kwargs": {"fast": 5},
        "strategy_id": STRATEGY,
    }
    one.run(**NEEDED, execution={"model": "strict", "latency_ns": 0}, wait=False)
    assert engine.heard[4]["config"]["execution"] == {"model": "strict", "latency_ns": 0}


def test_a_file_is_named_in_full(played, tmp_path, monkeypatch):
    """The engine may work in another folder; what is no file here is a built-in strategy."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.wasm").write_bytes(b"")
    one, engine = played(runs())
    one.run(**{**NEEDED, "strategy_file": pathlib.Path("own.wasm")}, wait=False)
    assert engine.heard[0]["config"]["strategy_file"] == str(tmp_path / "own.wasm")


def test_what_is_wrong_is_refused_before_anything_is_sent(played):
    one, engine = played(runs())
    for wrong in ("False", 0, None):
        with pytest.raises(kumiki.ValidationError, match="^paper: "):
            one.run(**NEEDED, paper=wrong)
    for name in ("max_qty", "max_notional_jpy"):
        with pytest.raises(kumiki.ValidationError, match=f"^{name}: None"):
            one.run(**{**NEEDED, name: None})
        with pytest.raises(TypeError, match=name):
            one.run(**{key: value for key, value in NEEDED.items() if key != name})
    assert engine.heard == [] and one.status == "idle"


def test_p87_a_run_from_its_start_to_its_end(played):
    """The events in their order, the end that `on_event` asks for, and the result."""
    one, engine = played(runs(FILLED))
    events = []

    def heard(event):
        events.append(event)
        if event.name == "BuyingPowerUpdated":
            assert one.status == "running"
            assert one.stop().final_equity == Decimal("-1250.5")

    result = one.run(**NEEDED, on_event=heard)
    names = ["EngineStarted", *(event["event"] for event in FILLED), "EngineStopped"]
    assert [event.name for event in events] == names and one.status == "stopped"
    assert events[3].last_price == Decimal("2850.5") and events[3].venue == "paper" and events[0].account_id == "PAPER"
    assert (result.run_id, result.strategy_id, result.status, result.rows_done) == ("r", STRATEGY, "stopped", 7)
    assert result.final_equity == Decimal("-1250.5") and result.run_dir == pathlib.Path("runs/r")
    assert engine.ops() == ["StartEngine", "StopEngine"] and engine.heard[1]["strategy_id"] == STRATEGY


def test_p86_an_end_is_waited_for(played):
    """Orders are cancelled first, which takes as long as it takes; nothing but EngineStopped answers."""
    canceled = [of_an_order("OrderPendingCancel", request_id=None),
                of_an_order("OrderCanceled", request_id=None, venue_order_id="R1")]

    def play(command):
        if command["op"] == "StartEngine":
            return [started(command), *FILLED[:2]]
        time.sleep(1.0)
        return [*canceled, stopped(command)]

    one, _ = played(play, timeout=0.3)
    events = []
    run = one.run(**NEEDED, on_event=events.append, wait=False)
    assert (run.run_id, run.strategy_id, run.done()) == ("r", STRATEGY, False)
    assert run.execution["model"] == "realistic"
    result = one.stop()
    assert run.result(timeout=30) == result and run.done()
    assert [event.name for event in events[-3:]] == ["OrderPendingCancel", "OrderCanceled", "EngineStopped"]


@pytest.mark.parametrize("has_events", [True, False])
def test_an_interrupt_ends_the_run_and_waits_for_its_end(played, has_events):
    def play(command):
        if command["op"] == "StopEngine":
            time.sleep(0.5)
        return runs()(command)

    one, engine = played(play)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.7, interrupt_this).start()
        with pytest.raises(KeyboardInterrupt):
            one.run(**NEEDED, on_event=(lambda event: None) if has_events else None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert engine.ops() == ["StartEngine", "StopEngine"] and one.status == "stopped"


def test_what_an_event_raises_ends_the_run(played):
    def heard(event):
        if event.name == "OrderFilled":
            raise ZeroDivisionError

    one, engine = played(runs(FILLED))
    with pytest.raises(ZeroDivisionError):
        one.run(**NEEDED, on_event=heard)
    assert engine.ops() == ["StartEngine", "StopEngine"] and one.status == "stopped"


def test_p110_a_fault_has_the_result_so_far(played):
    """An error of the engine that ends nothing comes before it, and is an event as others are."""
    told = [event("EngineError", code=code, message="as told", strategy_id=STRATEGY)
            for code in ("market_data_lost", "strategy_slow", "strategy_fault")]
    fault = {"code": "strategy_fault", "message": "TOO_SLOW: 10 s"}
    one, _ = played(lambda command: [started(command), *told, stopped(status="fault", fault=fault)])
    events = []
    with pytest.raises(kumiki.StrategyFaultError, match="^TOO_SLOW: ") as failed:
        one.run(**NEEDED, on_event=events.append)
    assert [event.get("code") for event in events[1:4]] == ["market_data_lost", "strategy_slow", "strategy_fault"]
    assert failed.value.result.status == "fault" and failed.value.result.rows_done == 7 and one.status == "errored"


@pytest.mark.parametrize("name, fields, kind, words", [
    ("Error", {"code": "validation_error", "message": "MAX_QTY: it is 0"}, kumiki.ValidationError, "^MAX_QTY: "),
    ("EngineError", {"code": "live_engine_unavailable", "message": "off"}, kumiki.LiveEngineUnavailableError, "off"),
    ("EngineBusy", {"current_state": "Running", "attempted_command": "StartEngine", "reason": "one at a time"},
     kumiki.BusyError, "^StartEngine while Running: "),
    ("Error", {"code": "venue_not_ready", "message": "local_broker: nobody has logged in"},
     kumiki.VenueNotReadyError, "^local_broker: "),
    ("EngineError", {"code": "strategy_load_failed", "message": "no file"}, kumiki.StrategyLoadError, "no file"),
    ("EngineError", {"code": "strategy_init_failed", "message": "fats"}, kumiki.StrategyInitError, "fats"),
    ("Error", {"code": "register_full", "message": "50"}, kumiki.RegisterFullError, "50"),
])
def test_p84_each_refusal_has_its_exception(played, name, fields, kind, words):
    one, engine = played(lambda command: [event(name, command, **fields)])
    with pytest.raises(kind, match=words):
        one.run(**NEEDED)
    assert one.status == "idle" and engine.ops() == ["StartEngine"]


def test_the_end_of_a_run_is_no_answer_to_a_person(played):
    """Orders of people at a venue outlive the run of a strategy, whose orders may have the same ids."""
    order = {"client_order_id": "O-1", "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "LIMIT",
             "quantity": 100, "price": 2_850}

    def play(command):
        if command["op"] == "SubmitOrder":
            result = event("SubmitOrderResult", command, client_order_id="O-1", outcome="Created", status="ACCEPTED",
                           venue_order_id="77", warning_code=None, warning_text=None)
            return [of_an_order("OrderCanceled", request_id=None, venue_order_id="R1"), stopped(), result]
        return [of_an_order("OrderCanceled", request_id=None, venue_order_id="R1"), stopped(),
                event("OrderCanceled", command, client_order_id="O-1", venue_order_id="77", venue="web_broker",
                      ts_event_ms=TIME)]

    one, _ = played(play)
    assert one.submit_order(**order).venue_order_id == "77"
    assert one.cancel_order(client_order_id="O-1").venue_order_id == "77"


def test_p108_another_session_sees_the_run_and_ends_it(played):
    """It names no money, and the strategy that is to be stopped."""
    seen = event("Session", None, state="Running", run_id="r", strategy_id=STRATEGY, account_id="PAPER", instruments=[],
                 rows_done=7, rows_total=0, orders=[], orders_submitted=[], executions=[], signals=[], positions=[],
                 last_bars=[], last_trades=[], narratives=[], equity_curve=[], sequence=5)

    def play(command):
        if command["op"] == "GetSession":
            return [{**seen, "request_id": command["request_id"]}]
        return [stopped(command)]

    one, engine = played(play)
    info = one.session()
    assert (info.state, info.account_id, info.instruments) == ("Running", "PAPER", [])
    assert info.cash is info.buying_power is info.equity is None
    assert one.stop().status == "stopped"
    assert engine.heard[-1]["strategy_id"] == STRATEGY


def test_stop_returns_when_on_event_has_had_the_last_event(played):
    one, _ = played(runs())
    heard = []

    def slow(event):
        if event.name == "EngineStopped":
            time.sleep(0.2)
        heard.append(event.name)

    one.run(**NEEDED, on_event=slow, wait=False)
    one.stop()
    assert heard == ["EngineStarted", "EngineStopped"]


def test_on_event_may_stop_the_run_itself(played):
    one, _ = played(runs())
    stops = {"EngineStarted": one.stop}
    run = one.run(**NEEDED, on_event=lambda event: stops.get(event.name, lambda: None)(), wait=False)
    assert run.result(timeout=30).status == "stopped"


def test_a_closed_session_ends_no_run(played):
    one, engine = played(runs())
    run = one.run(**NEEDED, wait=False)
    one.close()
    with pytest.raises(kumiki.SessionClosedError):
        run.result()
    assert engine.ops() == ["StartEngine"]


def test_the_words_of_a_result(tmp_path):
    """What the number is depends on the kind of the run."""
    result = kumiki.RunResult(run_id="r", strategy_id="s", status="stopped", final_equity=Decimal("-1250.5"),
                              run_dir=tmp_path, rows_done=7, ts_event_ns=TIME * 10**6)
    for manifest, words in (({"run_kind": "paper"}, "profit or loss"), ({"run_kind": "live"}, "profit or loss"),
                            ({"run_kind": "replay"}, "equity"), ({"run_kind": None}, "equity"), ({}, "equity")):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        assert str(result) == f"run r: stopped at 2025-01-06 09:00, {words} -1,250.5 yen"


def test_the_same_with_asyncio():
    async def main():
        engine = VenueEngine(runs(FILLED))
        async with kumiki.aio.LiveSession(venue="local_broker", attach=engine.port, token=TOKEN) as one:
            events = []

            async def heard(event):
                events.append(event.name)
                if event.name == "PositionOpened":
                    await one.stop()

            result = await one.run(**NEEDED, max_open_orders=3, on_event=heard)
            assert result.status == "stopped" and events[-1] == "EngineStopped"
        assert engine.ops() == ["StartEngine", "StopEngine"]
        assert engine.heard[0]["config"]["max_open_orders"] == 3
        engine.close()

    asyncio.run(main())


def test_a_task_that_is_cancelled_ends_its_run():
    async def main():
        engine = VenueEngine(runs())
        async with kumiki.aio.LiveSession(venue="local_broker", attach=engine.port, token=TOKEN) as one:
            task = asyncio.create_task(one.run(**NEEDED))
            while one.status != "running":
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # If the task had not got the answer to its start yet, the session ends the run behind its back.
            while one.status != "stopped":
                await asyncio.sleep(0.01)
            assert engine.ops() == ["StartEngine", "StopEngine"]
        engine.close()

    asyncio.run(main())
