"""The pins about a run: its end, its speed, its watchers and its session, P67 to P70, each by its name. What another
test holds wholly is not repeated: the docstrings name it."""

import pathlib
import time
from decimal import Decimal

import pytest

pytest.importorskip("websockets")
pytest.importorskip("jsonschema")

from engine_process import CASH, EXECUTION, wait_until, write_market  # noqa: E402
from sessions import RICH, check_run, last_trade_price, manifest, order, orders, submit  # noqa: E402


def test_p67_a_run_that_is_stopped_ends_in_order(start, market):
    """Another strategy and other states: `test_what_does_not_fit_the_state_is_told_as_busy`; only people's orders:
    `test_stopping_a_run_ends_its_orders_first`; a fault: `test_a_strategy_that_fails_ends_its_run`."""
    with start().client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        started = market.run(client, "trades-at-random", multiplier=300, initial_cash=RICH,
                             strategy_init_kwargs={"seed": 1, "every": 5})
        low = str(int(last_trade_price(client) * Decimal("0.9")))
        submit(client, order("mine", price=low))

        for _ in range(50):
            client.wait("OrderAccepted", origin="strategy", since=len(client.events))
            client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=1)
            rows = client.ask("GetSession", "Session")["orders"]
            if any(row["origin"] == "strategy" and row["status"] == "ACCEPTED" for row in rows):
                break
            client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=300)
        stop = client.send("StopEngine", strategy_id="one")
        end = client.wait("EngineStopped")
        run = check_run(client.events)
        names = [event["event"] for event in run]
        assert names[-3:] == ["ReplayBuyingPower", "ReplayStopped", "EngineStopped"]
        first = len(names) - 3
        while names[first - 1] == "OrderCanceled":
            first -= 1
        open_orders = set()
        for event in run[:first]:
            key = (event.get("origin"), event.get("client_order_id"))
            if event["event"] == "OrderAccepted":
                open_orders.add(key)
            elif event["event"] in ("OrderCanceled", "OrderExpired") or event.get("leaves_qty") == "0":
                open_orders.remove(key)
        ended = [(event["origin"], event["client_order_id"]) for event in run[first:-3]]
        assert sorted(ended) == sorted(open_orders) and {origin for origin, _ in ended} == {"person", "strategy"}
        left = client.ask("GetSession", "Session")["orders"]
        assert {row["status"] for row in left} <= {"FILLED", "CANCELED", "REJECTED", "EXPIRED"}
        assert run[-2] == {"event": "ReplayStopped", "request_id": stop, "run_id": started["run_id"],
                           "final_equity": end["final_equity"]}
        assert end.keys() - {"fault"} == {"event", "strategy_id", "run_id", "final_equity", "status", "run_dir",
                                          "rows_done", "ts_event_ms"}
        assert (end["status"], end.get("fault"), end["strategy_id"]) == ("stopped", None, "one")
        assert manifest(pathlib.Path(end["run_dir"]))["partial"] is True


def test_p67_an_order_under_way_ends_with_its_run(start, tmp_path):
    """It never came to the exchange, and is told as cancelled all the same."""
    one = write_market(tmp_path / "one", ("2025-01-06", *(f"09:{minute:02}:00 850 100" for minute in range(60))))
    with start(data=one.folder).client() as client:
        one.load(client, 0, 0)
        late = {**EXECUTION, "latency_ns": 3_600_000_000_000}
        one.run(client, "buy-and-hold", first=0, last=0, multiplier=1, execution=late)
        client.wait("OrderSubmitted", origin="strategy")
        sent = client.send("SubmitOrder", venue="replay", order=order("mine", price="840"))
        client.wait("OrderSubmitted", request_id=sent)
        client.ask("StopEngine", "ReplayStopped", strategy_id="one")
        client.wait("EngineStopped")
        run = check_run(client.events)
        assert [(event["event"], event.get("origin")) for event in run[-5:]] == [
            ("OrderCanceled", "strategy"), ("OrderCanceled", "person"), ("ReplayBuyingPower", None),
            ("ReplayStopped", None), ("EngineStopped", None)]
        assert [event["venue_order_id"] for event in run[-5:-3]] == [None, None]
        assert run[-4]["request_id"] == sent


def test_p67_what_outlives_the_data_expires_with_them(start, market):
    """A DAY order at its day's close: `test_orders_end_with_their_day_and_with_the_data`."""
    with start().client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        market.run(client, multiplier=20)
        low = str(int(last_trade_price(client) * Decimal("0.9")))
        later = 1_736_402_400_000_000_000  # 15:00 of 2025-01-09
        submit(client, order("gtd", price=low, time_in_force="GTD", expire_time_ns=later))
        client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
        end = client.wait("EngineStopped")
        expired = client.wait("OrderExpired", client_order_id="gtd")
        assert client.events.index(expired) < client.events.index(end)
        last = market.trades("7203.TSE", market.days[1:2])[-1]
        assert expired["ts_event_ms"] == last[2] // 1_000_000 == end["ts_event_ms"]


