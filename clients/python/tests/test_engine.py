"""Whole sessions of `kumiki serve --mode replay`, seen by a client that was written from the specification."""

import json
import os
import pathlib
import random
import subprocess
import sys
from decimal import Decimal

import pytest
from engine_process import CASH, EXECUTION, EXECUTION_FLAGS, component, wait_until
from plain_client import REFUSALS
from sessions import (
    RICH, check_folder, check_money, check_run, filled, last_trade_price, manifest, order, orders, submit, table,
)

#: Sessions with commands at random; the soak takes 200 of them. One seed of its own: KUMIKI_SOAK_SEED.
SESSIONS = int(os.environ.get("KUMIKI_SOAK_ENGINE_SESSIONS", "10"))
SEEDS = [int(os.environ["KUMIKI_SOAK_SEED"])] if "KUMIKI_SOAK_SEED" in os.environ else range(1, SESSIONS + 1)
#: The first answers to commands of people in a run.
ANSWERS = ("OrderSubmitted", "OrderPendingUpdate", "OrderPendingCancel", "CancelAllResult", "ReplaySpeedChanged")


def test_a_session_of_who_has_nothing_of_the_package(start, market):
    """The handshake and a whole session, in a process in which the package can not be imported. Pin P62."""
    engine = start()
    span = {"instrument_id": "7203.TSE", **market.span(), "granularity": "Trade"}
    config = {"initial_cash": str(CASH), "strategy_file": component("empty"), "execution": EXECUTION}
    how = {"port": engine.port, "token": engine.token, "span": span, "config": config}
    script = pathlib.Path(__file__).with_name("independent_session.py")
    ended = subprocess.run([sys.executable, "-I", str(script), json.dumps(how)], capture_output=True, text=True,
                           encoding="utf-8")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told, trades = json.loads(ended.stdout), market.trades("7203.TSE", market.days[1:2])
    assert told["refused"] == ["EngineError", "auth_failed", 1008, "auth_failed"]
    assert told["loaded"] == told["rows"] == told["done"] == len(trades) and told["status"] == "completed"
    assert told["equity"] == told["cash"] and told["fills"] >= 2, "it holds nothing at the end"
    assert told["code"] == 1001 and engine.ended() == 0


