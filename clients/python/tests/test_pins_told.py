"""The pins about what is told and kept of a replay, P75 to P80, each by its name, and that each pin has a test. What
another test holds wholly is not repeated: the docstrings name it."""

import csv
import gzip
import json
import pathlib
import re
import shutil
import time
from decimal import Decimal

import pytest

pytest.importorskip("websockets")
pytest.importorskip("jsonschema")

from engine_process import CASH, EXECUTION, Market, component, wait_until, write_market  # noqa: E402
from sessions import (  # noqa: E402
    RICH, check_folder, check_money, check_run, filled, half_even, last_trade_price, manifest, order, submit, table,
)

TRADES = ("09:00:05 850 100", "09:00:40 852.5 200", "09:03:00 849 100")
#: 09:00 of 2025-01-06 in Japan, in milliseconds since 1970 UTC.
NINE = 1_736_121_600_000
MINUTE = 60_000
AUDIT = "web_broker_orders_replay.jsonl"


def test_p75_what_a_subscriber_is_told(start, tmp_path):
    """For each client, in every state and over runs: `test_every_trade_comes_once_and_every_bar_is_final_once`; bars of
    the vendor: `test_bars_of_the_vendor_are_told_as_they_are`; a client that is behind has all final bars:
    `test_p76_only_who_is_behind_is_told_less`."""
    one = write_market(tmp_path / "one", ("2025-01-06", *TRADES))
    with start(data=one.folder).client() as client:
        for ticker in ("7203", "7203.TSE"):
            subscribed = client.ask("Subscribe", "Subscribed", venue="replay", ticker=ticker)
            assert (subscribed["venue"], subscribed["ticker"]) == ("replay", "7203")
            info = subscribed["ticker_info"]
            assert (info["symbol"], info["market_kind"]) == ("7203", "Stock") and "display_name_ja" in info
        for wrong in ("", "7203.OSE.X", "あ"):
            assert client.refusal("Subscribe", venue="replay", ticker=wrong)["code"] == "validation_error"
        one.load(client, 0, 0)
        started = one.run(client, first=0, last=0, multiplier="max")
        client.wait("EngineStopped")
        events = client.since(0, "Trades")
        for event in events:
            assert {name: value for name, value in event.items() if name != "trades"} == {
                "event": "Trades", "venue": "replay", "exchange": "TSE", "ticker": "7203", "instrument_id": "7203.TSE",
                "stream_session_id": started["run_id"]}
        rows = (("850", "100", 5), ("852.5", "200", 40), ("849", "100", 180))
        assert [row for event in events for row in event["trades"]] == [
            {"price": price, "qty": qty, "side": "unknown", "side_rule": None, "ts_ms": NINE + seconds * 1000,
             "ts_ns": (NINE + seconds * 1000) * 1_000_000, "sequence_id": number + 1, "received_ms": None}
            for number, (price, qty, seconds) in enumerate(rows)]
        klines = client.since(0, "KlineUpdate")
        for event in klines:
            assert {name: value for name, value in event.items() if name != "klines"} == {
                "event": "KlineUpdate", "venue": "replay", "ticker": "7203", "instrument_id": "7203.TSE",
                "interval": "1m"}
        final = [bar for event in klines for bar in event["klines"] if bar["is_final"]]
        # Nothing is told of the minutes in which nothing happened.
        assert final == [
            {"open_time_ms": NINE + minute * MINUTE, "close_time_ms": NINE + (minute + 1) * MINUTE, "open": first,
             "high": high, "low": low, "close": last, "volume": volume, "turnover": turnover, "is_final": True}
            for minute, first, high, low, last, volume, turnover in (
                (0, "850", "852.5", "850", "852.5", "300", "255500"), (3, "849", "849", "849", "849", "100", "84900"))]


def test_p75_a_bar_is_one_paced_event(start, market):
    with start().client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client, granularity="Minute")
        since = time.monotonic()
        market.run(client, granularity="Minute", multiplier=1)
        client.wait("KlineUpdate", where=lambda _: len(client.since(0, "KlineUpdate")) == 8)
        assert time.monotonic() - since > 0.2 * 7 - 0.25, "a minute between two bars"
        for event in client.since(0, "KlineUpdate"):
            assert [bar["is_final"] for bar in event["klines"]] == [True]
        assert client.ask("GetSession", "Session")["rows_done"] == len(client.since(0, "KlineUpdate"))
        assert not client.since(0, "Trades")


