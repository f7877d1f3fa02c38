"""What an attack on the engine has found, kept: each of these did harm once."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import time
from decimal import Decimal

import pytest
from bare_client import Bare
from conftest import program
from engine_process import CASH, EXECUTION_FLAGS, TOKEN, component, spawn, start_line
from plain_client import Client
from sessions import (
    RICH, check_money, check_run, last_trade_price, manifest, order, orders, submit,
)
from websockets.exceptions import ConnectionClosed


def test_a_change_that_cannot_be_leaves_the_order_as_it_is(client, market):
    market.load(client)
    market.run(client, multiplier=20)
    price = last_trade_price(client)
    low = str(int(price * Decimal("0.98")))
    submit(client, order("rests", price=low, quantity="300"))
    before, = orders(client)
    for change, code in [
        ({"new_quantity": "150"}, "VALIDATION_ERROR"),
        ({"new_price": "0"}, "VALIDATION_ERROR"),
        ({"new_trigger_price": low}, "VALIDATION_ERROR"),
        ({"new_expire_time_ns": 1}, "VALIDATION_ERROR"),
        ({"new_price": str(int(price * 3))}, "VENUE_REJECTED"),
        ({"new_quantity": "100000000"}, "INSUFFICIENT_FUNDS"),
    ]:
        refused = client.refusal("ModifyOrder", venue="replay", client_order_id="rests", change=change)
        assert (refused["event"], refused["reason_code"]) == ("OrderRejected", code), (change, refused)
        after, = orders(client)
        assert after == before, change
    changed = client.ask("ModifyOrder", "OrderUpdated", venue="replay", client_order_id="rests",
                         change={"new_quantity": "200"})
    assert changed["quantity"] == "200"


def test_a_command_that_comes_too_late_for_its_order_is_answered(client, market):
    market.load(client)
    execution = {"model": "strict", "latency_ns": 500_000_000}
    market.run(client, multiplier=5, execution=execution)
    last_trade_price(client)
    submit(client, order("now"))
    asked = client.send("CancelOrder", venue="replay", client_order_id="now")
    answer = client.wait("OrderCanceled", "OrderRejected", request_id=asked)
    assert answer["event"] == "OrderCanceled" or answer["reason_text"].startswith("TOO_LATE: "), answer


def test_tags_that_no_journal_holds_are_refused(client, market):
    market.load(client)
    market.run(client, multiplier=20)
    price = last_trade_price(client)
    low = str(int(price * Decimal("0.98")))
    for tags in (["note=" + "x" * 70_000], [f"note{number}=x" for number in range(65)]):
        refused = client.refusal("SubmitOrder", venue="replay", order=order("long", price=low, tags=tags))
        assert (refused["reason_code"], refused["reason_text"][:6]) == ("VALIDATION_ERROR", "TAGS: "), refused
    submit(client, order("long", price=low, tags=["note=" + "x" * 123]))


def test_nothing_comes_between_a_fill_and_what_belongs_to_it(start, market):
    """While a strategy trades, somebody asks for the account all the time: each answer knows all of a fill or
    nothing of it. Pin P78."""
    with start().client() as client:
        market.load(client, 1, 2, instruments=market.instruments)
        config = {"strategy_init_kwargs": {"seed": 1, "every": 3}, "instruments": market.instruments}
        market.run(client, "trades-at-random", last=2, multiplier=2000, initial_cash=RICH, **config)
        asked = 0
        while not client.since(0, "EngineStopped"):
            for _ in range(20):
                client.send("GetBuyingPower", venue="replay")
                asked += 1
            client.next(90)
            if asked == 4_000:
                client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
                client.wait("EngineStopped")
        run = check_run(client.events)
        fills = [event for event in run if event["event"] == "OrderFilled"]
        answers = [event for event in run if event["event"] == "ReplayBuyingPower" and event.get("request_id")]
        assert len(fills) > 200 and len(answers) > 1_000
        check_money(run, RICH, each=False)


def test_connections_that_say_nothing_keep_nobody_out(start):
    engine = start()
    silents = []
    with engine.client() as other, contextlib.ExitStack() as held:
        for number in range(1_000):
            silent = held.enter_context(socket.create_connection(("127.0.0.1", engine.port), timeout=30))
            if number % 3 == 0:
                silent.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            if number % 250 == 0:
                assert other.is_alive()
            silents.append(silent)
        # The oldest give way, without a word: they have said nothing that could be answered.
        assert all(said_nothing(silent) for silent in silents[:1_000 - HANDSHAKES_MAX])
        silents[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            silents[-1].recv(1)
        with engine.client() as late:
            assert late.ask("GetSession", "Session")["state"] == "Idle"
        assert other.is_alive() and not other.since(0, "Error", "EngineError")


def test_a_thousand_clients_that_greet_keep_nobody_out(start):
    """There is room for seven beside the one that was there; the others are told so, and nobody else notices."""
    engine = start()
    with engine.client() as other, contextlib.ExitStack() as held:
        def greet(_):
            client = engine.client(greet=False)
            client.take_challenge()
            client.raw(json.dumps(client.hello()))
            try:
                client.next()
            except ConnectionClosed:
                assert [event["event"] for event in client.events] == ["Challenge"]
                return client.socket.close_code, client.socket.close_reason
            held.callback(client.socket.close)
            return client

        with concurrent.futures.ThreadPoolExecutor(16) as threads:
            told = list(threads.map(greet, range(1_000)))
        taken = [one for one in told if isinstance(one, Client)]
        sent_away = [one for one in told if one == (1008, "too_many_clients")]
        assert (len(taken), len(sent_away)) == (CLIENTS_MAX - 1, 1_000 - CLIENTS_MAX + 1)
        assert other.wait("ClientConnected", count=CLIENTS_MAX)
        for client in (other, *taken):
            assert client.is_alive() and client.ask("GetSession", "Session")["state"] == "Idle"
        place = len(other.events)
        taken[0].socket.close()
        other.wait("ClientConnected", count=CLIENTS_MAX - 1, since=place)
        with engine.client() as late:
            assert late.ask("GetSession", "Session")["state"] == "Idle"
        assert not other.since(0, "Error", "EngineError")


#: Clients that an engine takes.
CLIENTS_MAX = 8
#: Connections that have not greeted, of which the engine keeps the newest.
HANDSHAKES_MAX = 64


def said_nothing(silent):
    """Whether a connection ends without a byte."""
    try:
        return silent.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_greeting_byte_by_byte_has_ten_seconds(start):
    """Of the request for a WebSocket, and of a right Hello: the first is told nothing, the second why."""
    engine = start()
    with engine.client() as other, engine.client(greet=False) as silent, Bare(engine, greet=False) as drips:
        silent.take_challenge()
        hello = iter(drips.frame(drips.hello()))
        with socket.create_connection(("127.0.0.1", engine.port), timeout=60) as slow:
            slow.setblocking(False)
            begin, ended, is_told = time.monotonic(), False, False
            while not (ended and is_told) and time.monotonic() - begin < 60:
                is_told = is_told or bool(select.select([drips.socket], [], [], 0)[0])
                if not is_told:
                    drips.socket.sendall(bytes([next(hello)]))
                ended = ended or has_ended(slow)
                time.sleep(0.2)
        assert ended and is_told, "they are not waited for without end"
        assert next(hello, None) is not None, "the greeting was not whole"
        refused = drips.event()
        assert (refused["event"], refused["code"]) == ("EngineError", "handshake_timeout")
        kind, close = drips.next()
        assert (kind, close) == (Bare.CLOSE, (1008).to_bytes(2, "big") + b"handshake_timeout")
        refused = silent.next()
        assert (refused["event"], refused["code"]) == ("EngineError", "handshake_timeout")
        assert (silent.closed(), silent.socket.close_reason) == (1008, "handshake_timeout")
        assert other.is_alive()


def has_ended(slow):
    """Sends one more byte of a request, and tells whether the connection is at its end, without a word."""
    try:
        slow.sendall(b"G")
        told = slow.recv(100)
    except BlockingIOError:
        return False
    except OSError:
        return True
    assert told == b"", "there is nothing to answer"
    return True


def test_no_extension_is_taken(start):
    """A message is the bytes of its frame: compressed ones, which grow without limit, are not agreed on."""
    engine = start()
    offers = "permessage-deflate", "permessage-deflate; client_max_window_bits, x-webkit-deflate-frame"
    with engine.client() as other:
        for offer in offers:
            with Bare(engine, more=[f"Sec-WebSocket-Extensions: {offer}"]) as client:
                assert client.head[0].split()[1] == "101"
                names = [line.partition(":")[0].lower() for line in client.head[1:]]
                assert "sec-websocket-accept" in names and "sec-websocket-extensions" not in names, client.head
                client.send({"op": "GetSession", "request_id": "plain"})
                while (event := client.event())["event"] != "Session":
                    assert event["event"] == "ClientConnected"
        assert other.is_alive()


def test_who_is_only_too_early_is_not_sent_away(start, market):
    with start().client() as client:
        for _ in range(150):
            assert client.refusal("SetReplaySpeed", multiplier=2)["event"] == "EngineBusy"
        market.load(client)
        market.run(client, multiplier=20)
        for _ in range(150):
            assert client.refusal("CancelOrder", venue="replay", client_order_id="nobody")["event"] == "OrderRejected"
        assert client.is_alive()


@pytest.mark.parametrize("nonce", ["", "0" * 15, "0" * 257])
def test_a_nonce_has_a_length(start, nonce):
    engine = start()
    with engine.client() as other, engine.client(greet=False) as client:
        client.take_challenge()
        client.wrong(json.dumps({**client.hello(), "client_nonce": nonce}))
        refused = client.wait("EngineError")
        assert refused["code"] == "validation_error" and refused["message"].startswith("CLIENT_NONCE: ")
        assert (client.closed(), client.socket.close_reason) == (1008, "validation_error")
        assert [event["event"] for event in client.events] == ["Challenge", "EngineError"] and other.is_alive()


def test_pings_that_nobody_waits_for_end_the_connection(start):
    engine = start()
    with engine.client() as other, engine.client() as client:
        try:
            for _ in range(1_100):
                client.socket.ping()
        except ConnectionClosed:
            pass
        assert (client.closed(), client.socket.close_reason) == (1008, "too_many_pings")
        assert other.is_alive()


@pytest.mark.parametrize("state", [
    "answers", "has lost its file",
    pytest.param("is suspended", marks=pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="signals")),
])
def test_a_second_engine_does_not_take_the_place_of_the_first(start, tmp_path, market, state):
    engine = start()
    before = engine.session_file.read_bytes()
    if state == "is suspended":
        engine.suspend()
    if state == "has lost its file":
        engine.session_file.unlink()
    second = subprocess.run(
        [str(program()), "serve", "--mode", "replay", "--standalone", "--port", "0", "--data", str(market.folder),
         "--config-dir", str(engine.config_dir), "--cache-dir", str(tmp_path / "other")],
        capture_output=True, timeout=60)
    assert second.returncode == 15, second
    said = second.stderr.decode("utf-8")
    assert str(engine.config_dir) in said and (str(engine.port) in said) == (state != "has lost its file")
    if state == "is suspended":
        engine.signal("SIGCONT")
    if state == "has lost its file":
        assert not engine.session_file.exists()
    else:
        assert engine.session_file.read_bytes() == before
    with engine.client() as client:
        assert client.is_alive()
    engine.kill()
    assert start(engine.folder).session_file.exists(), "a lock goes with its process"


def test_the_run_that_has_just_ended_is_kept_whatever_its_name(start, market):
    """Pin P79."""
    engine = start(more=("--runs-kept", "1"))
    with engine.client() as client:
        for _ in range(2):
            market.load(client)
            place = len(client.events)
            market.run(client, multiplier="max")
            ended = client.wait("EngineStopped", since=place)
            future = engine.folder / "cache" / "runs" / "20990101T000000000Z-0123abcd"
            future.mkdir(parents=True, exist_ok=True)
            (future / "mine.txt").write_text("mine", encoding="utf-8")
        assert manifest(pathlib.Path(ended["run_dir"]))["event_log_digest"]
        assert (future / "mine.txt").is_file(), "what no run has made is nobody's to remove"


def test_a_strategy_sees_what_people_trade(desk, market, tmp_path):
    """It buys once when it holds nothing: a person who was first leaves it nothing to do, in every window."""
    folder, call = desk
    bought = {"rows_done": 1, "at": "row", "ts_event_ms": 0, "command": {"op": "SubmitOrder", "order": order("x")}}
    commands = tmp_path / "commands.jsonl"
    commands.write_text(json.dumps(bought) + "\n", encoding="utf-8")
    digests = set()
    for window in (1, 2, 64, 1024):
        out = tmp_path / f"out-{window}"
        call("replay", "run", component("sma-cross"), "--data", str(market.folder), "--instrument", "7203.TSE",
             "--param", "fast=5", "--param", "slow=20", "--commands", str(commands), "--window", str(window),
             "--out", str(out), "--quiet")
        digests.add(manifest(out)["event_log_digest"])
    assert len(digests) == 1, digests


def test_a_run_ends_before_the_commands_that_wait_for_it(start, market):
    engine = start()
    with engine.client() as client, engine.client() as other:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        market.run(client, multiplier=20)
        low = str(int(last_trade_price(client) * Decimal("0.98")))
        sent = [client.send("SubmitOrder", venue="replay", order=order(f"o{number}", price=low))
                for number in range(2_000)]
        other.send("StopEngine", strategy_id="one")
        other.wait("EngineStopped")
        client.wait("EngineStopped")
        answers = ("SubmitOrderResult", "OrderRejected", "EngineBusy")
        answered = [event["request_id"] for event in client.since(0, *answers)]
        assert sorted(answered) == sorted(sent), "each is answered once"
        assert client.is_alive(), "what could not be done any more is no error of the client"


def test_dates_have_one_form(client):
    for wrong in ("2025-1-6", "-2025-01-01", "2025-01-06 "):
        refused = client.refusal("LoadReplayData", instrument_id="7203.TSE", start_date=wrong, end_date="2025-01-31",
                                 granularity="Trade")
        assert (refused["code"], refused["message"][:12]) == ("validation_error", "START_DATE: "), refused


def test_leftovers_of_engines_that_were_killed_are_removed(start, market, tmp_path):
    place = tmp_path / "killed"
    engine = start(folder=place)
    with engine.client() as client:
        market.load(client)
        market.run(client, multiplier=1)
        engine.kill()
    runs = place / "cache" / "runs"
    assert [path for path in runs.iterdir() if path.name.startswith(".kumiki-")]
    again = start(folder=place)
    with again.client() as client:
        assert client.is_alive()
    assert not [path for path in runs.iterdir() if path.name.startswith(".kumiki-")]


def test_an_engine_whose_log_nobody_reads_goes_on_and_ends(tmp_path, market):
    """A pipe takes 64 KiB, on Windows 4 KiB; whoever starts the engine may leave it unread."""
    config, cache = tmp_path / "config", tmp_path / "cache"
    arguments = ["--data", str(market.folder), "--log", "trace"]
    process = spawn(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.stdin.write(start_line(config, cache).encode())
        process.stdin.flush()
        port = json.loads(process.stdout.readline())["listening"]
        with Client(port, TOKEN) as client:
            for _ in range(1_500):
                with Client(port, "another token, as long", greet=False) as stranger:
                    stranger.wrong("{}")
            assert client.ask("GetSession", "Session")["state"] == "Idle"
            process.stdin.close()
            assert client.closed() == 1001
        assert process.wait(timeout=10) == 0 and not (config / "engine-session.json").exists()
        assert len(process.stderr.read()) > (4_000 if os.name == "nt" else 60_000), "the pipe was full"
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_two_signals_at_once_are_one_request_to_end(start, market):
    engine = start()
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        market.run(client, multiplier=20)
        last_trade_price(client)
        for name in ("SIGINT", "SIGTERM", "SIGINT"):
            engine.signal(name)
        assert client.wait("EngineStopped")["status"] == "stopped"
        assert client.closed() == 1001
    assert engine.ended() == 0 and not engine.session_file.exists() and engine.runs()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_session_file_that_is_none_keeps_no_engine_from_starting(start, tmp_path):
    folder = tmp_path / "engine"
    (folder / "config").mkdir(parents=True)
    os.mkfifo(folder / "config" / "engine-session.json")
    with start(folder).client() as client:
        assert client.is_alive()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_lock_that_is_no_file_is_told(tmp_path, market, kind):
    folder = tmp_path / "config"
    folder.mkdir()
    if kind == "pipe":
        os.mkfifo(folder / "engine.lock")
    else:
        (folder / "engine.lock").symlink_to(tmp_path / "elsewhere")
    ended = subprocess.run(
        [str(program()), "serve", "--mode", "replay", "--data", str(market.folder)], capture_output=True, timeout=60,
        input=start_line(folder, tmp_path / "cache").encode())
    assert ended.returncode == 13 and b"engine.lock in it is not a file" in ended.stderr, ended
    assert not (tmp_path / "elsewhere").exists()


def test_what_people_did_outlives_a_kill(start, market):
    """The next engine keeps the audit log and the commands of the run, under its name; they count among the runs
    that are kept."""
    engine = start(more=("--runs-kept", "2"))
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        run_id = market.run(client, multiplier=20)["run_id"]
        low = str(int(last_trade_price(client) * Decimal("0.98")))
        submit(client, order("rests", price=low))
        engine.kill()
    again = start(engine.folder, more=("--runs-kept", "2"))
    folder = engine.cache_dir / "runs" / run_id
    assert {path.name for path in folder.iterdir()} == {"commands.jsonl", "web_broker_orders_replay.jsonl"}
    lines = (folder / "web_broker_orders_replay.jsonl").read_text(encoding="utf-8").splitlines()
    told = [(line["phase"], line["client_order_id"]) for line in map(json.loads, lines)]
    assert told == [("submit", "rests"), ("accepted", "rests")], "what was told is there"
    assert '"rests"' in (folder / "commands.jsonl").read_text(encoding="utf-8")
    with again.client() as client:
        for _ in range(2):
            market.load(client)
            market.run(client, multiplier="max")
            client.wait("EngineStopped", since=len(client.events))
    assert not folder.exists() and len(again.runs()) == 2


def test_a_run_by_recorded_commands_that_comes_out_otherwise_says_so(start, market, tmp_path):
    """Where commands lie beside the run that they are of, and only there."""
    engine = start()
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        parameters = {"fast": 5, "slow": 20}
        run_id = market.run(client, "sma-cross", multiplier=20, strategy_init_kwargs=parameters)["run_id"]
        last_trade_price(client)
        submit(client, order("person"))
        client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
        client.wait("EngineStopped")
    folder = engine.runs()[run_id]
    span = market.span()

    def again(commands=folder / "commands.jsonl", **other):
        out = tmp_path / f"again-{len(list(tmp_path.glob('again-*')))}"
        given = {"fast": "5", "cash": str(CASH), "strategy": component("sma-cross"), **other}
        ended = subprocess.run(
            [str(program()), "replay", "run", given["strategy"], "--data", str(market.folder),
             "--instrument", "7203.TSE", "--from", span["start_date"], "--to", span["end_date"], "--cash",
             given["cash"], *EXECUTION_FLAGS, f"--param=fast={given['fast']}", "--param=slow=20", "--commands",
             str(commands), "--out", str(out), "--quiet"],
            capture_output=True, text=True, encoding="utf-8", timeout=60,
            env={**os.environ, "KUMIKI_CACHE": str(tmp_path / "cache")},
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stderr, manifest(out)["event_log_digest"]

    recorded = manifest(folder)["event_log_digest"]
    assert again() == ("", recorded), "the same run says nothing"
    words = (f"this run differs from that in {folder}: the strategy, its parameters, the dates, the cash or the execution are "
             f"others; `kumiki replay verify {folder}` makes the run there again\n")
    for other in ({"cash": str(CASH + 1)}, {"fast": "6"}):
        told, digest = again(**other)
        assert (told, digest != recorded) == (words, True), (other, told)
    alone = tmp_path / "alone" / "commands.jsonl"
    alone.parent.mkdir()
    alone.write_bytes((folder / "commands.jsonl").read_bytes())
    assert again(alone, cash=str(CASH + 1))[0] == "", "of commands by themselves no run is known"
    (alone.parent / "manifest.json").write_text("{", encoding="utf-8")
    assert again(alone)[0] == "", "nor by a manifest that is none"
