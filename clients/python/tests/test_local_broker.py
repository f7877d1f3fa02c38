"""The local broker's gateway, simulated, through an engine: boards, trades, the register set and the account, by the
session, by the session for asyncio, and by `kumiki watch`."""

import asyncio
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
from decimal import Decimal

import kumiki
import kumiki.aio
import pytest
from conftest import program
from engine_process import OWN_CONSOLE, interrupt, is_alive, python_program
from local_world import (
    PASSWORD, SPEC, VENDOR, LocalWorld, all_trades, fake_pinentry, stream, subscribe, trades_of, venue_state,
)
from plain_client import PATIENCE, Client
from web_broker import CLEAN, NOTE, refused_start
from websockets.sync.client import ClientConnection


@pytest.fixture(params=[SPEC, VENDOR])
def world(request, tmp_path):
    """In both dialects."""
    one = LocalWorld(tmp_path, form=request.param)
    yield one
    one.close()


@pytest.fixture
def spec(tmp_path):
    one = LocalWorld(tmp_path)
    yield one
    one.close()


def session(world, **other):
    return kumiki.LiveSession(venue="local_broker", attach=world.config, **other)


def test_boards_and_trades_of_a_ticker(world):
    with session(world) as one:
        one.login()
        state = one.venue_state()
        assert (state.venue, state.state, state.code) == ("local_broker", "Ready", None)
        with one.boards("7203", timeout=PATIENCE) as boards, one.trades("7203", timeout=PATIENCE) as trades:
            one.subscribe("7203.TSE")
            world.until(lambda: world.registered() == ["7203"], "the symbol is registered")
            first = None
            for price in ("2850", "2851", "2850.5"):
                world.gateway.trade(price, 100)
                first = first or next(boards)
            # The first frame has no trade: nothing was before it (P54).
            made = [next(trades), next(trades)]
        assert first.ticker == "7203" and first.exchange == "LocalBrokerStock"
        assert all(isinstance(level.price, Decimal) for level in (*first.bids, *first.asks))
        assert len(first.bids) <= 10 and len(first.asks) <= 10
        assert [trade.price for trade in made] == [Decimal("2851"), Decimal("2850.5")]
        assert all(trade.qty == 100 and trade.side in ("buy", "sell") for trade in made)
        numbers = [first.sequence_id, *(trade.sequence_id for trade in made)]
        assert numbers == sorted(set(numbers))
        one.unsubscribe("7203")
        world.until(lambda: world.registered() == [], "it is unregistered")


def test_a_board_is_read_once(world):
    with session(world) as one:
        one.login()
        world.gateway.trade("2850", 100)
        board = one.get_board("7203")
        assert board.ticker == "7203" and board.last_price == Decimal("2850")
        assert board.timestamp_ns > 0 and board.bids[0].price < board.asks[0].price


def test_the_register_set_is_of_fifty(spec):
    with session(spec) as one:
        one.login()
        codes = [str(code) for code in range(1301, 1351)]
        for code in codes:
            one.subscribe(code)
        spec.until(lambda: spec.registered() == codes, "all are registered")
        with pytest.raises(kumiki.RegisterFullError) as full:
            one.subscribe("9984")
        assert full.value.code == "register_full"
        assert one.evict_lru() == "1301"
        one.subscribe("9984")
        spec.until(lambda: spec.registered() == sorted([*codes[1:], "9984"]), "one has made room")


def test_a_client_that_leaves_takes_nothing_from_others(spec):
    with session(spec) as one:
        one.login()
        one.subscribe("7203")
        with session(spec) as other:
            other.subscribe("7203")
            other.subscribe("9984")
            spec.until(lambda: spec.registered() == ["7203", "9984"], "both are registered")
        spec.until(lambda: spec.registered() == ["7203"], "what nobody wants is unregistered")


def test_what_a_killed_engine_left_registered_is_taken_out_by_the_next(world):
    with session(world) as one:
        one.login()
        for code in ("7203", "9984", "8306"):
            one.subscribe(code)
        world.until(lambda: world.registered() == ["7203", "8306", "9984"], "all are registered")
        world.start_again()
    assert world.registered() == ["7203", "8306", "9984"], "nobody took them out"
    with session(world) as one:
        one.subscribe("9984")
        one.login()
        world.until(lambda: world.registered() == ["9984"], "only what is wanted stays")


