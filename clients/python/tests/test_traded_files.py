"""What files of trades become on their way through the gateway's push, the dialect's component and the engine: each trade
that a client is told is a row of the file, and none is missing."""

import csv
import decimal
import gzip
import pathlib

import pytest

from local_world import SPEC, VENDOR, LocalWorld, all_trades, venue_state
from plain_client import Client
from test_recording import ran

REAL = pathlib.Path(__file__).parents[4] / "shared" / "data" / "trades_retimed"


def rows_of(folder, code):
    """Price and quantity of each row of the first file, in its order, by the days."""
    days = {}
    with gzip.open(min(folder.glob("equities_trades_*.csv.gz")), "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["Code"] == f"{code}0":
                of_day = days.setdefault(row["Date"], [])
                of_day.append((decimal.Decimal(row["Price"]), decimal.Decimal(row["TradingVolume"])))
    return days


def traded(tmp_path, folder, code, day, form):
    """What a client is told of a day's trades, as prices and quantities."""
    market = ("--data", folder, "--cache-dir", tmp_path / "cache", "--instrument", code, "--date", day, "--speed", "max",
              "--market-begins", "held", "--board-only", "200")
    with (
        LocalWorld(tmp_path / "world", form=form, market=market) as world,
        Client(world.engine.port, world.engine.token, mode="live") as client,
    ):
        client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        client.ask("Subscribe", "Subscribed", venue="local_broker", ticker=code)
        world.until(lambda: venue_state(client)["push"] == "Streaming" and world.registered() == [code], "it streams")
        world.gateway.control({"do": "market", "run": True})
        world.until(lambda: world.gateway.view()["market_over"], "the day is over")
        told = all_trades(world, client, code)
        boards = client.since(0, "DepthSnapshot")
        volume = world.gateway.view()["symbols"][code]["volume"]
        numbers = [row["sequence_id"] for row in told]
        assert numbers == sorted(set(numbers))
        assert {row["side"] for row in told} <= {"buy", "sell"} and boards
        return [(decimal.Decimal(row["price"]), decimal.Decimal(row["qty"])) for row in told], volume


@pytest.mark.parametrize("form", [SPEC, VENDOR])
def test_each_trade_of_a_real_day_is_told(tmp_path, form):
    """The first frame's trade is none: nothing is known of what was traded before it (rule 1)."""
    if not REAL.is_dir():
        pytest.skip(f"no real trades at {REAL}")
    rows = rows_of(REAL, "6702")["2013-10-07"]
    assert len(rows) == 18_765
    told, volume = traded(tmp_path, REAL, "6702", "2013-10-07", form)
    assert told == rows[1:]
    assert volume == sum(quantity for _, quantity in rows)


def test_each_trade_of_the_sample_is_told(tmp_path):
    """Likewise of what `kumiki data sample` makes."""
    folder = tmp_path / "data"
    ran("data", "sample", "--out", folder, "--instrument", "7203.TSE", "--days", "1", "--seed", "7")
    [(day, rows)] = rows_of(folder, "7203").items()
    told, volume = traded(tmp_path, folder, "7203", day, SPEC)
    assert rows and told == rows[1:]
    assert volume == sum(quantity for _, quantity in rows)