def test_p67_after_a_run_data_are_loaded_again(start, market):
    """A natural end, at which orders expire: `test_orders_end_with_their_day_and_with_the_data`."""
    engine = start()
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        loaded = market.load(client, 1, 2)
        market.run(client, last=2, multiplier=20)
        low = str(int(last_trade_price(client) * Decimal("0.9")))
        submit(client, order("day", price=low))
        client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
        end = client.wait("EngineStopped")
        assert not client.since(0, "ReplayStopped"), "nobody stopped it"
        assert (end["status"], end["rows_done"]) == ("completed", loaded["trades_loaded"])
        session = client.ask("GetSession", "Session")
        assert (session["state"], session["instruments"]) == ("Idle", [])
        refused = client.refusal("StartEngine", engine="Backtest", strategy_id="one", config=market.config("empty"))
        assert (refused["event"], refused["code"]) == ("Error", "not_loaded")
        # A load that fails leaves the list as it is.
        wrong = client.refusal("LoadReplayData", instrument_id="1301.TSE", **market.span(), granularity="Trade")
        assert wrong["code"] == "data_not_found" and [row["status"] for row in orders(client)] == ["EXPIRED"]
        # What is decoded already is not decoded again. A memo is what is remembered of a vendor's file, and is
        # written anew as long as that file is so young that it may still change.
        decoded = {path: path.stat().st_mtime_ns for path in engine.cache_dir.rglob("*")
                   if path.is_file() and "runs" not in path.parts and path.suffix != ".memo"}
        again = market.load(client, 1, 2)
        assert (again["trades_loaded"], again["session_epoch"]) == (loaded["trades_loaded"], 2)
        assert decoded and all(path.stat().st_mtime_ns == at for path, at in decoded.items())
        assert orders(client) == []


