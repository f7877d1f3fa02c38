"""What subscribers of `kumiki serve --mode replay` are told, against the vendor's files themselves."""

import csv
import gzip
import json
from decimal import Decimal

import pytest
from engine_process import shortest, wait_until
from sessions import RICH, check_money, check_run

MINUTE = 60_000


def rows_of(events, instrument):
    return [row for event in events if event["instrument_id"] == instrument for row in event["trades"]]


def bars_of(events, instrument):
    return [bar for event in events if event["instrument_id"] == instrument for bar in event["klines"]]


def minute_bars(trades):
    """Bars of a minute, made of trades: begin, open, high, low, close, shares."""
    bars = {}
    for price, quantity, nanos in trades:
        begin = nanos // 1_000_000 // MINUTE * MINUTE
        price, quantity = Decimal(price), Decimal(quantity)
        if begin in bars:
            bar = bars[begin]
            bars[begin] = (bar[0], max(bar[1], price), min(bar[2], price), price, bar[4] + quantity)
        else:
            bars[begin] = (price, price, price, price, quantity)
    return [(begin, *bar) for begin, bar in bars.items()]


def told(bar):
    return (bar["open_time_ms"], *(Decimal(bar[name]) for name in ("open", "high", "low", "close", "volume")))


def test_every_trade_comes_once_and_every_bar_is_final_once(start, market):
    """Pin P75."""
    engine = start()
    first, second = market.instruments
    with engine.client() as both, engine.client() as one, engine.client() as none:
        # Subscriptions hold in every state, and over runs.
        both.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        both.ask("Subscribe", "Subscribed", venue="replay", ticker=second)
        one.ask("Subscribe", "Subscribed", venue="replay", ticker="9984")
        market.load(both, 1, 2, instruments=market.instruments)
        for multiplier in ("max", 1_000_000):
            if multiplier != "max":
                market.load(both, 1, 2, instruments=market.instruments)
            places = [len(client.events) for client in (both, one, none)]
            started = market.run(both, last=2, instruments=market.instruments, multiplier=multiplier)
            for client, place in zip((both, one, none), places):
                client.wait("EngineStopped", since=place)
            events = both.since(places[0], "Trades")
            for issue in market.instruments:
                trades = market.trades(issue, market.days[1:3])
                rows = rows_of(events, issue)
                assert [(row["price"], row["qty"], row["ts_ns"]) for row in rows] == trades
                numbers = [row["sequence_id"] for row in rows]
                assert numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
                for row in rows:
                    assert row["ts_ms"] == row["ts_ns"] // 1_000_000
                    assert (row["side"], row["side_rule"], row["received_ms"]) == ("unknown", None, None)
                bars = bars_of(both.since(places[0], "KlineUpdate"), issue)
                final = [bar for bar in bars if bar["is_final"]]
                assert [told(bar) for bar in final] == minute_bars(trades)
                assert all(bar["close_time_ms"] > bar["open_time_ms"] for bar in final)
                # A bar that is not final yet comes before its final one, never after it.
                over = set()
                for bar in bars:
                    assert bar["open_time_ms"] not in over
                    if bar["is_final"]:
                        over.add(bar["open_time_ms"])
            for event in events:
                assert (event["venue"], event["exchange"], event["stream_session_id"]) == (
                    "replay", "TSE", started["run_id"])
                assert event["instrument_id"] == f"{event['ticker']}.TSE"
            mine = one.since(places[1], "Trades", "KlineUpdate")
            assert {event["instrument_id"] for event in mine} == {second}
            assert rows_of([event for event in mine if event["event"] == "Trades"], second) == rows_of(events, second)
            assert not none.since(places[2], "Trades", "KlineUpdate")
        # Nobody hears of what was given up.
        one.ask("Unsubscribe", "Unsubscribed", venue="replay", ticker="9984.TSE")
        market.load(both, instruments=market.instruments)
        place = len(one.events)
        market.run(one, instruments=market.instruments, multiplier="max")
        one.wait("EngineStopped", since=place)
        assert not one.since(place, "Trades", "KlineUpdate")


@pytest.mark.parametrize("granularity, interval, files", [
    ("Minute", "1m", "equities_bars_minute_*.csv.gz"), ("Daily", "1d", "equities_bars_daily_*.csv.gz")])
