"""Single sentences of the specification's pins about `kumiki serve`, each by its number."""

import contextlib
import datetime
import json
import pathlib
import shutil
import socket
import subprocess
import sys
from decimal import Decimal

import pytest
from engine_process import CASH, EXECUTION, component, spawn, start_line, wait_until
from plain_client import Client
from sessions import RICH, filled, last_trade_price, order, submit, table

#: Orders of a message.
PAGE_ROWS = 10_000


def test_a_long_list_of_orders_comes_in_pages(start, market):
    """P74: at most 10,000 rows a frame with `more` and `next`, by arrival."""
    engine = start(standalone=True, more=["--guest-limit", "folder-day=32MiB"])
    with engine.client() as client:
        market.load(client, 0, 2)
        market.run(client, "floods-orders", first=0, last=2, multiplier="max", initial_cash=RICH,
                   strategy_init_kwargs={"flood": "cancel-replace", "count": 3})
    # Nobody listens to all that happens; the list stays when it is over.
    wait_until(engine.runs, "the run ends")
    folder, = engine.runs().values()
    told = [row["venue_order_id"] for row in table(folder, "orders")]
    assert len(told) == 3 * len(market.trades(market.instruments[0])) > PAGE_ROWS
    with engine.client() as client:
        request_id = client.send("GetOrderList", venue="replay", filter={})
        last = client.wait("OrderListUpdated", where=lambda event: not event.get("more"))
        pages = client.since(0, "OrderListUpdated")
        assert {page["request_id"] for page in pages} == {request_id} and pages[-1] == last
        sizes = [len(page["orders"]) for page in pages]
        assert sizes == [PAGE_ROWS] * (len(told) // PAGE_ROWS) + [len(told) % PAGE_ROWS]
        assert [(page["more"], page.get("next")) for page in pages[:-1]] == [
            (True, PAGE_ROWS * (number + 1)) for number in range(len(pages) - 1)]
        assert (last["more"], last.get("next")) == (False, None)
        listed = [row["venue_order_id"] for page in pages for row in page["orders"]]
        assert listed == sorted(told, key=lambda name: int(name[1:]))


def test_a_position_that_only_changes_is_told_as_it_is(client, market):
    """P77: PositionOpened at 0 -> n, PositionsUpdated in between, PositionClosed at the end."""
    market.load(client)
    market.run(client, multiplier=20)
    last_trade_price(client)
    after, rows = [], []
    for name, side in (("a", "BUY"), ("b", "BUY"), ("c", "SELL"), ("d", "SELL")):
        submit(client, order(name, side))
        fill, = filled(client, name)
        marker, told, power = client.since(client.events.index(fill) + 1)[:3]
        assert (marker["event"], power["event"]) == ("ExecutionMarker", "ReplayBuyingPower")
        after.append(told["event"])
        rows.append((Decimal(fill["last_price"]), told))
    assert after == ["PositionOpened", "PositionsUpdated", "PositionsUpdated", "PositionClosed"]
    average = (rows[0][0] + rows[1][0]) / 2
    for shares, (price, told) in zip((200, 100), rows[1:3]):
        row, = told["positions"]
        assert told.get("request_id") is None and told["venue"] == "replay"
        assert (row["instrument_id"], row["qty"], row["side"], row["position_type"]) == (
            "7203.TSE", str(shares), "BUY", "cash")
        assert (Decimal(row["avg_open_price"]), Decimal(row["market_value"])) == (average, shares * price)
    closed = rows[3][1]
    assert (closed["opened_qty"], closed["position_id"]) == ("200", rows[0][1]["position_id"])


@pytest.mark.parametrize("fees, of", [
    ("order:100", lambda value: Decimal(100)), ("none", lambda value: Decimal(0)),
    ("450ppm,min=50,max=1000", lambda value: min(max((value * 450) // 1_000_000, Decimal(50)), Decimal(1000))),
])
def test_a_commission_is_in_the_money_and_in_the_result(client, market, fees, of):
    """P65, P76, P77: execution {commission} is taken from the cash at each fill; realized_pnl is net of it."""
    market.load(client)
    market.run(client, multiplier=20, execution={**EXECUTION, "commission": fees})
    started = client.wait("EngineStarted")
    assert started["execution"]["commission"] == fees
    last_trade_price(client)
    cash, profit = Decimal(CASH), Decimal(0)
    for name, side in (("in", "BUY"), ("out", "SELL")):
        submit(client, order(name, side))
        fill, = filled(client, name)
        value = 100 * Decimal(fill["last_price"])
        change = (value if side == "SELL" else -value) - of(value)
        cash, profit = cash + change, profit + change
        power = client.wait("ReplayBuyingPower", since=client.events.index(fill))
        assert Decimal(power["cash"]) == cash, (side, fill, power)
    assert Decimal(client.wait("PositionClosed")["realized_pnl"]) == profit
    client.ask("StopEngine", "ReplayStopped", strategy_id="one")
    assert Decimal(client.wait("EngineStopped")["final_equity"]) == CASH + profit


def test_a_signal_of_a_strategy_reaches_every_client(start, market):
    """P78: StrategySignal{strategy_id, instrument_id, signal_kind, side?, price?, tag?, note?, ts_event_ms}."""
    engine = start()
    with engine.client() as one, engine.client() as other:
        market.load(one)
        market.run(one, "buy-and-hold", strategy_id="holder", multiplier="max")
        end = one.wait("EngineStopped")
        price, _, nanos = market.trades("7203.TSE", market.days[1:2])[0]
        wanted = {
            "event": "StrategySignal", "strategy_id": "holder", "instrument_id": "7203.TSE", "price": price,
            "signal_kind": "EntryLong", "side": "BUY", "tag": "entry", "note": None, "ts_event_ms": nanos // 10**6,
        }
        other.wait("EngineStopped")
        for client in (one, other):
            assert client.since(0, "StrategySignal") == [wanted]
            names = [event["event"] for event in client.events]
            assert names.index("EngineStarted") < names.index("StrategySignal") < names.index("OrderFilled")
        kept = (engine.runs()[end["run_id"]] / "signals.csv").read_text(encoding="utf-8").splitlines()
        assert len(kept) == 2 and "EntryLong" in kept[1]


def test_days_without_data_are_counted(client, market):
    """P63, P64: single business days that are missing are counted, also when there is none at all behind them."""
    first, last = (datetime.date.fromisoformat(market.days[place]) for place in (0, -1))
    assert (first, last) == (datetime.date(2025, 1, 6), datetime.date(2025, 1, 8)), "the tests below count from here"
    # The 11th and 12th are a weekend, and the 13th is a holiday.
    for start, end, days, missing in (
        ("2025-01-06", "2025-01-08", 3, 0), ("2025-01-04", "2025-01-08", 3, 0), ("2025-01-06", "2025-01-10", 3, 2),
        ("2025-01-08", "2025-01-14", 1, 3),
    ):
        loaded = client.ask("LoadReplayData", "ReplayDataLoaded", instrument_id="7203.TSE", start_date=start,
                            end_date=end, granularity="Trade")
        assert (loaded["days"], loaded["days_missing"]) == (days, missing), loaded
        assert (loaded["start_date"], loaded["end_date"]) == (start, end)
    nothing = client.refusal("LoadReplayData", instrument_id="7203.TSE", start_date="2025-01-09",
                             end_date="2025-01-14", granularity="Trade")
    assert nothing["code"] == "data_not_found", nothing


def test_a_strategy_may_be_named_from_where_the_engine_works(start, market):
    """P65: strategy_file is a path, relative to the engine's working directory."""
    engine = start()
    (engine.folder / "mine").mkdir()
    shutil.copy(component("empty"), engine.folder / "mine" / "own.wasm")
    with engine.client() as client:
        market.load(client)
        for wrong in ("mine/other.wasm", "own.wasm"):
            config = market.config("empty", strategy_file=wrong)
            refused = client.refusal("StartEngine", engine="Backtest", strategy_id="one", config=config)
            assert refused["code"] == "strategy_load_failed", refused
        market.run(client, strategy_file=str(pathlib.Path("mine", "own.wasm")), multiplier="max")
        assert client.wait("EngineStopped")["status"] == "completed"


def other_addresses():
    """Addresses of this machine that are not 127.0.0.1."""
    found = ["127.0.0.2"] if sys.platform == "linux" else []
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Nothing is sent: this only chooses the address that would be sent from.
            probe.connect(("192.0.2.1", 9))
            found.append(probe.getsockname()[0])
    except OSError:
        # No network.
        pass
    return [address for address in found if address not in ("127.0.0.1", "0.0.0.0")]


@pytest.mark.parametrize("standalone", [False, True], ids=["line", "standalone"])
def test_nobody_else_can_connect(start, standalone):
    """The engine listens on 127.0.0.1 alone: at every other address of this machine nobody answers."""
    engine = start(standalone=standalone)
    with engine.client() as client:
        assert client.is_alive()
    others = other_addresses()
    if not others:
        pytest.skip("this machine has no other address")
    for address in others:
        with pytest.raises(OSError), socket.create_connection((address, engine.port), timeout=10):
            pass
    if socket.has_ipv6:
        with pytest.raises(OSError), socket.create_connection(("::1", engine.port), timeout=10):
            pass


def test_flags_come_before_the_environment_and_that_before_the_file(tmp_path, market):
    """P63: `--data`, KUMIKI_DATA, `[replay] data`: each before what stands after it."""
    settings = tmp_path / "settings" / "kumiki.toml"
    settings.parent.mkdir()
    settings.write_text('[replay]\ndata = "of-the-file"\n', encoding="utf-8")
    given = {
        "of-the-flag": (["--data", "of-the-flag"], {"KUMIKI_DATA": "of-the-environment"}),
        "of-the-environment": ([], {"KUMIKI_DATA": "of-the-environment"}),
        # Relative to the file.
        str(settings.parent / "of-the-file"): ([], {}),
    }
    for folder, (flags, environment) in given.items():
        said = refused(["--config", str(settings), *flags], environment, tmp_path)
        assert f"there is no data folder {folder};" in said, said
    shutil.copytree(market.folder, settings.parent / "of-the-file")
    with engine_of(["--config", str(settings)], {}, tmp_path) as (port, token):
        with Client(port, token) as client:
            assert market.load(client)["trades_loaded"] > 0


def test_a_port_is_of_the_flag_then_of_the_line_then_of_the_file(tmp_path, market):
    """The port of `--port` comes before that of the line, and that before the file's."""
    settings = tmp_path / "kumiki.toml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings.write_text(f'[engine]\nport = {port}\n[replay]\ndata = "{market.folder.as_posix()}"\n', "utf-8")
        common = ["--config", str(settings)]
        for flags, line in ((["--port", "0"], {"port": port}), ([], {"port": 0})):
            with engine_of([*common, *flags], {}, tmp_path, **line) as (own, _):
                assert own != port
        for flags, line in (([], {"port": None}), ([], {"port": port}), (["--port", str(port)], {"port": 0})):
            assert f"cannot listen on 127.0.0.1:{port}" in refused([*common, *flags], {}, tmp_path, **line)


def refused(arguments, environment, folder, **line):
    """What an engine says that does not start."""
    process = spawn(arguments, env=environment, cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    text = start_line(folder / "config", folder / "cache", **line)
    answer, said = process.communicate(text.encode(), timeout=60)
    assert answer == b"" and process.returncode in (12, 14), (process.returncode, answer, said)
    return said.decode()


@contextlib.contextmanager
def engine_of(arguments, environment, folder, **line):
    """An engine with some arguments: its port and token."""
    process = spawn(arguments, env=environment, cwd=folder, stdin=subprocess.PIPE)
    try:
        text = start_line(folder / "config", folder / "cache", **line)
        process.stdin.write(text.encode())
        process.stdin.flush()
        yield json.loads(process.stdout.readline())["listening"], json.loads(text)["token"]
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