def test_p76_cash_is_settled_cash(client, market):
    """Each second: `test_cash_is_told_while_nothing_happens`; after each fill, and what it is:
    `test_fills_are_told_in_their_order`."""
    market.load(client)
    market.run(client, multiplier=20)
    price = last_trade_price(client)
    submit(client, order("rests", price=str(int(price * Decimal("0.95"))), quantity="5000"))
    power = client.ask("GetBuyingPower", "ReplayBuyingPower", venue="replay")
    assert (power["cash"], power["buying_power"], power["equity"]) == (str(CASH),) * 3, "nothing is deducted"
    assert power["strategy_id"] == "one" and power["venue"] == "replay"
    fill = submit(client, order("now")) and filled(client, "now")[0]
    power = client.ask("GetBuyingPower", "ReplayBuyingPower", venue="replay")
    last = last_trade_price(client)
    assert Decimal(power["cash"]) == Decimal(power["buying_power"]) == CASH - 100 * Decimal(fill["last_price"])
    assert Decimal(power["equity"]) == Decimal(power["cash"]) + 100 * last
    client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
    end = client.wait("EngineStopped")
    run = check_run(client.events)
    assert [event["event"] for event in run[-2:]] == ["ReplayBuyingPower", "EngineStopped"]
    assert run[-2]["equity"] == end["final_equity"] and run[-2].get("request_id") is None
    last = Decimal(market.trades("7203.TSE", market.days[1:2])[-1][0])
    assert Decimal(end["final_equity"]) == Decimal(power["cash"]) + 100 * last