def test_bars_of_the_vendor_are_told_as_they_are(start, market, granularity, interval, files):
    """Pin P75."""
    rows = []
    for path in sorted(market.folder.glob(files)):
        with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
            rows += [row for row in csv.DictReader(file) if row["Code"] == "72030" and row["Date"] in market.days[1:3]]
    assert rows, "there are bars"
    engine = start()
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        loaded = market.load(client, 1, 2, granularity)
        assert (loaded["bars_loaded"], loaded["trades_loaded"]) == (len(rows), 0)
        market.run(client, last=2, granularity=granularity, multiplier="max")
        stopped = client.wait("EngineStopped")
        assert stopped["rows_done"] == len(rows)
        events = client.since(0, "KlineUpdate")
        bars = bars_of(events, "7203.TSE")
        assert {event["interval"] for event in events} == {interval} and all(bar["is_final"] for bar in bars)
        values = [tuple(bar[name] for name in ("open", "high", "low", "close", "volume")) for bar in bars]
        assert values == [tuple(shortest(row[name]) for name in ("O", "H", "L", "C", "Vo")) for row in rows]
        assert not client.since(0, "Trades")


@pytest.mark.parametrize("strategy, parameters", [
    ("orders-every-tick", {}), ("trades-at-random", {"seed": 5, "every": 3})])
def test_fills_are_told_in_their_order(start, market, strategy, parameters):
    """Slow enough that the client is never behind, so that nothing may be left out. Pins P76 and P78."""
    engine = start()
    with engine.client() as client:
        market.load(client, instruments=market.instruments)
        more = {"instruments": market.instruments, "strategy_init_kwargs": parameters, "initial_cash": RICH}
        market.run(client, strategy, multiplier=300, **more)
        client.wait("OrderFilled", where=lambda _: len(client.since(0, "OrderFilled")) >= 100)
        client.ask("StopEngine", "ReplayStopped", strategy_id="one")
        client.wait("EngineStopped")
        run = check_run(client.events)
        check_money(run, RICH)
        assert {event["origin"] for event in run if "origin" in event} == {"strategy"}
        fills = [event for event in run if event["event"] == "OrderFilled"]
        trades = {issue: {(price, nanos) for price, _, nanos in market.trades(issue, market.days[1:2])}
                  for issue in market.instruments}
        numbers = [event["venue_order_id"] for event in run if event["event"] == "OrderAccepted"]
        assert len(set(numbers)) == len(numbers) and all(number[0] == "R" for number in numbers)
        for fill in fills:
            if strategy == "orders-every-tick":
                # Market orders without slippage: the very price of a trade of that instant.
                assert (fill["last_price"], fill["ts_event_ns"]) in trades[fill["instrument_id"]], fill
        told_qty = {}
        for fill in fills:
            name = fill["client_order_id"]
            told_qty[name] = told_qty.get(name, 0) + int(fill["last_qty"])
            assert int(fill["cumulative_qty"]) == told_qty[name]


def test_cash_is_told_while_nothing_happens(start, market):
    """Pin P76."""
    engine = start()
    with engine.client() as client:
        market.load(client)
        market.run(client)
        seen = []
        while len(seen) < 3:
            seen.append(client.wait("ReplayBuyingPower", since=len(client.events)))
        assert len({event["cash"] for event in seen}) == 1
        assert all("request_id" not in event or event["request_id"] is None for event in seen)


def test_the_log_tells_how_long_events_waited(start, market):
    """Each event counts once, also where trades have come in one message."""
    engine = start(more=("--log", "debug", "--log-format", "json"))
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        market.load(client)
        market.run(client, multiplier="max")
        client.wait("EngineStopped")

    def waits():
        whole, _, _ = engine.stderr.read_text(encoding="utf-8").rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line for line in lines if "from its queue to its socket" in line.get("message", "")]

    wait_until(waits, "the client has left")
    line, = waits()
    after_challenge = client.events[1:]
    assert line["told"] == sum(len(event.get("trades", [event])) for event in after_challenge)
    assert 0 < line["p50_us"] <= line["p99_us"] <= line["max_us"], line