def test_a_whole_session(start, market):
    """Pins P64, P66, P70, P71, P74 and P75."""
    engine = start()
    assert engine.session()["token"] == engine.token
    with engine.client() as client, engine.client() as other:
        assert client.ready["session_state"] == "Idle"
        assert client.ready["capabilities"]["strategy_engine"] == {"live": False, "replay": True}
        assert client.ready["engine_session_id"] == other.ready["engine_session_id"]
        assert client.challenge["server_nonce"] != other.challenge["server_nonce"]

        # Loading.
        subscribed = client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        assert (subscribed["ticker"], subscribed["ticker_info"]["symbol"]) == ("7203", "7203")
        trades = market.trades("7203.TSE", market.days[1:3])
        loaded = market.load(client, 1, 2)
        assert (loaded["trades_loaded"], loaded["days"], loaded["days_missing"]) == (len(trades), 2, 0)
        assert loaded["instrument_ids"] == ["7203.TSE"] and loaded["session_epoch"] == 1
        assert other.wait("ReplayDataLoaded")["request_id"] == loaded["request_id"]
        session = client.ask("GetSession", "Session")
        assert session["state"] == "Loaded" and session["rows_done"] == 0
        assert [row["trades_loaded"] for row in session["instruments"]] == [len(trades)]

        # Starting: slow enough that orders can be sent in time, a row at most 0.2 s after the one before.
        started = market.run(client, last=2, multiplier=20)
        assert (started["account_id"], started["strategy_id"], started["multiplier"]) == ("REPLAY", "one", 20)
        assert (started["execution"]["commission"], started["execution"]["latency_ns"]) == ("none", 0)
        price = last_trade_price(client)

        # A limit below the market rests, is changed, and cancelled.
        low, lower = int(price * Decimal("0.98")), int(price * Decimal("0.97"))
        answer = submit(client, order("rests", price=str(low)))
        assert answer["status"] == "ACCEPTED" and answer["venue_order_id"].startswith("R")
        accepted = other.wait("OrderAccepted", client_order_id="rests")
        assert accepted["venue_order_id"] == answer["venue_order_id"] and accepted["request_id"] == answer["request_id"]
        assert (accepted["origin"], accepted["order_side"]) == ("person", "BUY")
        change = {"new_price": str(lower), "new_quantity": "200"}
        updated = client.ask("ModifyOrder", "OrderUpdated", venue="replay", client_order_id="rests", change=change)
        assert (updated["price"], updated["quantity"]) == (str(lower), "200")
        pending = client.wait("OrderPendingUpdate", request_id=updated["request_id"])
        assert client.events.index(pending) < client.events.index(updated)
        row, = orders(client)
        assert (row["status"], row["price"], row["leaves_qty"]) == ("ACCEPTED", str(lower), "200")
        assert row["origin"] == "person"
        cancelled = client.ask(
            "CancelOrder", "OrderCanceled", venue="replay", venue_order_id=answer["venue_order_id"]
        )
        assert cancelled["client_order_id"] == "rests"
        pending = client.wait("OrderPendingCancel", request_id=cancelled["request_id"])
        assert client.events.index(pending) < client.events.index(cancelled)
        again = client.refusal("CancelOrder", venue="replay", client_order_id="rests")
        assert again["event"] == "OrderRejected", again

        # A market order fills at a trade of the data, after the row that was handled when it was sent.
        wanted = order("now")
        seen = len(client.events)
        answer = submit(client, wanted)
        fill, = filled(client, "now")
        assert any((fill["last_price"], fill["ts_event_ns"]) == (trade[0], trade[2]) for trade in trades)
        sent = client.wait("OrderSubmitted", client_order_id="now")
        assert sent["ts_event_ms"] <= fill["ts_event_ms"]
        assert client.wait("PositionOpened", since=seen)["position_id"] == "7203.TSE-1"
        power = client.ask("GetBuyingPower", "ReplayBuyingPower", venue="replay")
        cost = 100 * Decimal(fill["last_price"])
        assert Decimal(power["cash"]) == CASH - cost and power["strategy_id"] == "one"
        held = client.ask("GetPositions", "PositionsUpdated", venue="replay")
        position, = held["positions"]
        assert position.items() >= {
            "instrument_id": "7203.TSE", "qty": "100", "avg_open_price": fill["last_price"], "side": "BUY",
            "position_type": "cash", "venue": "replay",
        }.items()
        assert Decimal(position["unrealized_pnl"]) == Decimal(position["market_value"]) - cost

        # The same order once more is the same order; another one under its id is a conflict.
        same = client.ask("SubmitOrder", "SubmitOrderResult", venue="replay", order=wanted)
        assert (same["outcome"], same["venue_order_id"]) == ("IdempotentReplay", answer["venue_order_id"])
        conflict = client.refusal("SubmitOrder", venue="replay", order={**wanted, "quantity": "200"})
        assert (conflict["event"], conflict["code"], conflict["venue_order_id"]) == (
            "Error", "conflict", answer["venue_order_id"])

        # The list by its filters.
        assert [row["client_order_id"] for row in orders(client)] == ["rests", "now"]
        assert [row["client_order_id"] for row in orders(client, status="FILLED")] == ["now"]
        first_day = market.days[1].replace("-", "")
        assert len(orders(client, date=first_day)) == 2 and orders(client, date="20200101") == []
        assert orders(client, instrument_id="9984.TSE") == []

        # Selling closes the position.
        submit(client, order("out", side="SELL"))
        sale, = filled(client, "out")
        closed = client.wait("PositionClosed")
        assert Decimal(closed["realized_pnl"]) == 100 * (Decimal(sale["last_price"]) - Decimal(fill["last_price"]))

        # To the end of the data.
        changed = other.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
        assert client.wait("ReplaySpeedChanged") == changed and changed["multiplier"] == "max"
        stopped = client.wait("EngineStopped")
        assert (stopped["status"], stopped["rows_done"], stopped["run_id"]) == (
            "completed", len(trades), started["run_id"])
        session = client.ask("GetSession", "Session")
        assert session["state"] == "Idle" and session["last_run"] == {
            name: stopped[name] for name in ("run_id", "run_dir", "final_equity", "status")}
        assert other.wait("EngineStopped") == stopped

        asked = {event["request_id"] for event in (power, held)}
        run = check_run([event for event in client.events if event.get("request_id") not in asked])
        check_money(run)
        folder = engine.runs()[started["run_id"]]
        assert str(folder) == stopped["run_dir"]
        check_folder(folder, run)
    engine.process.stdin.close()
    assert engine.ended() == 0


#: A client that holds a position and an order, says so, and then only listens until it is killed.
VICTIM = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[2])
import plain_client
session = json.loads(pathlib.Path(sys.argv[1]).read_text())
client = plain_client.Client(session["port"], session["token"])
commands = json.loads(sys.stdin.readline())
for op, answer, fields in commands:
    client.ask(op, answer, **fields)