def test_what_the_gateway_registers_after_the_end_is_taken_out_by_the_next(spec):
    """A board is under way when the engine ends: the gateway may register its symbol when all is taken out."""
    kept = spec.engine.cache / "local-broker"
    with spec.client() as client:
        client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        client.ask("Subscribe", "Subscribed", venue="local_broker", ticker="7203")
        spec.gateway.control({"do": "fault", "name": "delay-answer", "value": 30_000, "call": "board", "times": 1})
        read = spec.gateway.view()["calls"].get("board", 0)
        client.send("GetBoard", venue="local_broker", ticker="9984")
        spec.until(lambda: spec.gateway.view()["calls"].get("board", 0) > read, "the board is asked for")
        assert spec.engine.end() == 0
    spec.until(lambda: spec.registered() == [], "all is taken out")
    [file] = kept.glob("registered-*.json")
    assert json.loads(file.read_text(encoding="utf-8"))["symbols"] == ["9984"]
    spec.gateway.control({"do": "clear-faults"}, {"do": "register", "symbols": ["9984"]})
    assert spec.registered() == ["9984"]
    spec.start_again()
    with session(spec) as one:
        one.login()
        spec.until(lambda: spec.registered() == [], "the next engine takes it out")
        spec.until(lambda: not list(kept.glob("registered-*.json")), "nothing is left of ours")


def test_the_account_is_read(world):
    with session(world) as one:
        one.login()
        power = one.buying_power()
        assert (power.venue, power.cash_available) == ("local_broker", Decimal(1_234_567))
        assert power.credit_available == Decimal(3_000_000)
        orders = one.order_list()
        assert [order.status for order in orders] == [
            "SUBMITTED", "SUBMITTED", "ACCEPTED", "PENDING_CANCEL", "FILLED", "CANCELED", "EXPIRED", "EXPIRED",
            "REJECTED",
        ]
        # Smart routing and TSE+ are orders of Tokyo; the rest of the vendor's fields is there too.
        assert {order.extra["Exchange"] for order in orders} == {1, 9, 27}
        assert {order.instrument_id for order in orders} == {"7203.TSE"}
        assert [order.order_side for order in orders].count("SELL") == 2
        filled = one.order_list(status="FILLED", instrument_id="7203.TSE")
        assert [order.filled_qty for order in filled] == [300]
        assert one.order_list(date=datetime.date(2020, 1, 6)) == []
        held = [(one.instrument_id, one.side, one.qty, one.position_type) for one in one.positions()]
        assert held == [("7203.TSE", "SELL", 100, "margin_credit"), ("130A.TSE", "BUY", 500, "cash")]


def test_no_order_leaves_the_engine(world):
    """P58: whatever is asked for, the gateway hears of no order."""
    order = {"client_order_id": "mine", "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "MARKET",
             "quantity": 100}
    with session(world) as one:
        one.login()
        for command in (
            lambda: one.submit_order(**order), one.cancel_all, lambda: one.cancel_order(venue_order_id="1"),
            lambda: one.modify_order(venue_order_id="1", new_price=2_450),
        ):
            with pytest.raises(kumiki.VenueUnsupportedError, match="PHASE_1: "):
                command()
    calls = world.gateway.view()["calls"]
    assert not any("order" in name and name != "orders" for name in calls), calls


def test_a_wrong_password_is_told(tmp_path):
    one = LocalWorld(tmp_path, environment={"DEV_LOCALBROKER_API_PASSWORD": "marker4wrong"})
    try:
        with session(one) as client, pytest.raises(kumiki.LoginFailedError) as failed:
            client.login()
        assert failed.value.venue == "local_broker" and "marker4wrong" not in str(failed.value)
        assert "marker4wrong" not in one.log()
    finally:
        one.close()


@pytest.mark.parametrize("getpin, error", [
    (f"say('D {PASSWORD}', 'OK')", None),
    ("say('ERR 83886179 Operation cancelled')", kumiki.LoginCancelledError),
])
def test_the_password_is_asked_for_in_a_window(tmp_path, getpin, error):
    one = LocalWorld(tmp_path, dev_login=False, environment=fake_pinentry(tmp_path, getpin))
    try:
        with session(one) as client:
            if error is None:
                client.login()
                assert client.venue_state().state == "Ready"
            else:
                with pytest.raises(error):
                    client.login()
        assert PASSWORD not in one.log()
    finally:
        one.close()


