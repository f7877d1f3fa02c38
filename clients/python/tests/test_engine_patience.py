"""Clients that come late, say nothing, or read slowly: what they are told, and that nobody else notices."""

import concurrent.futures
import contextlib
import json
import socket
import time

import pytest

pytest.importorskip("websockets")
pytest.importorskip("jsonschema")

from engine_process import CASH, Engine, Market  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402
from plain_client import proof  # noqa: E402
from sessions import last_trade_price, order, orders  # noqa: E402


class Bare:
    """A connection by hand: it answers no pings."""

    TEXT, CLOSE, PING = 1, 8, 9

    def __init__(self, engine):
        self.socket = socket.create_connection(("127.0.0.1", engine.port), timeout=60)
        self.socket.sendall(
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self.stream = self.socket.makefile("rb")
        while self.stream.readline() not in (b"\r\n", b""):
            pass
        challenge = json.loads(self.next()[1])
        nonce = "ab" * 32
        self.send({
            "op": "Hello", "schema_major": 1, "schema_minor": 3, "client_version": "bare", "mode": "replay",
            "client_nonce": nonce,
            "proof": proof(engine.token, "client", challenge["server_nonce"], nonce, "replay"),
        })
        assert json.loads(self.next()[1])["event"] == "Ready"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, command):
        """Sends a text frame, masked with zeros."""
        text = json.dumps(command).encode()
        self.socket.sendall(bytes([0x81, 0xFE]) + len(text).to_bytes(2, "big") + bytes(4) + text)

    def next(self):
        """The kind and the content of the next frame."""
        first, length = self.stream.read(2)
        if length == 126:
            length = int.from_bytes(self.stream.read(2), "big")
        elif length == 127:
            length = int.from_bytes(self.stream.read(8), "big")
        return first & 15, self.stream.read(length)


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
    with engine.client() as client, engine.client(max_queue=1) as slow:
        slow.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client, 1, 2)
        market.run(client, last=2, multiplier="max")
        frames = 0
        while pause and not client.since(0, "EngineStopped"):
            frames += json.loads(slow.socket.recv(timeout=60))["event"] == "Trades"
            time.sleep(pause)
            client.take_all()
            assert frames < 60, "its 27 seconds are not waited for"
        assert client.wait("EngineStopped")["status"] == "completed"
        if not pause:
            with pytest.raises(ConnectionClosed):
                while True:
                    slow.socket.recv(timeout=60)
        assert client.is_alive()


@pytest.mark.parametrize("readers", [1, 2])
def test_a_run_full_of_orders_sends_nobody_away_that_reads(desk, tmp_path, readers):
    """Over 100,000 events, more than may wait for a client, to clients that subscribe nothing and only read."""
    folder, call = desk
    if not (folder / "month").exists():
        call("data", "sample", "--out", "month", "--instrument", "7203.TSE", "--days", "21", "--trades-per-day", "5000",
             "--seed", "1")
    market = Market(folder / "month", ["7203.TSE"])
    engine = Engine(tmp_path / "engine", market.folder)
    try:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(engine.client()) for _ in range(readers)]
            market.load(clients[0], 1, 20)
            market.run(clients[0], "sma-cross", last=20, multiplier="max", initial_cash="1000000000",
                       strategy_init_kwargs={"fast": 1, "slow": 2})

            def read(client):
                frames = 0
                while '"EngineStopped"' not in (text := client.socket.recv(timeout=60)):
                    frames += 1
                return json.loads(text), frames

            with concurrent.futures.ThreadPoolExecutor() as threads:
                for end, frames in threads.map(read, clients):
                    assert end["status"] == "completed" and frames > 100_000, (end, frames)
    finally:
        engine.kill()
