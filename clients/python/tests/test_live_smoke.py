"""The smoke check: the same strategies on paper at the simulated gateway that plays a trades file, and in a replay of
that file. And the compatibility rules of live and replay (specification 2, Strategy compatibility)."""

import csv
import gzip
import json
import os
import subprocess

import kumiki
import pytest
from conftest import program
from engine_process import CASH, EXECUTION_FLAGS, component
from plain_client import PATIENCE
from test_live_paper import DAY, Paper, begin

#: How the gateway plays the file: as fast as it can, once the strategy is there.
PLAYED = ("--date", DAY, "--speed", "max", "--market-begins", "held")
PARAMETERS = {"buy-and-hold": {"quantity": 200}, "sma-cross": {"fast": 5, "slow": 20, "quantity": 100}}
#: The gateway tells whole seconds. Like a live market's milliseconds they are coarser than a file's microseconds.
SECOND, MILLISECOND = 10**9, 10**6


def kumiki_does(folder, *words):
    """Runs the program in a folder."""
    environment = {**os.environ, "KUMIKI_CACHE": str(folder / "cache")}
    return subprocess.run([program(), *map(str, words)], check=True, cwd=folder, env=environment, timeout=PATIENCE,
                          capture_output=True, text=True).stdout


def replayed(folder, strategy, parameters):
    """Replays a strategy over the folder's file with the execution of the runs on paper; gives the run's folder."""
    words = [word for name, value in parameters.items() for word in ("--param", f"{name}={value}")]
    kumiki_does(folder, "replay", "run", component(strategy), "--data", "data", "--instrument", "7203.TSE",
                "--cash", CASH, "--out", "replay", *words, *EXECUTION_FLAGS)
    return folder / "replay"