def schedule(times, multiplier):
    """Seconds between the first and the last row: what the specification says of sleeps, over rows of one session
    each, in nanoseconds."""
    total = 0
    for before, after in zip(times, times[1:]):
        halves = [(nanos // 3_600_000_000_000 + 9) % 24 // 12 for nanos in (before, after)]
        if before // 86_400_000_000_000 == after // 86_400_000_000_000 and halves[0] == halves[1]:
            total += min(max(after - before, 1_000_000) / multiplier, 200_000_000)
    return total / 1e9


def test_p68_rows_sleep_as_the_market_did(start, market):
    """Two instruments: what lies between the merged rows counts, and the same instant a millisecond."""
    with start().client() as client:
        market.load(client, 1, 2, instruments=market.instruments)
        since = time.monotonic()
        market.run(client, last=2, multiplier=20_000, instruments=market.instruments)
        client.wait("EngineStopped")
        took = time.monotonic() - since
        times = sorted(nanos for issue in market.instruments for _, _, nanos in market.trades(issue, market.days[1:3]))
        planned = schedule(times, 20_000)
        # The schedule is absolute: a run is never ahead of it, and hurries where it is late.
        assert planned > 1 and took > planned - 0.25, (took, planned)
        assert took < 10 * planned + 20


def test_p68_pauses_of_the_market_are_not_slept(start, tmp_path):
    """Rows on both sides of the lunch break, of the night, or of a weekend follow at once; the closing auction is a
    part of the afternoon."""
    days = [f"2025-01-{day:02}" for day in (*range(6, 11), *range(14, 18), *range(20, 25), *range(27, 32))]
    breaks = write_market(tmp_path / "breaks", *((day, "11:29:00 850 100", "12:31:00 851 100") for day in days))
    auctions = write_market(tmp_path / "auctions", *((day, "15:20:00 850 100", "15:30:00 851 100") for day in days[:6]))
    took = []
    for one in (breaks, auctions):
        with start(data=one.folder).client() as client:
            one.load(client, 0, len(one.days) - 1)
            asked = time.monotonic()
            one.run(client, first=0, last=len(one.days) - 1, multiplier=1)
            started = time.monotonic()
            client.wait("EngineStopped")
            took.append((time.monotonic() - asked, time.monotonic() - started))
    assert took[0][1] < 0.2 * (2 * len(days) - 1), "each pause would take 0.2 s"
    assert took[1][0] > 0.2 * 6 - 0.25, "six auctions are slept for"


def test_p68_a_change_of_speed_goes_on_with_a_sleep(start, tmp_path):
    """Values that are none, and states: `test_what_does_not_fit_the_state_is_told_as_busy`. A sleep that began anew
    with each change would never end here; one that ended with it would let a row pass for each."""
    one = write_market(tmp_path / "slow", ("2025-01-06", *(f"09:{minute:02}:00 850 100" for minute in range(60))))
    engine = start(data=one.folder)
    with engine.client() as client, engine.client() as other:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        one.load(client, 0, 0)
        begun, changes = time.monotonic(), 0
        one.run(client, first=0, last=0, multiplier=1)

        def check():
            rows = len(client.since(0, "Trades"))
            assert time.monotonic() - begun > 0.2 * (rows - 1) - 0.25, f"{rows} rows are early"
            return rows

        while check() < 8:
            changes += 1
            changed = client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=1 + changes % 2)
            assert changed["multiplier"] == 1 + changes % 2
            time.sleep(0.005)
        # A person's order is answered in the sleep, and does not end it (P72).
        for number in range(30):
            submit(client, order(f"o{number}", price="700"))
        times = {event["ts_event_ms"] for event in client.since(0, "OrderSubmitted")}
        assert len(times) < 30, "each was answered at a row of its own"
        check()
        changed = client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
        client.wait("EngineStopped")
        assert other.wait("ReplaySpeedChanged", multiplier="max") == changed
        assert len(other.since(0, "ReplaySpeedChanged")) == changes + 1


def test_p69_a_run_that_nobody_watches_goes_on_for_ten_seconds(start, market):
    """To the asker only, with the state and the venue: `test_what_does_not_fit_the_state_is_told_as_busy`. The run
    is ended as by StopEngine: `test_a_run_that_nobody_watches_is_stopped`. Who comes back in time finds it running,
    and the ten seconds begin anew; with --standalone it goes on."""
    alone, engine = start(standalone=True), start()
    for one in (alone, engine):
        with one.client() as client:
            assert client.ready["session_state"] == "Idle"
            market.load(client)
            started = market.run(client)
    time.sleep(1)
    with engine.client() as client:
        assert client.ready["session_state"] == "Running"
        here = time.monotonic()
    wait_until(lambda: started["run_id"] in engine.runs(), "the run is stopped")
    assert time.monotonic() - here > 10, "ten seconds from the last one that left"
    with engine.client() as client:
        wait_until(lambda: client.ask("GetSession", "Session")["state"] == "Idle", "the session is idle")
        last = client.ask("GetSession", "Session")["last_run"]
        assert (last["run_id"], last["status"]) == (started["run_id"], "stopped")
    assert not alone.runs()
    with alone.client() as client:
        assert client.ready["session_state"] == "Running"
        assert client.refusal("LoadReplayData", **market.span(), instrument_id="7203.TSE", granularity="Trade") == {
            **client.events[-1], "event": "EngineBusy", "current_state": "Running",
            "attempted_command": "LoadReplayData"}


def test_p70_a_session_is_told_whole(start, market):
    """What comes after it happened after it, in a run that goes on: `test_a_run_outlives_its_client`."""
    names = "run_id strategy_id account_id multiplier".split()
    values = "ts_event_ms cash buying_power equity".split()
    with start().client() as client:
        def ask():
            session = client.ask("GetSession", "Session")
            assert session.keys() >= {"state", "instruments", "rows_done", "rows_total", "orders", "positions",
                                      "last_bars", "last_trades", "sequence"}
            is_live = session["state"] in ("Running", "Stopping")
            assert all((session.get(name) is not None) is is_live for name in names), session
            # Of a run that has ended too, until other data are loaded.
            assert len({session.get(name) is None for name in values}) == 1, session
            return session

        idle = ask()
        assert (idle["state"], idle["instruments"], idle.get("last_run")) == ("Idle", [], None)
        loaded = market.load(client, 1, 2)
        session = ask()
        assert session["instruments"] == [{
            "instrument_id": "7203.TSE", **market.span(1, 2), "granularity": "Trade",
            "trades_loaded": loaded["trades_loaded"], "bars_loaded": 0}]
        assert session["sequence"] > idle["sequence"], "events were told to all"
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        started = market.run(client, last=2, multiplier=20)
        price = last_trade_price(client)
        submit(client, order("rests", price=str(int(price * Decimal("0.95")))))
        submit(client, order("bought"))
        client.wait("PositionOpened")
        running = ask()
        trades = [row for event in client.events[:client.events.index(running)] if event["event"] == "Trades"
                  for row in event["trades"]]
        assert running["last_trades"][0]["trades"] == trades[-1:] and running["rows_done"] == len(trades)
        bar = running["last_bars"][0]["klines"][-1]
        assert (bar["close"], bar["is_final"]) == (trades[-1]["price"], False)
        assert (running["run_id"], running["strategy_id"], running["account_id"], running["multiplier"]) == (
            started["run_id"], "one", "REPLAY", 20)
        assert (running["rows_total"], running["ts_event_ms"]) == (loaded["trades_loaded"], trades[-1]["ts_ms"])
        assert [row["client_order_id"] for row in running["orders"]] == ["rests", "bought"]
        position, = running["positions"]
        cash = CASH - 100 * Decimal(position["avg_open_price"])
        assert Decimal(running["cash"]) == Decimal(running["buying_power"]) == cash
        assert Decimal(running["equity"]) == cash + 100 * Decimal(trades[-1]["price"])
        client.ask("StopEngine", "ReplayStopped", strategy_id="one")
        end = client.wait("EngineStopped")
        ended = ask()
        assert ended["last_run"] == {name: end[name] for name in ("run_id", "run_dir", "final_equity", "status")}
        assert ended["sequence"] > running["sequence"] and len(ended["orders"]) == 2
        assert [row["qty"] for row in ended["positions"]] == ["100"] and ended["equity"] == end["final_equity"]