def test_the_engine_ends_while_it_asks(tmp_path):
    """P80: in time, whoever does not answer."""
    asked = tmp_path / "asked"
    # On Windows the program that was started is the one that starts Python.
    this = "os.getppid() if os.name == 'nt' else os.getpid()"
    hangs = fake_pinentry(tmp_path, f"print({this}, file=open({str(asked)!r}, 'w'), flush=True); time.sleep(60)")
    one = LocalWorld(tmp_path, dev_login=False, environment=hangs)
    try:
        client = Client(one.engine.port, one.engine.token, mode="live")
        client.send("RequestVenueLogin", venue="local_broker")
        one.until(lambda: asked.exists() and asked.read_text().strip(), "it asks")
        assert one.engine.end() == 0
        client.socket.close()
        assert not is_alive(int(asked.read_text()))
    finally:
        one.close()


#: Programs that are none for passwords.
OTHERS = {"ends": "", "chats": "print('Monday')"}


@pytest.mark.parametrize("program, path, why", [
    ("/none", None, '"/none\\" that KUMIKI_PINENTRY names cannot be run'),
    ("", "/nowhere", "none of pinentry, pinentry-gnome3, "),
    ("ends", None, "ended before it had an answer"),
    ("chats", None, "does not speak the protocol of pinentry programs"),
])
def test_nobody_to_ask_is_a_login_that_is_given_up(tmp_path, program, path, why):
    """P50: no dialog program, no terminal, no development login. The log says why, and what to do."""
    if program in OTHERS:
        program = python_program(tmp_path / program, OTHERS[program])
    environment = {"KUMIKI_PINENTRY": program, **({"PATH": path} if path else {})}
    one = LocalWorld(tmp_path, dev_login=False, environment=environment)
    try:
        with session(one) as client, pytest.raises(kumiki.LoginCancelledError):
            client.login()
        line, = [line for line in one.log().splitlines() if "no password came" in line]
        assert "WARN" in line.upper() and why in line, line
        assert "install a pinentry program, or name one with KUMIKI_PINENTRY" in line
    finally:
        one.close()


@pytest.mark.parametrize("settings, environment", [
    (("base_url=http://127.0.0.1:18080",), {}),
    ((), {"LOCALBROKER_ENV": "prod"}),
    (("base_url=http://127.0.0.1:18080",), {"LOCALBROKER_ALLOW_PROD": "1"}),
])
def test_the_real_market_takes_two_variables(tmp_path, settings, environment):
    """P44: one line, and a code of its own."""
    arguments = [word for setting in settings for word in ("--local-broker", setting)]
    code, told = refused_start(tmp_path, *arguments, environment=environment)
    assert code == 19 and "LOCALBROKER_ALLOW_PROD=1" in told, told


def test_a_standalone_engine_that_is_refused_says_so_in_one_line(tmp_path):
    """P44: nothing of a session file, which is not there."""
    config = tmp_path / "config"
    command = [program(), "serve", "--mode", "live", "--standalone", "--port", "0", "--config-dir", config,
               "--cache-dir", tmp_path / "cache"]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE,
                           env={**os.environ, **CLEAN, "LOCALBROKER_ENV": "prod"})
    told, = [line for line in ended.stderr.splitlines() if not NOTE.match(line)]
    assert ended.returncode == 19 and "LOCALBROKER_ALLOW_PROD=1" in told, told
    assert not (config / "engine-session.json").exists()


def test_the_real_market_is_told_to_every_client(tmp_path):
    """P44: with both variables; the address stays the simulator's."""
    both = {"LOCALBROKER_ENV": "prod", "LOCALBROKER_ALLOW_PROD": "1"}
    with LocalWorld(tmp_path, environment=both) as one, one.client() as client:
        told = client.ready["venue_capabilities"]
        assert told["local_broker"] == {
            "requires_local_app": True, "max_push_symbols": 50, "supports_amend": False,
            "requires_trade_password_for_cancel": True, "is_production": True,
        }
        assert told["web_broker"]["is_production"] is False
        stream(one, client)


def test_an_environment_that_is_none_is_told(tmp_path):
    """Of the specification only `prod` is the real market; who means it otherwise hears so."""
    one = LocalWorld(tmp_path, environment={"LOCALBROKER_ENV": "PROD", "LOCALBROKER_ALLOW_PROD": "1"})
    try:
        with one.engine.client() as client:
            assert client.ready["venue_capabilities"]["local_broker"]["is_production"] is False
        line, = [line for line in one.log().splitlines() if "LOCALBROKER_ENV is neither prod nor" in line]
        assert "WARN" in line.upper() and '"PROD"' in line, line
    finally:
        one.close()


