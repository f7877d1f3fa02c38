"""Clients that come late, say nothing, or read slowly: what they are told, and that nobody else notices."""

import concurrent.futures
import contextlib
import json
import time

import pytest

pytest.importorskip("websockets")
pytest.importorskip("jsonschema")

from bare_client import Bare  # noqa: E402
from engine_process import CASH, Engine, Market  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402
from sessions import last_trade_price, order, orders  # noqa: E402


def test_who_answers_no_ping_is_gone_after_thirty_seconds(start, market):
    """Also while a run tells it something all the time: the system takes that for whoever does not."""
    engine = start()
    with engine.client() as other, Bare(engine) as silent:
        market.load(other)
        market.run(other, multiplier=1)
        begin, kinds = time.monotonic(), []
        while not kinds or kinds[-1] != Bare.CLOSE:
            kind, content = silent.next()
            kinds.append(kind)
        assert Bare.PING in kinds, "it was asked"
        assert (int.from_bytes(content[:2], "big"), content[2:]) == (1008, b"ping_timeout")
        assert time.monotonic() - begin > 20, "it had its time"
        assert other.is_alive(), "whoever answers stays"


def test_who_comes_while_an_order_is_on_its_way_is_told_of_it(start, market):
    engine = start()
    with engine.client() as client, engine.client() as late:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        market.run(client, multiplier=2, execution={"model": "strict", "latency_ns": 3_600_000_000_000})
        price = last_trade_price(client)
        wanted = order("under-way", price=str(int(price * 98 / 100)))
        client.send("SubmitOrder", venue="replay", order=wanted)
        client.wait("OrderSubmitted", client_order_id="under-way")
        session = late.ask("GetSession", "Session")
        row, = session["orders_submitted"]
        assert row.items() >= {
            "client_order_id": "under-way", "origin": "person", "quantity": "100", "price": wanted["price"],
            "status": "SUBMITTED", "order_side": "BUY", "instrument_id": "7203.TSE",
        }.items()
        assert session["orders"] == orders(late) == []
        client.ask("StopEngine", "ReplayStopped", strategy_id="one")
        client.wait("EngineStopped")
        row, = late.ask("GetSession", "Session")["orders_submitted"]
        assert (row["client_order_id"], row["status"]) == ("under-way", "CANCELED"), "what became of it stays"


def test_a_session_tells_of_the_run_that_has_ended_until_other_data_are_loaded(start, market):
    engine = start()
    with engine.client() as client:
        market.load(client)
        market.run(client, "buy-and-hold", multiplier="max", strategy_init_kwargs={"quantity": 100})
        stopped = client.wait("EngineStopped")
        money = client.since(0, "ReplayBuyingPower")[-1]
        with engine.client() as late:
            session = late.ask("GetSession", "Session")
        assert session["state"] == "Idle" and "run_id" not in session
        assert (session["equity"], session["cash"]) == (stopped["final_equity"], money["cash"])
        for name, event in (("executions", "ExecutionMarker"), ("signals", "StrategySignal")):
            told = client.since(0, event)
            assert told and [{"event": event, **one} for one in session[name]] == told, name
        started = client.since(0, "EngineStarted")[-1]
        assert (session["execution"], session["initial_cash"]) == (started["execution"], str(CASH))
        assert {name: session[name] for name in ("start_date", "end_date")} == market.span()
        assert [row["qty"] for row in session["positions"]] == ["100"]
        assert session["rows_done"] == session["rows_total"] == stopped["rows_done"]
        assert session["last_bars"][0]["klines"][0]["is_final"] and session["last_trades"]
        market.load(client)
        session = client.ask("GetSession", "Session")
        assert "equity" not in session and session["positions"] == session["orders"] == []


@pytest.fixture
def dense(desk, tmp_path):
    """An engine over 440,000 trades, four times what may wait for a client, and their market."""
    folder, call = desk
    if not (folder / "dense").exists():
        call("data", "sample", "--out", "dense", "--instrument", "7203.TSE", "--days", "3", "--trades-per-day",
             "240000", "--seed", "2")
    market = Market(folder / "dense", ["7203.TSE"])
    engine = Engine(tmp_path / "engine", market.folder)
    yield engine, market
    engine.kill()


def slowly(client, pause):
    """Reads all of a run, taking its time for each message: its end, its trades and in how many messages."""
    told, frames = sum(len(event["trades"]) for event in client.since(0, "Trades")), 0
    while True:
        event = json.loads(client.socket.recv(timeout=60))
        if event["event"] == "EngineStopped":
            return event, told, frames
        if event["event"] == "Trades":
            told, frames = told + len(event["trades"]), frames + 1
            time.sleep(pause)


def test_a_run_without_pace_waits_for_its_only_client(dense):
    engine, market = dense
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        loaded = market.load(client, 1, 2)
        market.run(client, last=2, multiplier="max")
        end, told, frames = slowly(client, 0.01)
        assert (end["status"], told) == ("completed", loaded["trades_loaded"]) and frames > 50
        assert told * 170 > 4 * (16 << 20), "it would not have fitted what is waited for"


@pytest.mark.parametrize("pause", [0.25, None], ids=["reads a little", "reads nothing"])
def test_a_run_without_pace_does_not_wait_long_where_others_would_notice(dense, pause):
    """The other one hears the end of the run long before the slow one could have read all of it; its commands are
    answered at once."""
    engine, market = dense
    with engine.client() as client, Bare(engine) as slow:
        slow.send({"op": "Subscribe", "request_id": "s", "venue": "replay", "ticker": "7203"})
        market.load(client, 1, 2)
        market.run(client, last=2, multiplier="max")
        frames = 0
        while pause and not client.since(0, "EngineStopped"):
            frames += b'"event":"Trades"' in slow.next()[1][:40]
            time.sleep(pause)
            client.take_all()
            assert frames < 60, "its 27 seconds are not waited for"
        assert client.wait("EngineStopped")["status"] == "completed"
        if not pause:
            # It is sent away in the middle of a frame.
            with contextlib.suppress(ConnectionError):
                while slow.stream.read(1 << 20):
                    pass
        assert client.is_alive()


@pytest.mark.parametrize("readers", [1, 2])
def test_a_run_full_of_orders_sends_nobody_away_that_reads(desk, tmp_path, readers):
    """Over 100,000 events, more than may wait for a client, to clients that subscribe nothing and only read."""
    folder, call = desk
    if not (folder / "month").exists():
        call("data", "sample", "--out", "month", "--instrument", "7203.TSE", "--days", "21", "--trades-per-day", "5000",
             "--seed", "1")
    market = Market(folder / "month", ["7203.TSE"])
    engine = Engine(tmp_path / "engine", market.folder, more=["--guest-limit", "folder-day=32MiB"])
    try:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Bare(engine)) for _ in range(readers)]
            with engine.client() as starter:
                market.load(starter, 1, 20)
                config = market.config("sma-cross", last=20, multiplier="max", initial_cash="1000000000",
                                       strategy_init_kwargs={"fast": 1, "slow": 2})
            clients[0].send({"op": "StartEngine", "request_id": "s", "engine": "Backtest", "strategy_id": "one",
                             "config": config})

            def read(client):
                frames = 0
                while b'"EngineStopped"' not in (text := client.next(is_checked=frames % 100 == 0)[1]):
                    frames += 1
                return json.loads(text), frames

            with concurrent.futures.ThreadPoolExecutor() as threads:
                for end, frames in threads.map(read, clients):
                    assert end["status"] == "completed" and frames > 100_000, (end, frames)
    finally:
        engine.kill()