def test_p76_only_who_is_behind_is_told_less(start, market):
    """A client that reads nothing while a run goes on gets every order, fill, trade and final bar, but of buying
    power that waits the newest only."""
    engine = start()
    with engine.client(max_queue=1) as slow:
        slow.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(slow, 1, 2)
        trades = market.trades("7203.TSE", market.days[1:3])
        name = "x" * 64
        market.run(slow, "trades-at-random", last=2, strategy_id=name, multiplier="max", initial_cash=RICH,
                   strategy_init_kwargs={"seed": 2, "every": 1})
        wait_until(lambda: engine.runs(), "the run has ended")
        run = [slow.events[-1]]
        while run[-1]["event"] != "EngineStopped":
            run.append(slow.read())
        fills = [event["trade_id"] for event in run if event["event"] == "OrderFilled"]
        powers = [event for event in run if event["event"] == "ReplayBuyingPower"]
        assert fills == [str(number + 1) for number in range(len(fills))] and len(fills) > 1000
        assert [event["trade_id"] for event in run if event["event"] == "ExecutionMarker"] == fills
        assert 0 < len(powers) < len(fills), "other data are needed"
        assert run[-2] == powers[-1] and powers[-1]["equity"] == run[-1]["final_equity"]
        assert sum(len(event["trades"]) for event in run if event["event"] == "Trades") == len(trades)
        bars = [bar["open_time_ms"] for event in run if event["event"] == "KlineUpdate" for bar in event["klines"]
                if bar["is_final"]]
        assert bars == list(dict.fromkeys(nanos // 1_000_000 // MINUTE * MINUTE for _, _, nanos in trades))
        check_money(check_run([event for event in run if event["event"] != "ClientConnected"]), RICH, each=False)


def fee(value):
    """450 parts per million of an order's value in whole yen, at least 50 and at most 1,000."""
    return min(max(value * 450 // 1_000_000, 50), 1000)


def rising(count):
    """A trade each minute, a yen dearer each time."""
    return [f"09:{number:02}:00 {850 + number} 10000" for number in range(count)]


def test_p77_a_position_from_its_begin_to_its_end(start, tmp_path):
    one = write_market(tmp_path / "one", ("2025-01-06", *rising(60)))
    with start(data=one.folder).client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        one.load(client, 0, 0)
        charged = {**EXECUTION, "commission": "450ppm,min=50,max=1000"}
        started = one.run(client, first=0, last=0, multiplier=1, execution=charged)
        assert started["execution"]["commission"] == charged["commission"]
        # A market order costs what the last trade says.
        client.wait("Trades")
        bought = [("BUY", "3100"), ("BUY", "100"), ("SELL", "100"), ("SELL", "3100")]
        fills = []
        for number, (side, quantity) in enumerate(bought):
            submit(client, order(f"o{number}", side, quantity=quantity))
            fills.append(filled(client, f"o{number}")[-1])
        client.ask("StopEngine", "ReplayStopped", strategy_id="one")
        end = client.wait("EngineStopped")
        run = check_run(client.events)
        after = [event["event"] for event in run if event["event"].startswith("Position")]
        assert after == ["PositionOpened", "PositionsUpdated", "PositionsUpdated", "PositionClosed"]
        prices = [Decimal(fill["last_price"]) for fill in fills]
        opened, grown, shrunk, closed = (event for event in run if event["event"].startswith("Position"))
        same = {"strategy_id": "one", "venue": "replay", "instrument_id": "7203.TSE", "position_id": "7203.TSE-1",
                "side": "BUY"}
        assert opened == {"event": "PositionOpened", **same, "opened_qty": "3100", "avg_open_price": str(prices[0]),
                          "ts_event_ms": fills[0]["ts_event_ms"]}
        assert [row["qty"] for event in (grown, shrunk) for row in event["positions"]] == ["3200", "3100"]
        # With a yen between the two it is 850.03125, of which the even digit is told.
        paid = 3100 * prices[0] + 100 * prices[1]
        average = half_even(paid / 3200)
        assert Decimal(grown["positions"][0]["avg_open_price"]) == average and grown.get("request_id") is None
        got = 100 * prices[2] + 3100 * prices[3]
        fees = sum(fee(int(price * quantity)) for price, quantity in zip(prices, (3100, 100, 100, 3100)))
        assert Decimal(closed.pop("avg_open_price")) == average
        assert Decimal(closed.pop("avg_close_price")) == half_even(got / 3200)
        assert Decimal(closed.pop("realized_pnl")) == got - paid - fees, "net of commission"
        assert closed == {"event": "PositionClosed", **same, "opened_qty": "3200",
                          "ts_event_ms": fills[3]["ts_event_ms"]}
        assert Decimal(end["final_equity"]) == CASH + got - paid - fees


def test_p77_a_position_is_the_account_s(start, tmp_path):
    """The strategy buys, a person sells, and the strategy buys again."""
    one = write_market(tmp_path / "one", ("2025-01-06", *rising(60)))
    with start(data=one.folder).client() as client:
        one.load(client, 0, 0)
        one.run(client, "buy-and-hold", first=0, last=0, multiplier=1)
        opened = client.wait("PositionOpened")
        submit(client, order("mine", "SELL"))
        closed = client.wait("PositionClosed")
        again = client.wait("PositionOpened", since=client.events.index(closed))
        assert [event["position_id"] for event in (opened, closed, again)] == [
            "7203.TSE-1", "7203.TSE-1", "7203.TSE-2"]
        origins = [event["origin"] for event in client.since(0, "OrderFilled")]
        assert origins == ["strategy", "person", "strategy"]
        assert {event["strategy_id"] for event in client.since(0, "ExecutionMarker")} == {"one"}


def test_p78_a_fill_and_what_belongs_to_it(start, market):
    """Nothing comes between: `test_nothing_comes_between_a_fill_and_what_belongs_to_it`; of both origins and many
    fills: `test_fills_are_told_in_their_order`."""
    with start().client() as client:
        market.load(client)
        market.run(client, "buy-and-hold", multiplier=1000)
        fill = client.wait("OrderFilled")
        client.ask("StopEngine", "ReplayStopped", strategy_id="one")
        client.wait("EngineStopped")
        run = check_run(client.events)
        place = run.index(fill)
        assert [event["event"] for event in run[place:place + 4]] == [
            "OrderFilled", "ExecutionMarker", "PositionOpened", "ReplayBuyingPower"]
        assert run[place + 1] == {
            "event": "ExecutionMarker", "strategy_id": "one", "origin": "strategy", "instrument_id": "7203.TSE",
            "side": "BUY", "client_order_id": fill["client_order_id"], "trade_id": "1", "price": fill["last_price"],
            "qty": "100", "ts_event_ms": fill["ts_event_ms"]}


def test_p78_signals_of_a_strategy(start, market):
    first_trade = market.trades("7203.TSE", market.days[1:2])[0]
    with start().client() as client:
        market.load(client)
        started = market.run(client, "buy-and-hold", multiplier="max")
        client.wait("EngineStopped")
        signal, = client.since(0, "StrategySignal")
        assert signal == {
            "event": "StrategySignal", "strategy_id": "one", "instrument_id": "7203.TSE", "signal_kind": "EntryLong",
            "side": "BUY", "price": first_trade[0], "tag": "entry", "note": None,
            "ts_event_ms": first_trade[2] // 1_000_000}
        assert client.events.index(signal) > client.events.index(started)
        # Texts that a strategy may make longer are cut.
        for flood, field, most, longest in (("signal-tag", "tag", 64, 256), ("note", "note", 512, 4096)):
            for length in (most, most + 1, longest):
                market.load(client)
                since = len(client.events)
                market.run(client, "floods-output", strategy_init_kwargs={"flood": flood, "bytes": length},
                           multiplier=1000)
                signal = client.wait("StrategySignal", since=since)
                client.ask("StopEngine", "ReplayStopped", strategy_id="one")
                client.wait("EngineStopped", since=since)
                assert (signal["signal_kind"], signal["side"], signal["price"]) == ("Annotate", None, None)
                assert signal[field] == "x" * most, (flood, length, len(signal[field]))


def test_p79_the_folder_of_a_run(start, market, desk, tmp_path):
    """What it says of the events, and that a run can be repeated from it:
    `test_a_session_can_be_repeated_from_its_commands`; a flag for how many are kept: `test_only_the_last_runs_are_kept`
    and `test_the_run_that_has_just_ended_is_kept_whatever_its_name`."""
    _, call = desk
    call("replay", "run", component("empty"), "--data", str(market.folder), "--instrument", "7203.TSE", "--out",
         str(tmp_path / "out"), "--quiet")
    engine = start()
    folders, files = [], []
    for number in range(2):
        with engine.client() as client:
            client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
            market.load(client)
            started = market.run(client, "trades-at-random", multiplier=300, initial_cash=RICH,
                                 strategy_init_kwargs={"seed": 7, "every": 3})
            low = str(int(last_trade_price(client) * Decimal("0.9")))
            submit(client, order("mine", price=low))
            # It is written when it is answered, and not only at the end.
            present = [path for path in engine.cache_dir.rglob(AUDIT) if path.parent not in folders]
            assert len(present) == 1 and '"mine"' in present[0].read_text(encoding="utf-8")
            if number == 0:
                client.send("SetReplaySpeed", multiplier="max")
            else:
                client.send("StopEngine", strategy_id="one")
            end = client.wait("EngineStopped")
            folder = pathlib.Path(end["run_dir"])
            assert folder == engine.cache_dir / "runs" / started["run_id"]
            check_folder(folder, check_run(client.events))
            assert manifest(folder)["partial"] is (number == 1)
            folders.append(folder)
            files.append({path.name: path.read_bytes() for path in folders[0].iterdir()})
    assert files[0] == files[1], "the next run leaves it alone"
    of_command = {path.name for path in (tmp_path / "out").iterdir()}
    assert of_command | {"commands.jsonl"} == files[0].keys()
    lines = [json.loads(line) for line in files[0]["commands.jsonl"].decode().splitlines()]
    assert [line["command"]["op"] for line in lines] == ["SubmitOrder"], "a speed is no part of a run"
    audit = [json.loads(line) for line in files[0][AUDIT].decode().splitlines()]
    assert {line["origin"] for line in audit} == {"person", "strategy"}
    submitted = next(line for line in audit if line["client_order_id"] == "mine")
    row, = [row for row in table(folders[0], "orders") if row["client_order_id"] == "mine"]
    assert submitted["phase"] == "submit" and submitted["ts"] == int(row["ts_submitted_ns"]) // 1_000_000


@pytest.mark.parametrize("kept, settings", [(20, None), (3, "[engine]\nruns_kept = 3\n")])
def test_p79_the_last_runs_are_kept(start, market, tmp_path, kept, settings):
    more = ()
    if settings:
        (tmp_path / "kumiki.toml").write_text(settings, encoding="utf-8")
        more = ("--config", str(tmp_path / "kumiki.toml"))
    engine = start(more=more)
    with engine.client() as client:
        def run():
            market.load(client)
            since = len(client.events)
            run_id = market.run(client, multiplier="max")["run_id"]
            client.wait("EngineStopped", since=since)
            return run_id

        first = run()
        runs = engine.cache_dir / "runs"
        older = [f"2024010{day}T09{minute:02}00000Z-0123abcd" for day in (1, 2) for minute in range(15)]
        for name in older:
            shutil.copytree(runs / first, runs / name)
        second = run()
        wait_until(lambda: len(engine.runs()) <= kept, "the oldest runs are removed")
        assert sorted(engine.runs()) == sorted([*older, first, second])[-kept:]


def test_p80_an_end_closes_every_connection(start, market):
    """Each way to be told to end, idle and running: `test_it_ends_when_it_is_told_to`."""
    engine = start()
    clients = [engine.client() for _ in range(3)]
    try:
        first = clients[0]
        first.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(first)
        started = market.run(first, multiplier=20)
        submit(first, order("rests", price=str(int(last_trade_price(first) * Decimal("0.95")))))
        clients[1].send("Shutdown")
        for client in clients:
            assert client.closed() == 1001
            *_, cancelled, power, end = [event for event in client.events if event["event"] in (
                "OrderCanceled", "ReplayBuyingPower", "ReplayStopped", "EngineStopped")]
            assert [event["event"] for event in (cancelled, power, end)] == [
                "OrderCanceled", "ReplayBuyingPower", "EngineStopped"]
            assert (end["status"], end["run_id"]) == ("stopped", started["run_id"])
            assert cancelled["client_order_id"] == "rests"
    finally:
        for client in clients:
            client.socket.close()
    assert engine.ended() == 0
    assert manifest(engine.runs()[started["run_id"]])["partial"] is True


def test_each_pin_of_the_engine_has_a_test_that_names_it():
    folder = pathlib.Path(__file__).parent
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("test_*.py")}
    tests = {name for text in texts.values() for name in re.findall(r"^def (test_\w+)", text, re.M)}
    named = {int(number) for name in tests for number in re.findall(r"^test_p(\d+)_", name)}
    assert named >= set(range(61, 81)), f"without a test: {sorted(set(range(61, 81)) - named)}"
    # The tests that hold a clause in place of one here are there.
    told = {name for file, text in texts.items() if file.startswith("test_pins_")
            for name in re.findall(r"`(test_\w+)`", text)}
    assert told and told <= tests, told - tests


@pytest.fixture
def split_market(desk, tmp_path):
    """Makes a market of five days whose shares are split before the third."""
    folder, call = desk
    if not (folder / "whole").exists():
        call("data", "sample", "--out", "whole", "--instrument", "7203.TSE", "--days", "5", "--trades-per-day", "1000",
             "--bars", "--seed", "2")

    def make(factor):
        out = tmp_path / "split"
        out.mkdir()
        day = Market(folder / "whole", ["7203.TSE"]).days[2]
        for path in (folder / "whole").iterdir():
            with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
                head, *rows = csv.reader(file)
            for row in rows:
                fields = dict(zip(head, row))
                if "AdjFactor" in fields and fields["Date"] == day:
                    row[head.index("AdjFactor")] = factor
                if "Price" in fields and fields["Date"] >= day:
                    row[head.index("Price")] = str(int(Decimal(fields["Price"]) * Decimal(factor)))
            with gzip.open(out / path.name, "wt", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([head, *rows])
        return Market(out, ["7203.TSE"])

    return make


@pytest.mark.parametrize("factor", ["0.5", "1000.0"])
def test_p77_a_split_tells_what_becomes_of_a_position(start, split_market, factor):
    """Twice the shares, or less than one, for which there is money; and both books agree."""
    market = split_market(factor)
    engine = start(data=market.folder)
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client, 1, 3)
        market.run(client, last=3, multiplier=2000, initial_cash=RICH)
        last_trade_price(client)
        submit(client, order("held", quantity="300"))
        client.wait("PositionOpened")
        place = len(client.events)
        client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")
        end = client.wait("EngineStopped")
        told = client.since(place, "PositionsUpdated", "PositionClosed")
        money = [event["cash"] for event in client.since(0, "ReplayBuyingPower")]
        if factor == "0.5":
            assert [event["positions"][0]["qty"] for event in told if event["event"] == "PositionsUpdated"][-1] == "600"
            assert not client.since(place, "PositionClosed")
        else:
            closed, = client.since(place, "PositionClosed")
            rows = table(pathlib.Path(end["run_dir"]), "round_trips")
            assert Decimal(closed["realized_pnl"]) == Decimal(rows[-1]["pnl"]) and closed["opened_qty"] == "300"
            assert client.ask("GetSession", "Session")["positions"] == [] and len(set(money[-2:])) == 1
        after = [event["event"] for event in client.events[client.events.index(told[-1]):]]
        assert after[1] == "ReplayBuyingPower", "the money is told with it"
        assert money[-1] == client.ask("GetSession", "Session")["cash"]