def table(run, name):
    """The rows of a table of a run."""
    with (run / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def seconds_of(text):
    """09:00:05.235862 in nanoseconds of the day."""
    hours, minutes, seconds = text.split(":")
    whole, part = seconds.split(".")
    return (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * SECOND + int(part) * 1_000


def of_day(nanos):
    """A time since 1970 as nanoseconds of the day in Japan."""
    return (int(nanos) + 9 * 3600 * SECOND) % (24 * 3600 * SECOND)


def file_rows(folder):
    """The trades of the folder's file: time of the day, price in 1/10,000 yen, shares."""
    path, = (folder / "data").glob("equities_trades_*.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [(seconds_of(row["Time"]), round(float(row["Price"]) * 10_000), int(row["TradingVolume"]))
                for row in csv.DictReader(file)]


def write_rows(folder, rows):
    """A trades file of the day with these times, prices and shares."""
    (folder / "data").mkdir(parents=True)
    lines = ["Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId"]
    lines += [f"{DAY},72030,{time},01,{price},{shares},{number:012}"
              for number, (time, price, shares) in enumerate(rows, 1)]
    with gzip.open(folder / "data" / f"equities_trades_{DAY[:7].replace('-', '')}.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")


def journal(run):
    """The trades of a run's journal, and for each order the number of the trade that it answers, and its side."""
    rows, orders = [], []
    for path in sorted(run.glob("journal-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line[17:])
            if "row" in record:
                trade = record["row"]["trade"]
                rows.append((of_day(trade["ts_event"]), trade["price"], trade["quantity"]))
            for action in record.get("call", {}).get("answer", {}).get("actions", []):
                if "submit" in action.get("order", {}):
                    orders.append((len(rows) - 1, action["order"]["submit"]["side"]))
    return rows, orders


def coarse(rows, to):
    """The rows with their times cut to a precision."""
    return [(time // to * to, price, shares) for time, price, shares in rows]


def merged(rows, to=MILLISECOND):
    """The rows at a precision, where those of one time and price in a row are one."""
    out = []
    for time, price, shares in coarse(rows, to):
        if out and out[-1][:2] == (time, price):
            out[-1] = (time, price, out[-1][2] + shares)
        else:
            out.append((time, price, shares))
    return out


def direction(run):
    """The side and size of the position at the end of a run."""
    return sum(int(row["quantity"]) * (1 if row["side"] == "BUY" else -1) for row in table(run, "fills"))


def told(run):
    """The side, shares and price of each fill of a run."""
    return [(row["side"], row["quantity"], float(row["price"])) for row in table(run, "fills")]


def on_paper(world, one, strategy, play, rows, **how):
    """Runs a strategy on paper until it got so many rows that `play` makes; gives the run's folder."""
    run, _ = begin(one, strategy, initial_cash=CASH, **how)
    world.until(lambda: one.venue_state().push == "Streaming", "it streams")
    world.registers("7203")
    # A frame before the first trade of the day: so the first trade is the opening auction, and is given (P55).
    world.gateway.control({"do": "book", "symbol": "7203"})
    play()
    world.has_seen(one, rows)
    assert one.stop().rows_done == rows, "none is invented"
    return world.engine.cache / "runs" / run.run_id


@pytest.mark.parametrize("strategy", ["buy-and-hold", "sma-cross"])
def test_smoke_a_strategy_on_paper_and_in_a_replay_of_the_same_file(tmp_path, strategy):
    """Equal inputs, so it decides at the same trades, and the fills and the position are the same."""
    kumiki_does(tmp_path, "data", "sample", "--out", "data", "--days", 1, "--from", DAY, "--trades-per-day", 600,
                "--seed", 5)
    rows = file_rows(tmp_path)
    market = ("--data", tmp_path / "data", *PLAYED)
    with Paper(tmp_path / "world", gateway=("--first-day", "of-files"), market=market) as world:
        with world.session() as one:
            one.login()
            parameters = PARAMETERS[strategy]
            paper = on_paper(world, one, strategy, lambda: world.gateway.control({"do": "market", "run": True}),
                                len(rows), strategy_init_kwargs=parameters)
            given, orders = journal(paper)
    assert given == coarse(rows, SECOND)
    replay = replayed(tmp_path, strategy, parameters)

    assert len(orders) == 1 if strategy == "buy-and-hold" else len(orders) > 5
    decided = [(row["side"], of_day(row["ts_submitted_ns"])) for row in table(replay, "orders")]
    assert [side for side, _ in decided] == [side for _, side in orders]
    assert [time for _, time in decided] == [rows[number][0] for number, _ in orders]
    assert told(paper) == told(replay)
    assert direction(paper) == direction(replay)


# --- What is coarser on a live market.


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """A market that trades when it is told to."""
    with Paper(tmp_path_factory.mktemp("still")) as world:
        with world.session() as one:
            one.login()
        yield world


@pytest.fixture
def one(still):
    """A session at that market."""
    with still.session(timeout=10) as session:
        yield session


@pytest.mark.parametrize("strategy", ["buy-and-hold", "sma-cross"])
def test_compatibility_identical_trades_come_as_one_and_times_are_coarser(still, one, tmp_path, strategy):
    """The file has several rows where the gateway tells one trade. The inputs are equal once the file's rows are
    merged, and the position has the same direction."""
    prices = [2850] * 6 + [2851, 2852, 2853, 2854] * 2 + [2860] * 6
    rows = []
    for second, price in enumerate(prices, still.clock + 1):
        at = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        rows.append((f"{at}.000123", price, 100))
        if second % 3 == 0:
            rows += [(f"{at}.000{part}", price, 200) for part in (456, 789)]
    write_rows(tmp_path, rows)
    one_each = merged(file_rows(tmp_path))
    assert len(rows) > len(one_each) == len(prices)

    def play():
        for _, price, shares in one_each:
            still.tick(str(price // 10_000), quantity=shares)

    parameters = {"quantity": 100, **({"fast": 2, "slow": 4} if strategy == "sma-cross" else {})}
    paper = on_paper(still, one, strategy, play, len(one_each), strategy_init_kwargs=parameters)
    given, _ = journal(paper)
    assert given == one_each, "equal at milliseconds"
    replay = replayed(tmp_path, strategy, parameters)
    assert direction(paper) == direction(replay) > 0
    assert [side for side, *_ in told(paper)] == [side for side, *_ in told(replay)]


# --- Callbacks.


def number(value):
    """A number of a module, as LEB128."""
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def with_callback(folder, name):
    """The component `empty` with a module inside that exports a function of this name."""
    def section(kind, content):
        return bytes([kind]) + number(len(content)) + content

    export = b"\x01" + number(len(name)) + name.encode() + b"\x00\x00"
    module = (b"\0asm\x01\0\0\0" + section(1, b"\x01\x60\x00\x00") + section(3, b"\x01\x00") + section(7, export)
              + section(10, b"\x01\x02\x00\x0b"))
    with open(component("empty"), "rb") as file:
        whole = file.read() + section(1, module)
    path = folder / f"{name}.wasm"
    path.write_bytes(whole)
    return path


def test_compatibility_forbidden_callbacks_are_refused_at_the_start(still, one, tmp_path):
    """And nothing is left behind (P84), also after a run. A callback of another name is nobody's business."""
    begin(one, "empty")
    last = one.stop()
    before = still.folders()
    for name in ("on-quote-tick", "on_quote_tick", "on_order_book_deltas", "onOrderBook"):
        with pytest.raises(kumiki.StrategyLoadError, match=f"exports `{name}`") as refused:
            begin(one, strategy_file=str(with_callback(tmp_path, name)))
        assert refused.value.code == "strategy_load_failed"
        info = one.session()
        assert (info.state, info.last_run.run_id, info.last_run.status) == ("Idle", last.run_id, "stopped")
        assert still.folders() == before
    still.registers()
    begin(one, strategy_file=str(with_callback(tmp_path, "on-trade-tick")))
    assert one.stop().status == "stopped"


# --- The aggressor side.


@pytest.fixture
def asked(still, one):
    """The folder of a run of a strategy that asks for the aggressor side of each trade, and notes the first answer."""
    run, _ = begin(one, "asks-aggressor")
    still.streams(one)
    still.tick("2851", "2852", "2853")
    still.has_seen(one, 3)
    one.stop()
    return still.engine.cache / "runs" / run.run_id


def asks_in_replay(folder):
    """The lines of the log of the same strategy in a replay."""
    write_rows(folder, [(f"09:00:{second:02}.500000", 2850 + second, 100) for second in range(1, 5)])
    return table(replayed(folder, "asks-aggressor", {}), "log")


def test_compatibility_the_aggressor_side_is_known_on_paper_only(asked, tmp_path):
    assert {"Buyer", "Seller"} & {row["message"] for row in table(asked, "log")}
    assert "NoAggressor" in [row["message"] for row in asks_in_replay(tmp_path)]
    check = kumiki_does(tmp_path, "strategy", "check", component("asks-aggressor"))
    assert "used; replay never knows it" in check


def test_compatibility_a_start_warns_of_a_strategy_that_asks_for_the_aggressor_side(asked, still):
    """In the log of the run or that of the engine."""
    lines = [row["message"] for row in table(asked, "log") if row["level"] == "WARN"]
    lines += [line for line in still.log().splitlines() if " warning: " in line]
    assert [line for line in lines if "aggressor" in line], lines