client.wait("OrderFilled")
client.wait("OrderAccepted", client_order_id="rests")
print(json.dumps([event for event in client.events if event["event"].startswith("Order")]), flush=True)
while True:
    client.next()
"""


def test_a_run_outlives_its_client(start, market):
    """Pins P69 and P70."""
    engine = start(standalone=True)
    trades = market.trades("7203.TSE", market.days[1:2])
    low = str(int(Decimal(trades[0][0]) * Decimal("0.9")))
    submit_all = [["SubmitOrder", "OrderSubmitted", {"venue": "replay", "order": wanted}]
                  for wanted in (order("rests", price=low), order("now"))]
    commands = [
        ["LoadReplayData", "ReplayDataLoaded",
         {"instrument_id": "7203.TSE", "granularity": "Trade", **market.span()}],
        ["StartEngine", "EngineStarted",
         {"engine": "Backtest", "strategy_id": "one", "config": market.config("empty", multiplier=20)}],
        *submit_all,
    ]
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(engine.session_file), str(pathlib.Path(__file__).parent)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    victim.stdin.write(json.dumps(commands) + "\n")
    victim.stdin.flush()
    line = victim.stdout.readline()
    victim.kill()
    assert line, "the client failed"
    victim.communicate()
    seen = json.loads(line)

    with engine.client(token=engine.session()["token"]) as client:
        assert client.ready["session_state"] == "Running"
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203.TSE")
        session = client.ask("GetSession", "Session")
        place = client.events.index(session)
        rows = {row["client_order_id"]: row for row in orders(client)}
        assert list(rows) == ["rests", "now"]
        numbers = {event["client_order_id"]: event["venue_order_id"]
                   for event in seen if event["event"] == "OrderAccepted"}
        assert {name: row["venue_order_id"] for name, row in rows.items()} == numbers
        assert rows["rests"].items() >= {"status": "ACCEPTED", "leaves_qty": "100", "price": low}.items()
        assert (rows["now"]["status"], rows["now"]["filled_qty"]) == ("FILLED", "100")
        assert session["orders"] == list(rows.values())
        fill, = [event for event in seen if event["event"] == "OrderFilled"]
        position, = session["positions"]
        assert (position["qty"], position["avg_open_price"]) == ("100", fill["last_price"])
        assert Decimal(session["cash"]) == CASH - 100 * Decimal(fill["last_price"])
        assert (session["state"], session["strategy_id"], session["rows_total"]) == ("Running", "one", len(trades))
        # What comes after the answer happened after it: the next trade is the next row.
        next_trade = client.wait("Trades", since=place)["trades"][0]
        done = session["rows_done"]
        assert (next_trade["price"], next_trade["qty"], next_trade["ts_ns"]) == trades[done]
        assert not [event for event in client.since(0, "Trades")
                    if client.events.index(event) < place and event["trades"][-1]["ts_ns"] > trades[done - 1][2]]
        # It goes on, and the order that was found can be cancelled.
        client.ask("CancelOrder", "OrderCanceled", venue="replay", client_order_id="rests")
        client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
        assert client.wait("EngineStopped")["status"] == "completed"
    engine.signal("SIGINT")
    assert engine.ended() == 0


def test_a_run_that_nobody_watches_is_stopped(start, market):
    """Pin P69."""
    engine = start()
    with engine.client() as client:
        market.load(client)
        started = market.run(client)
    wait_until(lambda: started["run_id"] in engine.runs(), "the run is stopped and its folder complete")
    with engine.client() as client:
        wait_until(lambda: client.ask("GetSession", "Session")["state"] == "Idle", "the session is idle")
        last = client.ask("GetSession", "Session")["last_run"]
        assert (last["run_id"], last["status"]) == (started["run_id"], "stopped")
    assert manifest(engine.runs()[started["run_id"]])["partial"] is True


def test_stopping_a_run_ends_its_orders_first(start, market):
    """Pin P67."""
    engine = start()
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        market.run(client, multiplier=20)
        low = str(int(last_trade_price(client) * Decimal("0.97")))
        submit(client, order("first", price=low))
        submit(client, order("second", price=low))
        stopped = client.ask("StopEngine", "ReplayStopped", strategy_id="one")
        end = client.wait("EngineStopped")
        assert end["status"] == "stopped" and stopped["final_equity"] == end["final_equity"]
        run = check_run(client.events)
        last = [(event["event"], event.get("client_order_id")) for event in run][-5:]
        assert last == [("OrderCanceled", "first"), ("OrderCanceled", "second"), ("ReplayBuyingPower", None),
                        ("ReplayStopped", None), ("EngineStopped", None)]
        check_folder(engine.runs()[end["run_id"]], run)
        left = client.ask("GetSession", "Session")["orders"]
        assert [(row["client_order_id"], row["status"]) for row in left] == [
            ("first", "CANCELED"), ("second", "CANCELED")]

        # The next run begins with nothing: another list of orders, and ids that are free again.
        market.load(client)
        assert client.ask("GetSession", "Session")["orders"] == []
        place = len(client.events)
        market.run(client, multiplier=20, strategy_id="two")
        assert orders(client) == []
        last_trade_price(client, place)
        submit(client, order("first", price=low))
        client.ask("StopEngine", "ReplayStopped", strategy_id="two")
        client.wait("EngineStopped", since=place)
        check_run(client.since(place))


@pytest.mark.parametrize("running", [True, False], ids=["running", "idle"])
@pytest.mark.parametrize("how", [*(["SIGTERM"] if os.name == "posix" else []), "SIGINT", "Shutdown", "stdin"])
def test_it_ends_when_it_is_told_to(start, market, how, running):
    """Pin P80."""
    engine = start(standalone=how != "stdin")
    with engine.client() as client, engine.client() as other:
        if running:
            market.load(client)
            started = market.run(client)
        if how == "stdin":
            engine.process.stdin.close()
        elif how == "Shutdown":
            other.send("Shutdown")
        else:
            engine.signal(how)
        assert (client.closed(), other.closed()) == (1001, 1001)
        if running:
            for told in (client, other):
                last = [event for event in told.events if event["event"] != "ClientConnected"][-1]
                assert last["event"] == "EngineStopped" and last["status"] == "stopped", last
    assert engine.ended() == 0
    assert not engine.session_file.exists()
    if running:
        assert manifest(engine.runs()[started["run_id"]])["partial"] is True
    assert engine.lines.get(timeout=5) is None, "it printed more than its port"


def test_the_file_of_a_dead_engine_is_in_nobodys_way(start):
    dead = start(standalone=True)
    before = dead.session()
    dead.kill()
    assert dead.session_file.exists()
    engine = start(folder=dead.folder, standalone=True)
    after = engine.session()
    assert after["token"] != before["token"] and len(after["token"]) >= 32
    with engine.client() as client:
        client.ask("GetSession", "Session")


def test_only_the_last_runs_are_kept(start, market):
    """Pin P79."""
    engine = start(more=("--runs-kept", "2"))
    with engine.client() as client:
        names = []
        for _ in range(4):
            market.load(client)
            place = len(client.events)
            names.append(market.run(client, multiplier="max")["run_id"])
            client.wait("EngineStopped", since=place)
        assert len(set(names)) == 4
        wait_until(lambda: sorted(engine.runs()) == sorted(names[2:]), f"{names[2:]} alone are left")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_session_can_be_repeated_from_its_commands(start, market, desk, seed):
    """People send commands at random while a strategy trades at random; the recorded commands give the same run,
    whatever the window. Every third session is stopped before its end. Pin P79."""
    print(f"KUMIKI_SOAK_SEED={seed} repeats this session alone")
    engine = start()
    dice = random.Random(seed)
    parameters = {"seed": seed, "every": 25}
    # In every second session commands come while orders are on their way.
    latency = 100 if seed % 2 == 0 else 0
    with engine.client() as client:
        for ticker in ("7203", "9984"):
            client.ask("Subscribe", "Subscribed", venue="replay", ticker=ticker)
        market.load(client, 1, 2, instruments=market.instruments)
        config = {"strategy_init_kwargs": parameters, "instruments": market.instruments, "initial_cash": RICH,
                  "execution": {**EXECUTION, "latency_ns": latency * 1_000_000}}
        started = market.run(client, "trades-at-random", last=2, multiplier=200, **config)
        ends_early = seed % 3 == 0
        command_each(client)
        client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=2000)
        sent = command_at_random(client, dice, 120)
        if ends_early:
            client.send("StopEngine", strategy_id="one")
        else:
            client.send("SetReplaySpeed", multiplier="max")
        end = client.wait("EngineStopped")
        # On a busy machine the data may have ended before the last command.
        assert end["status"] == "completed" or (end["status"] == "stopped" and ends_early), end
        ends_early = end["status"] == "stopped"
        client.ask("GetSession", "Session")
        run = check_run(client.events)
    folder = engine.runs()[started["run_id"]]
    check_folder(folder, run)
    assert sent and (folder / "commands.jsonl").stat().st_size > 0
    assert engine.token not in (folder / "commands.jsonl").read_text(encoding="utf-8")
    cash, held = check_money(run, RICH, each=False)
    if not ends_early:
        last = {issue: Decimal(market.trades(issue, market.days[1:3])[-1][0]) for issue in held}
        assert Decimal(end["final_equity"]) == cash + sum(held[issue] * last[issue] for issue in held)
    people = {event["event"] for event in run if event.get("origin") == "person"}
    assert {"OrderFilled", "OrderCanceled", "OrderUpdated"} <= people, people

    work, call = desk
    for window in ("1", "64", "1024"):
        out = work / f"repeated-{seed}-{window}"
        arguments = [
            "replay", "run", component("trades-at-random"), "--data", str(market.folder), "--instrument", "7203.TSE",
            "--instrument", "9984.TSE", "--from", market.days[1], "--to", market.days[2], "--cash", RICH,
            *(flag if flag != "0ms" else f"{latency}ms" for flag in EXECUTION_FLAGS),
            *(f"--param={name}={value}" for name, value in parameters.items()), "--commands",
            str(folder / "commands.jsonl"), "--window", window, "--out", str(out), "--quiet",
        ]
        call(*arguments)
        assert manifest(out)["event_log_digest"] == manifest(folder)["event_log_digest"], window
        for name in ("orders", "fills", "equity"):
            assert table(out, name) == table(folder, name), f"{name} with window {window}"
    if ends_early or seed == 1:
        # The folder alone says what was done, also where somebody stopped it.
        call("replay", "verify", str(folder), "--data", str(market.folder), "--strategy", component("trades-at-random"),
             "--quiet")


def command_each(client):
    """Sends one of each command that does something, so that every session has it."""
    first = client.wait("Trades")
    issue, far = first["instrument_id"], str(int(Decimal(first["trades"][-1]["price"]) * Decimal("0.97")))
    submit(client, order("rests", price=far, instrument_id=issue))
    change = {"new_quantity": "200"}
    client.ask("ModifyOrder", "OrderUpdated", venue="replay", client_order_id="rests", change=change)
    client.ask("CancelOrder", "OrderCanceled", venue="replay", client_order_id="rests")
    submit(client, order("bought", instrument_id=issue))
    filled(client, "bought")


def command_at_random(client, dice, count):
    """Sends commands drawn from a seed, some of them wrong, as long as the run goes on; gives the ids of the
    orders. At most five wait for their answers, so that a client that is slow does not go on after the end."""
    ids, prices, place, asked = [], {}, 0, []
    while count:
        if len(asked) > 5:
            since, request_id = asked.pop(0)
            answer = client.wait(*REFUSALS, *ANSWERS, since=since, request_id=request_id)
            if answer["event"] == "EngineBusy":
                return ids
        # A few rows between two commands.
        for _ in range(dice.randrange(1, 12)):
            told = client.wait("Trades", "EngineStopped", since=len(client.events))
            if told["event"] == "EngineStopped":
                return ids
        for event in client.since(place, "Trades"):
            prices[event["instrument_id"]] = Decimal(event["trades"][-1]["price"])
        place = len(client.events)
        count -= 1
        issue = dice.choice(sorted(prices))
        near = str(int(prices[issue]) + dice.randrange(-6, 7))
        known = dice.choice(ids) if ids else "nobody"
        kind = dice.randrange(12)
        since = len(client.events)
        if kind < 6 or not ids:
            ids.append(f"person-{len(ids)}")
            side = dice.choice(["BUY", "BUY", "SELL"])
            quantity = dice.choice(["100", "200", "300", "100", "150"])
            price = dice.choice([near, near, near, None])
            wanted = order(ids[-1], side, price, quantity, instrument_id=issue)
            request_id = client.send("SubmitOrder", venue="replay", order=wanted)
        elif kind < 8:
            request_id = client.send("CancelOrder", venue="replay", client_order_id=known)
        elif kind < 10:
            both = {"new_price": near, "new_quantity": "100"}
            change = dice.choice([{"new_price": near}, {"new_quantity": "200"}, both])
            request_id = client.send("ModifyOrder", venue="replay", client_order_id=known, change=change)
        elif kind < 11:
            only = dice.choice([{}, {"order_side": "SELL"}, {"instrument_id": issue}])
            request_id = client.send("CancelAllOrders", venue="replay", **only)
        else:
            request_id = client.send("SetReplaySpeed", multiplier=dice.choice([1000, 2000, 4000]))
        asked.append((since, request_id))
    return ids
