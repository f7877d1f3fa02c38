"""What depends on the time of day, through the engine: a session of the exchange that is recorded and replayed, midnight in
Japan, and the forced logout of the gateway."""

import csv
import datetime
import gzip
import json

from local_world import LocalWorld, all_trades, stream, trades_of, venue_state
from plain_client import Client
from shifted_clock import TUESDAY, WEDNESDAY, shifted_to
from test_recording import ran


def engine_at(day, time):
    """The environment of an engine that starts at that time."""
    return shifted_to(day, datetime.time.fromisoformat(time))


def test_what_was_recorded_live_is_replayed(tmp_path):
    """The strategy of the replay gets the trades that a client got, in their order."""
    recordings = tmp_path / "recordings"
    with (
        LocalWorld(tmp_path / "world", "record=true", f"record_dir={recordings}",
                   environment=engine_at(TUESDAY, "10:00")) as world,
        Client(world.engine.port, world.engine.token, mode="live") as client,
    ):
        stream(world, client)
        for number in range(60):
            world.gateway.trade(str(2850 + number % 7), 100 * (1 + number % 3))
        told = all_trades(world, client)
        assert world.engine.end() == 0
    assert len(told) == 59
    assert [path.name for path in (recordings / "trades").iterdir()] == ["equities_trades_20261201.csv.gz"]
    ran("replay", "run", "sma-cross", "--data", recordings / "trades", "--instrument", "7203.TSE", "--from", TUESDAY,
        "--to", TUESDAY, "--param", "fast=2", "--param", "slow=5", "--out", tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["status"], [file["rows"] for file in manifest["inputs"]]) == ("completed", [len(told)])
    with gzip.open(recordings / "trades" / "equities_trades_20261201.csv.gz", "rt", encoding="utf-8") as file:
        found = [(float(row["Price"]), float(row["TradingVolume"])) for row in csv.DictReader(file)]
    assert found == [(float(row["price"]), float(row["qty"])) for row in told]


def test_midnight_in_japan(tmp_path):
    """A session is a login and a day there: the numbers begin again, and the first frame tells of no trade (P54)."""
    recordings = tmp_path / "recordings"
    with (
        LocalWorld(tmp_path / "world", "record=true", f"record_dir={recordings}",
                   environment=engine_at(TUESDAY, "23:59:50")) as world,
        Client(world.engine.port, world.engine.token, mode="live") as client,
    ):
        stream(world, client)
        sessions = []

        def is_next_day():
            world.gateway.trade("2850", 100)
            board = client.wait("DepthSnapshot", since=len(client.events))
            sessions.append((board["stream_session_id"], board["sequence_id"]))
            return sessions[-1][0] != sessions[0][0]

        world.until(is_next_day, "another day has begun")
        assert sessions[-1][1] == 1, sessions
        world.gateway.trade("2851", 300)
        client.wait("Trades", where=lambda event: event["stream_session_id"] == sessions[-1][0])
        client.take_all()
        events = [event for event in client.since(0, "Trades") if event["stream_session_id"] == sessions[-1][0]]
        assert [(row["qty"], row.get("after_gap")) for event in events for row in event["trades"]] == [("300", None)]
        assert venue_state(client)["state"] == "Ready"
        assert world.engine.end() == 0
    assert sorted(path.name for path in (recordings / "board").iterdir()) == [
        f"{day:%Y%m%d}" for day in (TUESDAY, WEDNESDAY)]


def test_the_forced_logout_as_it_is_by_default(tmp_path):
    """From 05:00 no board is shown, whatever the gateway pushes; from 06:30 on boards are shown again (P47)."""
    for time, shows in (("04:50", True), ("05:10", False), ("06:20", False), ("06:35", True)):
        with (
            LocalWorld(tmp_path / time.replace(":", ""), "forced_logout=05:00-06:30",
                       environment=engine_at(WEDNESDAY, time)) as world,
            Client(world.engine.port, world.engine.token, mode="live") as client,
        ):
            stream(world, client)
            state = venue_state(client)
            assert (state["state"], state.get("code")) == ("Ready", None if shows else "forced_logout"), time
            for _ in range(3):
                world.gateway.trade("2850", 100)
            if shows:
                client.wait("Trades")
            else:
                # The first is told at once.
                world.until(lambda: "1 while the gateway is logged out" in world.log(), "a frame came and was dropped")
                client.ask("Ping", "Pong")
                assert client.since(0, "DepthSnapshot") == trades_of(client) == []
