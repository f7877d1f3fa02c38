"""Clients that come late, say nothing, or read slowly: what they are told, and that nobody else notices."""

import json
import time

import pytest

pytest.importorskip("websockets")
pytest.importorskip("jsonschema")

from bare_client import Bare  # noqa: E402
from engine_process import CASH, Engine, Market  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402
from sessions import last_trade_price, order, orders  # noqa: E402


def test_who_answers_no_ping_is_gone_after_thirty_seconds(start):
    engine = start()
    with engine.client() as other, Bare(engine) as silent:
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


def test_a_run_without_pace_waits_for_who_reads_its_trades(desk, tmp_path):
    """440,000 trades, four times what may wait for a client, to one that takes its time for each message,
    beside one that reads nothing at all: that one is sent away, and nobody else notices."""
    folder, call = desk
    call("data", "sample", "--out", "dense", "--instrument", "7203.TSE", "--days", "3", "--trades-per-day", "240000",
         "--seed", "2")
    market = Market(folder / "dense", ["7203.TSE"])
    engine = Engine(tmp_path / "engine", market.folder)
    try:
        with engine.client() as client, engine.client(max_queue=1) as deaf:
            for one in (client, deaf):
                one.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
            loaded = market.load(client, 1, 2)
            market.run(client, last=2, multiplier="max")
            told, frames = sum(len(event["trades"]) for event in client.since(0, "Trades")), 0
            while True:
                event = json.loads(client.socket.recv(timeout=60))
                if event["event"] == "EngineStopped":
                    break
                if event["event"] == "Trades":
                    told, frames = told + len(event["trades"]), frames + 1
                    time.sleep(0.01)
            assert (event["status"], told) == ("completed", loaded["trades_loaded"]) and frames > 50
            assert told * 170 > 4 * (16 << 20), "it would not have fitted what is waited for"
            with pytest.raises(ConnectionClosed):
                while True:
                    deaf.socket.recv(timeout=60)
    finally:
        engine.kill()
