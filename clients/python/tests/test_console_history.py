"""What a page that comes late asks for: trades, bars, decisions, parameters and the account so far."""

import csv
import json

import pytest
from engine_process import wait_until
from local_world import LocalWorld, all_trades, stream, trades_of

TICKER = "7203"
CODE = "7203.TSE"


def pages(client, kind, limit, venue="replay"):
    """All rows, asked for in answers of `limit` rows, from the newest to the oldest."""
    name, key = {"trades": ("trades", "sequence_id"), "bars": ("klines", "open_time_ms")}[kind]
    rows, before = [], {}
    while True:
        answer = client.ask("GetHistory", "History", venue=venue, ticker=TICKER, kind=kind, limit=limit, **before)
        assert len(answer[name]) <= limit
        rows[:0] = answer[name]
        if not answer["more"]:
            return rows
        before = {"before": answer[name][0][key]}


def bars_of(client):
    """The newest form of each bar that was told."""
    told = [bar for event in client.events if event["event"] == "KlineUpdate" for bar in event["klines"]]
    return list({bar["open_time_ms"]: bar for bar in told}.values())


@pytest.fixture
def engine(start):
    return start()


@pytest.mark.parametrize("granularity, limit", [("Trade", 301), ("Minute", 100), ("Daily", 1)])
def test_the_past_is_what_was_told(engine, market, granularity, limit):
    """C7. A client that was there from the beginning knows the same trades and bars, over days and answers."""
    with engine.client() as client:
        asked = {"venue": "replay", "ticker": TICKER, "kind": "trades", "limit": 10}
        assert client.refusal("GetHistory", **asked)["code"] == "not_loaded"
        market.load(client, 1, 2, granularity)
        assert client.ask("GetHistory", "History", **asked)["trades"] == []
        client.ask("Subscribe", "Subscribed", venue="replay", ticker=TICKER)
        market.run(client, "buy-and-hold", first=1, last=2, granularity=granularity, multiplier="max")
        client.wait("EngineStopped")
        assert pages(client, "trades", limit) == trades_of(client)
        bars = pages(client, "bars", limit)
        assert bars == bars_of(client) and all(bar["is_final"] for bar in bars) and len(bars) > limit
        assert client.refusal("GetHistory", **{**asked, "venue": "web_broker"})["code"] == "venue_not_available"


def test_no_answer_knows_the_future(engine, market):
    """While a run goes on the answer ends with the row that was handled last, and what comes joins it."""
    with engine.client() as client:
        market.load(client, 1, 2)
        market.run(client, "buy-and-hold", first=1, last=2, multiplier=600)
        wait_until(lambda: client.ask("GetSession", "Session")["rows_done"] > 300, "the run goes on")
        client.ask("Subscribe", "Subscribed", venue="replay", ticker=TICKER)
        past = pages(client, "trades", 10_000)
        session = client.ask("GetSession", "Session")
        assert past[-1]["sequence_id"] <= session["rows_done"] < session["rows_total"]
        assert [row["sequence_id"] for row in past] == list(range(1, len(past) + 1))
        client.wait("Trades")
        first = trades_of(client)[0]["sequence_id"]
        assert first <= len(past) + 1, "nothing lies between"
        last = pages(client, "bars", 5_000)[-1]
        assert last["open_time_ms"] <= client.ask("GetSession", "Session")["ts_event_ms"]
        client.ask("StopEngine", "ReplayStopped", strategy_id="one")


def test_the_session_knows_parameters_and_the_account(engine, market):
    """The equity curve is that of the run's folder."""
    with engine.client() as client:
        market.load(client)
        market.run(client, "sma-cross", multiplier="max", strategy_init_kwargs={"fast": 5, "slow": 20})
        assert client.wait("EngineStarted")["parameters"] == {"fast": 5, "slow": 20}
        stopped = client.wait("EngineStopped")
        session = client.ask("GetSession", "Session")
        assert session["parameters"] == {"fast": 5, "slow": 20}
        folder = engine.cache_dir / "runs" / stopped["run_id"]
        with open(folder / "equity.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [point["equity"] for point in session["equity_curve"]] == [row["equity"] for row in rows]
        (run,) = client.ask("GetRuns", "Runs")["runs"]
        assert run["final_equity"] == json.loads((folder / "summary.json").read_text())["equity_end"]


def test_limits_of_the_day_come_from_the_day_before(engine, market):
    """No answer knows a later close: the base price is the last one before the present day."""
    unit = {"venue": "replay", "instrument_id": CODE}
    with engine.client() as client:
        market.load(client, 1, 2)
        before = client.ask("GetInstrument", "Instrument", **unit)
        assert before["base_price"] == market.trades(CODE, market.days[:1])[-1][0]
        assert float(before["lower_limit"]) < float(before["base_price"]) < float(before["upper_limit"])
        first = len(market.trades(CODE, market.days[1:2]))
        market.run(client, "buy-and-hold", first=1, last=2, multiplier=3_600)
        wait_until(lambda: client.ask("GetSession", "Session")["rows_done"] > 10, "the first day goes on")
        if client.ask("GetSession", "Session")["rows_done"] < first:
            assert client.ask("GetInstrument", "Instrument", **unit) | {"request_id": ""} == before | {"request_id": ""}
        client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier="max")


# --- The live market.


@pytest.fixture
def world(tmp_path):
    with LocalWorld(tmp_path, market=("--still", "--first-day", "2026-01-05")) as world:
        yield world


def trade(world, *clocks):
    """A frame at each time: but for the first of all a trade."""
    world.gateway.control(*(
        {"do": "trade", "symbol": TICKER, "price": str(2850 + at), "quantity": 100, "time": clock}
        for at, clock in enumerate(clocks)))


def past(client):
    """The trades and bars that a client is told of before."""
    return pages(client, "trades", 2, "local_broker"), pages(client, "bars", 1, "local_broker")


def told(world, client):
    """The trades and bars that a client has been told since it subscribed."""
    trades = all_trades(world, client)
    client.ask("Ping", "Pong")
    return trades, bars_of(client)


def test_the_past_of_the_live_market_is_what_was_told(world):
    """C7. Since somebody subscribed, and to who comes while somebody does."""
    with world.client() as first, world.client() as late:
        stream(world, first)
        trade(world, *(f"10:0{minute}:{second}0" for minute in range(4) for second in range(3)))
        trades, bars = told(world, first)
        assert len(trades) == 11 and len(bars) == 3
        late.ask("Subscribe", "Subscribed", venue="local_broker", ticker=TICKER)
        assert past(late) == past(first) == (trades, bars)
        trade(world, "10:04:00", "10:04:10")
        now = told(world, first)
        # What comes joins it.
        assert past(late) == now == (trades + trades_of(late), bars + bars_of(late))


def test_nothing_is_told_of_before_the_first_subscription(world):
    """While somebody subscribes the past is kept; it ends with the last of them."""
    with world.client() as first, world.client() as other:
        stream(world, first)
        other.ask("Subscribe", "Subscribed", venue="local_broker", ticker=TICKER)
        trade(world, "10:00:00", "10:00:10", "10:01:00", "10:01:10")
        known = told(world, first)
        unit = {"venue": "local_broker", "ticker": TICKER}
        first.ask("Unsubscribe", "Unsubscribed", **unit)
        first.ask("Subscribe", "Subscribed", **unit)
        assert past(first) == known and all(known)
        first.ask("Unsubscribe", "Unsubscribed", **unit)
        other.ask("Unsubscribe", "Unsubscribed", **unit)
        for client in (first, other):
            client.ask("Subscribe", "Subscribed", **unit)
            assert past(client) == ([], [])