def test_an_address_where_nobody_can_listen_is_refused(tmp_path):
    code, told = refused_start(tmp_path, "--local-broker", "base_url=http://127.0.0.1:0")
    assert code == 20 and "base_url has port 0" in told, told


def test_a_dialect_that_is_no_component_is_told_so(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("nothing to run\n", encoding="utf-8")
    code, told = refused_start(tmp_path, "--local-broker", f"dialect={text}")
    assert code == 18 and "notes is not WebAssembly: it does not begin with `\\0asm`;" in told, told


def test_a_wrong_setting_is_told_with_the_usage_of_its_command(tmp_path):
    command = [program(), "serve", "--mode", "live", "--standalone", "--local-broker", "dialct=x"]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path)
    assert ended.returncode == 2 and "Usage: kumiki serve [OPTIONS] --mode <MODE>" in ended.stderr, ended


def test_a_dialect_that_is_none_is_named(tmp_path):
    code, told = refused_start(tmp_path, "--local-broker", "dialect=nothing")
    assert code == 18 and "local-broker-spec or local-broker-kabusapi" in told, told


def walked(folder, names):
    """The trades of a walk of prices, whose gateway calls the best prices so."""
    walk = ("--seed", "7", "--instrument", "7203", "--market-begins", "held", "--speed", "max", "--mean-gap", "30s",
            "--quote-names", names)
    with LocalWorld(folder, market=walk) as one, one.client() as client:
        stream(one, client)
        one.gateway.control({"do": "market", "run": True})
        one.until(lambda: one.gateway.view()["market_over"], "the day is over")
        return [(row["price"], row["qty"], row["side"], row["side_rule"]) for row in all_trades(one, client)]


def test_trades_do_not_depend_on_the_names_of_the_best_prices(tmp_path):
    """The vendor calls the best price of those who sell BidPrice; the levels tell which is which."""
    vendor, usual = (walked(tmp_path / names, names) for names in ("vendor", "usual"))
    assert vendor == usual and len(vendor) > 100
    assert {side for _, _, side, _ in vendor} >= {"buy", "sell"}
    assert {rule for *_, rule in vendor} >= {"at_ask", "at_bid"}


