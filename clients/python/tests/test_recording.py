"""What an engine records of the simulated gateway: published and asked as its users do, refused where it cannot begin,
and told to everybody where it stops."""

import json
import subprocess
import sys
from decimal import Decimal

import jsonschema
import pytest
from conftest import program
from local_world import LocalWorld, stream
from plain_client import PATIENCE, SCHEMAS, Client
from web_broker import refused_start

#: Trades that the gateway makes; of the first frame comes none (P54).
COUNT = 300


def ran(*words):
    """The standard output of a program that does what it is asked."""
    ended = subprocess.run(list(map(str, (program(), *words))), capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended
    return ended.stdout


def asked(data, sql):
    """The rows of an answer of `kumiki sql`."""
    return [json.loads(line) for line in ran("sql", "--prices", data, "--format", "jsonl", sql).splitlines()]


def test_what_was_recorded_is_published_and_asked(tmp_path):
    recordings, data = tmp_path / "recordings", tmp_path / "prices"
    world = LocalWorld(tmp_path / "world", "record=true", f"record_dir={recordings}")
    try:
        with Client(world.engine.port, world.engine.token, mode="live") as client:
            stream(world, client)
            world.gateway.trade("2850", 100, count=COUNT // 2 + 1)
            world.gateway.trade("2851.5", 200, count=COUNT // 2)
            rows = []
            while len(rows) < COUNT:
                event = client.next()
                rows += event["trades"] if event["event"] == "Trades" else []
            client.take_all()
            boards = {event["sequence_id"] for event in client.events if event["event"] == "DepthSnapshot"}
        assert world.engine.end() == 0
    finally:
        world.close()
    told = json.loads(ran("data", "boards", "--recordings", recordings, "--prices", data, "--format", "json"))
    jsonschema.validate(told, json.loads((SCHEMAS / "update-board.json").read_text(encoding="utf-8")))
    assert (told["trades"], told["written"], told["damaged"]) == (COUNT, 1, []), told
    columns = "price, qty, side, side_rule, sequence_id, timestamp_ms, after_gap"
    found = [
        (Decimal(str(row["price"])), Decimal(str(row["qty"])), *(row[name] for name in columns.split(", ")[2:-1]),
         row["after_gap"] == "true")
        for row in asked(data, f"SELECT {columns} FROM board_trades WHERE code = '7203' ORDER BY sequence_id")
    ]
    assert found == [
        (Decimal(row["price"]), Decimal(row["qty"]), row["side"], row["side_rule"], row["sequence_id"], row["ts_ms"],
         row.get("after_gap", False))
        for row in rows
    ]
    kept = [row["sequence_id"] for row in asked(data, "SELECT sequence_id FROM board_depth")]
    # A client that is behind is told the newest board only; all of them are recorded.
    assert len(kept) == len(set(kept)) == told["depth"] and boards <= set(kept)


@pytest.mark.parametrize("wrong", ["in use", "a file", "a file in it"])
def test_a_recording_that_cannot_begin_is_refused_at_the_start(tmp_path, wrong):
    recordings, second, world = tmp_path / "recordings", tmp_path / "second", None
    second.mkdir()
    if wrong == "in use":
        world = LocalWorld(tmp_path / "world", "record=true", f"record_dir={recordings}")
    elif wrong == "a file":
        recordings.write_text("in the way")
    else:
        recordings.mkdir()
        (recordings / "board").write_text("in the way")
    code, told = refused_start(second, "--local-broker", "record=true", "--local-broker", f"record_dir={recordings}")
    if world is not None:
        world.close()
    assert code == 21, told
    assert f"cannot record boards in {recordings}: " in told, told
    assert "name another folder with record_dir" in told, told


@pytest.mark.parametrize("setting", ["record_dir=", "dialect="])
def test_an_empty_setting_is_refused(tmp_path, setting):
    """An empty folder would be the working directory."""
    code, told = refused_start(tmp_path, "--local-broker", "record=true", "--local-broker", setting)
    assert code == 2 and "it takes a name or a path that is not empty" in told, told


@pytest.mark.skipif(sys.platform != "linux", reason="sets a limit of another process")
def test_that_it_stopped_is_told_to_all_and_the_engine_goes_on(tmp_path):
    """Files that may not grow stand for a full disk. SIGXFSZ ends nothing."""
    import resource
    recordings = tmp_path / "recordings"
    world = LocalWorld(tmp_path / "world", "record=true", f"record_dir={recordings}")
    try:
        first = Client(world.engine.port, world.engine.token, mode="live")
        stream(world, first)
        resource.prlimit(world.engine.process.pid, resource.RLIMIT_FSIZE, (1 << 15, 1 << 15))
        world.gateway.trade("2850", 100, count=1_000)
        stopped = first.wait("EngineError", code="recording_stopped")
        assert "File too large" in stopped["message"], stopped
        assert stopped["message"].startswith("the engine no longer records boards: cannot "), stopped
        # One that comes later knows it before it asks for anything, and gets boards as ever.
        with Client(world.engine.port, world.engine.token, mode="live") as later:
            assert later.next() == stopped
            later.ask("Subscribe", "Subscribed", venue="local_broker", ticker="7203")
            since = len(later.events)
            world.gateway.trade("2860", 100, count=2)
            later.wait("Trades", since=since)
            later.wait("DepthSnapshot", since=since, last_price="2860")
        first.socket.close()
        assert world.engine.end() == 0
    finally:
        world.close()


def test_a_bad_journal_is_set_aside_and_the_engine_records(tmp_path):
    recordings = tmp_path / "recordings"
    journal = recordings / "board" / "20260105" / "000001.journal"
    journal.parent.mkdir(parents=True)
    journal.write_bytes(bytes(4096))
    world = LocalWorld(tmp_path / "world", "record=true", f"record_dir={recordings}")
    try:
        aside = journal.with_name("000001.journal.unread")
        assert aside.read_bytes() == bytes(4096) and not journal.exists()
        assert "000001.journal.unread" in world.log(), world.log()
        with Client(world.engine.port, world.engine.token, mode="live") as client:
            stream(world, client)
            world.gateway.trade("2850", 100, count=3)
            client.wait("Trades")
        assert world.engine.end() == 0
    finally:
        world.close()
    assert len(list((recordings / "board").glob("*/trades-000001.parquet"))) == 1
