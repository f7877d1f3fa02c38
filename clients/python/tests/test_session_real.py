"""Strategies with real orders from Python, with an engine that is played by a script: what is sent, and what an answer
becomes. The engine's own part is tested with the real one."""

import asyncio
import inspect
from decimal import Decimal

import kumiki
import kumiki.aio
import pytest
from venue_engine import TOKEN, VenueEngine

TIME = 1_736_121_600_000
NEEDED = {"instrument_id": "7203.TSE", "strategy_file": "sma-cross", "max_qty": 100, "max_notional_jpy": 500_000}
HELD = {"strategy_id": "sma-cross", "instrument_id": "7203.TSE", "quantity": "200", "average_price": "1325.25",
        "margin_quantity": "-100"}


def answer(command):
    """What an engine that does all it is asked for answers."""
    request_id, op = command["request_id"], command["op"]
    if op == "StartEngine":
        return [{"event": "EngineStarted", "request_id": request_id, "strategy_id": command["strategy_id"],
                 "account_id": "LIVE", "run_id": "r", "multiplier": 1, "execution": {"model": "live"},
                 "ts_event_ms": TIME}]
    if op == "StopEngine":
        strategy_id = command["strategy_id"]
        return [
            {"event": "EngineError", "code": "orders_working", "message": "w-1", "strategy_id": strategy_id},
            {"event": "EngineStopped", "request_id": request_id, "strategy_id": strategy_id, "run_id": "r",
             "final_equity": "-5", "status": "stopped", "run_dir": "runs/r", "rows_done": 7, "ts_event_ms": TIME},
        ]
    if op == "SettleOrder":
        return [{"event": "OrderSettled", "request_id": request_id, "client_order_id": command["client_order_id"]}]
    if op == "GetStrategyPositions":
        none = {**HELD, "instrument_id": "9984.TSE", "quantity": "0", "average_price": None}
        return [{"event": "StrategyPositions", "request_id": request_id, "positions": [HELD, none]}]
    if op == "AdjustStrategyPosition":
        return [{"event": "StrategyPositionAdjusted", "request_id": request_id, "position": HELD}]
    if op == "GetVenueState":
        return [{"event": "VenueState", "request_id": request_id, "venue": "web_broker", "state": "Ready",
                 "push": "Streaming", "code": None, "since_ms": TIME, "second_password": "held"}]
    raise AssertionError(op)


@pytest.fixture
def played():
    """A session with an engine that a function plays."""
    opened = []

    def played(play=answer, **how):
        engine = VenueEngine(play)
        one = kumiki.LiveSession(venue="web_broker", attach=engine.port, token=TOKEN, **how)
        opened.append((one, engine))
        return one.open(), engine

    yield played
    for one, engine in opened:
        one.close()
        engine.close()


def test_p123_a_run_with_real_orders_always_says_its_limits(played):
    """P82, P83, P123: as `kumiki live run --real` does. P126: its name is that of its file."""
    one, engine = played()
    run = one.run(**NEEDED, paper=False, wait=False)
    limits = {"max_position_qty": 100, "max_orders_per_minute": 30, "max_open_orders": 10}
    assert engine.ops() == ["GetVenueState", "StartEngine"]
    assert engine.heard[1]["strategy_id"] == run.strategy_id == "sma-cross"
    assert engine.heard[1]["config"] == {**NEEDED, **limits, "granularity": "Trade", "strategy_id": "sma-cross"}
    assert run.execution == {"model": "live"}
    one.stop()
    limits = {"max_position_qty": 500, "max_orders_per_minute": 5, "max_open_orders": 2, "max_daily_loss_jpy": 9_000}
    one.run(**NEEDED, **limits, paper=False, strategy_id="mine", wait=False)
    assert engine.heard[4]["config"] == {**NEEDED, **limits, "granularity": "Trade", "strategy_id": "mine"}


def test_p126_a_strategy_has_the_name_of_its_file(played, tmp_path):
    one, engine = played()
    for file, name in (("my.own.wasm", "my.own"), (tmp_path / "mine.wasm", "mine"), ("some/where/it", "it")):
        one.run(**{**NEEDED, "strategy_file": file}, paper=False, wait=False)
        assert engine.heard[-1]["strategy_id"] == name
        one.stop()


def test_p83_a_run_with_real_orders_has_no_simulated_exchange(played):
    one, engine = played()
    for more in ({"initial_cash": 3_000_000}, {"execution": "strict"}):
        with pytest.raises(kumiki.ValidationError, match=f"^{next(iter(more))}: real orders have none; "):
            one.run(**NEEDED, **more, paper=False)
    assert engine.heard == [] and one.status == "idle"