def memory(process):
    """The most memory that a process has held so far, in bytes."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10


@pytest.mark.skipif(sys.platform != "linux", reason="reads how much memory another process holds")
def test_who_reads_nothing_for_long_is_sent_away_and_nobody_else_misses_a_trade(spec):
    """P56: where 65,536 messages wait; of each frame one waits, a trade, beside the newest board. It takes some 70,000
    frames, and is the slowest test of this venue."""
    with spec.client() as client, Client(spec.engine.port, spec.engine.token, mode="live", max_queue=1) as slow:
        stream(spec, client)
        subscribe(spec, slow)
        before = memory(spec.engine.process)
        told, posted = 0, 0
        while "too_slow" not in spec.log():
            assert posted < 200_000, "it is never sent away"
            spec.gateway.trade("2850", 100, count=2_000)
            posted += 2_000
            told += bare_quantities(client, 100 * (posted - 1) - told)
        truth = spec.gateway.view()["symbols"]["7203"]
        assert told == truth["pushed_volume"] == 100 * (posted - 1)
        # What waited has 64 MiB at most, as the engine counts it.
        assert memory(spec.engine.process) - before < 128 << 20
        # Who reads only now may find the connection gone, and the reason with it.
        slow.closed()
        assert (slow.socket.close_code, slow.socket.close_reason) in ((1008, "too_slow"), (1006, ""))
        assert len(trades_of(slow)) < posted - 1
        assert client.ask("GetBoard", "DepthSnapshot", venue="local_broker", ticker="7203")["last_price"] == "2850"
        assert venue_state(client)["push"] == "Streaming"


def bare_quantities(client, quantity):
    """Reads on until so many shares were traded, and gives their sum; of so many messages none is held against the
    schemas."""
    told = 0
    while told < quantity:
        event = json.loads(ClientConnection.recv(client.socket, PATIENCE))
        told += sum(int(row["qty"]) for row in event.get("trades", ()))
    return told


def test_a_client_that_reads_nothing_delays_nobody(spec):
    """P56: the other one gets every trade while the first one stands still, and then the first one does too."""
    count = 400
    with session(spec) as one:
        one.login()
        still = Client(spec.engine.port, spec.engine.token, mode="live")
        subscribe(spec, still)
        with one.trades("7203", timeout=PATIENCE) as trades:
            one.subscribe("7203")
            spec.gateway.trade("2850", 100, count=count + 1)
            made = [next(trades) for _ in range(count)]
        assert sum(trade.qty for trade in made) == 100 * count
        rows = []
        while len(rows) < count:
            event = still.next()
            rows += event["trades"] if event["event"] == "Trades" else []
        assert [row["sequence_id"] for row in rows] == [trade.sequence_id for trade in made]
        still.socket.close()


def test_asyncio_has_the_same(spec):
    async def follow():
        async with kumiki.aio.LiveSession(venue="local_broker", attach=spec.config) as one:
            await one.login()
            async with one.boards("7203", timeout=PATIENCE) as boards:
                await one.subscribe("7203")
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, lambda: spec.until(lambda: spec.registered(), "registered"))
                # A login is told before the stream is open; what is traded until then is pushed to nobody.
                while (await one.venue_state()).push != "Streaming":
                    await asyncio.sleep(0.01)
                await loop.run_in_executor(None, spec.gateway.trade)
                board = await boards.__anext__()
            assert board.last_price == Decimal(2_850)
            assert (await one.get_board("7203")).ticker == "7203"
            assert await one.evict_lru() == "7203"

    asyncio.run(follow())


def watch(world, *arguments, **other):
    command = [program(), "watch", "--config-dir", world.config, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE, **other)


def test_the_board_in_a_terminal(spec):
    ended = watch(spec, "7203", "--once")
    assert ended.returncode == 1 and "--login" in ended.stderr, ended
    spec.gateway.trade("2850", 100)
    ended = watch(spec, "7203", "--once", "--login")
    assert ended.returncode == 0, ended
    lines = ended.stdout.splitlines()
    assert len(lines) == 22 and lines[0].startswith("7203 ") and "2,850 yen" in lines[0], ended.stdout
    ended = watch(spec, "7203", "--once", "--format", "json")
    board = json.loads(ended.stdout)
    assert (board["event"], board["last_price"]) == ("DepthSnapshot", "2850")


def test_boards_for_a_script(spec):
    with session(spec) as one:
        one.login()
    command = [program(), "watch", "--config-dir", spec.config, "7203"]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, **OWN_CONSOLE) as follows:
        spec.until(lambda: spec.registered() == ["7203"], "the symbol is registered")
        ends = threading.Timer(PATIENCE, follows.kill)
        ends.start()
        spec.gateway.trade("2850", 100)
        spec.gateway.trade("2851", 300)
        told = []
        while "Trades" not in told:
            told.append(json.loads(follows.stdout.readline())["event"])
        ends.cancel()
        assert "DepthSnapshot" in told
        interrupt(follows)
        assert follows.wait(PATIENCE) == 0


def test_lines_of_many_tickers_have_no_holes(tmp_path):
    """From the first board of each on: what comes while others are being subscribed, too."""
    one = LocalWorld(tmp_path, market=("--mean-gap", "20ms"))
    try:
        with session(one) as client:
            client.login()
        codes = [str(code) for code in range(1301, 1331)]
        command = [program(), "watch", "--config-dir", one.config, *codes]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as follows:
            ends = threading.Timer(PATIENCE, follows.kill)
            ends.start()
            numbers, traded = {code: [] for code in codes}, set()
            while len(traded) < len(codes):
                event = json.loads(follows.stdout.readline())
                rows = event.get("trades", [event] if event["event"] == "DepthSnapshot" else [])
                numbers[event["ticker"]] += [row["sequence_id"] for row in rows]
                traded |= {event["ticker"]} if event["event"] == "Trades" else set()
            ends.cancel()
            follows.terminate()
        for code, told in numbers.items():
            assert told == list(range(1, len(told) + 1)), (code, told)
    finally:
        one.close()


def test_watching_needs_an_engine(tmp_path, start):
    command = [program(), "watch", "--config-dir", tmp_path, "7203"]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 1 and "no engine runs" in ended.stderr, ended
    replay = start(standalone=True)
    command[3] = replay.config_dir
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 1 and "needs an engine with --mode live" in ended.stderr, ended