def test_p124_a_person_settles_an_order(played):
    """With the broker's number, or as not at the broker; who leaves that out has said nothing."""
    one, engine = played()
    assert one.settle_order(client_order_id="w-1", origin="strategy", venue_order_id="12345") is None
    assert one.settle_order(client_order_id="mine", venue_order_id=None) is None
    told = [{name: value for name, value in command.items() if name != "request_id"} for command in engine.heard]
    assert told == [
        {"op": "SettleOrder", "client_order_id": "w-1", "origin": "strategy", "venue_order_id": "12345"},
        {"op": "SettleOrder", "client_order_id": "mine", "origin": "person", "venue_order_id": None},
    ]
    with pytest.raises(TypeError, match="venue_order_id"):
        one.settle_order(client_order_id="mine")
    for wrong in ({"client_order_id": 5}, {"origin": None}, {"venue_order_id": 12345}):
        with pytest.raises(kumiki.ValidationError, match=f"^{next(iter(wrong))}: "):
            one.settle_order(**{"client_order_id": "mine", "venue_order_id": None, **wrong})
    assert len(engine.heard) == 2


def test_p125_what_strategies_hold_is_read_and_corrected(played):
    """Shares as `int`, yen as `Decimal`, exact in both directions."""
    one, engine = played()
    held = kumiki.StrategyPosition(strategy_id="sma-cross", instrument_id="7203.TSE", quantity=200,
                                   average_price=Decimal("1325.25"), margin_quantity=-100)
    first, none = one.strategy_positions()
    assert first == held and (none.quantity, none.average_price) == (0, None)
    assert type(first.margin_quantity) is int
    change = {"strategy_id": "sma-cross", "instrument_id": "7203.TSE", "why": "split 1 to 2"}
    assert one.adjust_strategy_position(**change, quantity=200, average_price=Decimal("1325.250")) == held
    command = engine.heard[-1]
    assert (command["quantity"], command["average_price"], command["why"]) == ("200", "1325.25", "split 1 to 2")
    for wrong in ({"quantity": 1.5}, {"average_price": 1325.25}, {"why": None}, {"instrument_id": 7203}):
        with pytest.raises(kumiki.ValidationError, match=f"^{next(iter(wrong))}: "):
            one.adjust_strategy_position(**{**change, "quantity": 200, "average_price": 1, **wrong})


def test_p122_a_run_with_real_orders_asks_for_the_second_password_first(played):
    """Before it starts, because each of its orders would be rejected; on paper nobody needs one."""
    def without(command):
        return [{**event, "second_password": "none"} if event["event"] == "VenueState" else event
                for event in answer(command)]

    one, engine = played(without)
    assert one.venue_state().second_password == "none"
    with pytest.raises(kumiki.SecondPasswordRequiredError, match="call set_second_password"):
        one.run(**NEEDED, paper=False)
    assert engine.ops() == ["GetVenueState", "GetVenueState"] and one.status == "idle"
    one.run(**NEEDED, wait=False)
    assert engine.ops()[2:] == ["StartEngine"]


@pytest.mark.parametrize(("code", "kind"), [
    ("orders_unsettled", kumiki.OrdersUnsettledError), ("position_mismatch", kumiki.PositionMismatchError),
    ("validation_error", kumiki.ValidationError),
])
def test_p104_p107_p126_a_start_that_is_refused(played, code, kind):
    def refuse(command):
        if command["op"] != "StartEngine":
            return answer(command)
        return [{"event": "EngineError" if code != "validation_error" else "Error", "code": code, "message": "as told",
                 "request_id": command["request_id"]}]

    one, _ = played(refuse)
    with pytest.raises(kind, match="^as told$") as refused:
        one.run(**NEEDED, paper=False)
    assert refused.value.code == code and one.status == "idle"


def test_p104_p105_a_start_may_take_longer_than_an_answer(played):
    """The engine waits for orders of earlier runs, two times 30 s; a start on paper does not."""
    one, _ = played(timeout=7.0)
    assert one._core._start_time({"paper": True}) == 7.0
    assert one._core._start_time({}) == 120.0


def test_p127_the_events_of_a_run_say_that_orders_work(played):
    one, _ = played()
    codes = []

    def heard(event):
        codes.append(event.get("code"))
        if event.name == "EngineStarted":
            one.stop()

    assert one.run(**NEEDED, paper=False, on_event=heard).status == "stopped"
    assert codes == [None, "orders_working", None]


def test_the_same_with_asyncio():
    async def main():
        engine = VenueEngine(answer)
        async with kumiki.aio.LiveSession(attach=engine.port, token=TOKEN) as one:
            run = await one.run(**NEEDED, paper=False, wait=False)
            await one.stop()
            assert run.strategy_id == "sma-cross"
            await one.settle_order(client_order_id="mine", venue_order_id=None)
            assert len(await one.strategy_positions()) == 2
            held = await one.adjust_strategy_position(
                strategy_id="sma-cross", instrument_id="7203.TSE", quantity=0, average_price=0, why="sold by hand")
            assert held.quantity == 200
        engine.close()

    asyncio.run(main())
    for name in ("settle_order", "strategy_positions", "adjust_strategy_position"):
        both = [getattr(kind, name) for kind in (kumiki.LiveSession, kumiki.aio.LiveSession)]
        assert inspect.signature(both[0]) == inspect.signature(both[1]), name
