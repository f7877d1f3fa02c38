"""Strategies on paper, by the session of the package: the real engine at the simulated gateway of the local broker.
What the package does with each event and refusal: `test_live_run.py`."""

import asyncio
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import kumiki
import kumiki.aio
import pytest
from conftest import ROOT, SOURCE, program
from engine_process import EXECUTION, NEEDS_PANDAS, OWN_CONSOLE, component, interrupt, interrupt_this
from local_world import PASSWORD, QUICK, LocalWorld, fake_pinentry, logged_out
from plain_client import PATIENCE
from web_broker import Trading

try:
    import resource
except ImportError:
    # A system without limits of files.
    resource = None

#: What a run is started with, where a test says nothing else.
HOW = {"instrument_id": "7203.TSE", "max_qty": 1_000, "max_notional_jpy": 10_000_000, "execution": EXECUTION}
#: A day that the clock of this machine does not reach, so that no close and no end of a minute of it has passed.
DAY = "2099-01-08"
#: What is said of a journal without an end.
NOT_ENDED = "the run has not ended: it still runs, or it was killed"


@pytest.fixture(scope="module", autouse=True)
def live_engine(tmp_path_factory):
    """Skips these tests where the engine runs no strategies live."""
    world = LocalWorld(tmp_path_factory.mktemp("probe"))
    with world, world.client() as client:
        if not client.ready["capabilities"]["strategy_engine"]["live"]:
            pytest.skip("the engine runs no strategies live")


class Paper(LocalWorld):
    """A gateway and an engine, and a market that trades a second after another."""

    def __init__(self, folder, *settings, **how):
        super().__init__(folder, *settings, **{"gateway": ("--first-day", DAY), **how})
        self.clock = 9 * 3600

    def session(self, **other):
        return kumiki.LiveSession(venue="local_broker", attach=self.config, **other)

    def streams(self, one, *tickers):
        """Waits until what is traded from now on is pushed, and pushes the first frame of each, which is no trade."""
        tickers = list(tickers or ["7203"])
        self.until(lambda: one.venue_state().push == "Streaming", "it streams")
        self.until(lambda: set(tickers) <= set(self.registered()), "the symbols are registered")
        for ticker in tickers:
            self.tick("2850", symbol=ticker)

    def tick(self, *prices, after=1, **other):
        """Trades of the market, so many seconds one after another."""
        for price in prices:
            self.clock += after
            hours, seconds = divmod(self.clock, 3600)
            at = f"{hours:02}:{seconds // 60:02}:{seconds % 60:02}"
            self.gateway.trade(price, time=at, **other)

    def has_seen(self, one, rows):
        """Waits until the strategy got so many rows."""
        self.until(lambda: one.session().rows_done >= rows, f"{rows} rows")

    def registers(self, *tickers):
        """Waits until the gateway pushes these symbols and no other."""
        self.until(lambda: self.registered() == list(tickers), f"{tickers} are registered")

    def folders(self):
        """The folders of runs."""
        runs = self.engine.cache / "runs"
        return sorted(runs.iterdir()) if runs.is_dir() else []


@pytest.fixture
def world(tmp_path):
    one = Paper(tmp_path)
    yield one
    one.close()


@pytest.fixture
def one(world):
    """A session that is logged in at the gateway."""
    with world.session() as session:
        session.login()
        yield session


def begin(one, strategy="buy-and-hold", **how):
    """Starts a strategy, and gives the run and its events."""
    events = []
    run = one.run(**{**HOW, "strategy_file": component(strategy), **how}, on_event=events.append, wait=False)
    return run, events


def names(events, *wanted):
    return [event for event in events if event.name in wanted]


def replay(command, folder, *more):
    """A command of `kumiki replay` over the folder of a run."""
    asked = [program(), "replay", command, folder, *more]
    return subprocess.run(list(map(str, asked)), capture_output=True, text=True, timeout=PATIENCE)


def outcome(result):
    """What must be equal of two runs: side, shares and price of each fill."""
    return [(row.side, int(row.quantity), row.price) for row in result.fills().itertuples()]


# --- A run.


def test_p81_what_the_engine_says_that_it_can(world):
    with world.session() as one:
        assert one.capabilities["strategy_engine"] == {"live": True, "replay": False}


def test_p81_p84_an_engine_may_run_none(tmp_path):
    """By its settings; it says so before it looks at those of the run."""
    settings = tmp_path / "kumiki.toml"
    settings.write_text("[engine]\nlive_engine = false\n", encoding="utf-8")
    engine = Trading(tmp_path / "engine", None, "--config", settings, form=None)
    try:
        with kumiki.LiveSession(venue="local_broker", attach=engine.config) as one:
            assert one.capabilities["strategy_engine"] == {"live": False, "replay": False}
            for how in ({}, {"max_qty": 0}):
                with pytest.raises(kumiki.LiveEngineUnavailableError) as refused:
                    one.run(**{**HOW, "strategy_file": component("empty"), **how})
                assert refused.value.code == "live_engine_unavailable"
    finally:
        engine.kill()


@NEEDS_PANDAS
def test_p85_p87_p119_a_run_on_paper(world, one):
    """From its start to its frames, with a web broker that nobody has logged in at."""
    run, events = begin(one, execution="strict")
    assert one.status == "running" and run.execution["model"] == "strict"
    world.streams(one)
    world.tick("2850", "2851", "2852", "2853")
    world.has_seen(one, 4)
    info = one.session()
    assert (info.state, info.run_id, info.account_id) == ("Running", run.run_id, "PAPER")
    assert info.instruments == [] and (info.multiplier, info.cash, info.buying_power, info.equity) == (None,) * 4
    position, = info.positions
    assert (position.instrument_id, position.qty, position.side) == ("7203.TSE", 100, "BUY")
    world.until(lambda: len(names(events, "BuyingPowerUpdated")) > 2, "it is told once a second")
    result = one.stop()
    assert run.result(timeout=PATIENCE) == result

    assert events[0].name == "EngineStarted" and events[-1].name == "EngineStopped"
    assert (events[0].account_id, events[0].multiplier) == ("PAPER", 1)
    assert not names(events, "ReplayStopped", "ReplayBuyingPower")
    order = [event for event in events if event.name.startswith("Order")]
    assert [event.name for event in order] == ["OrderSubmitted", "OrderAccepted", "OrderFilled"]
    for event in order:
        assert (event.venue, event.origin, event.strategy_id) == ("paper", "strategy", "live-strategy"), event
        assert (event.instrument_id, event.order_side) == ("7203.TSE", "BUY")
    fill = events.index(order[-1])
    assert [event.name for event in events[fill + 1:fill + 3]] == ["ExecutionMarker", "PositionOpened"]
    assert all(event.venue == "paper" for event in names(events, "BuyingPowerUpdated", "PositionOpened"))
    assert names(events, "StrategySignal")

    assert (result.status, result.rows_done) == ("stopped", 4)
    assert result.final_equity == 100 * (2853 - order[-1].last_price)
    fills = result.fills()
    assert list(fills["side"]) == ["BUY"] and fills["price"][0] == order[-1].last_price
    assert list(result.orders()["status"]) == ["FILLED"] and len(result.equity()) == 1
    assert len(result.table("signals")) == len(result.table("narrative")) == 1
    assert f"profit or loss {result.final_equity:,} yen" in str(result)


def test_p111_p112_the_folder_of_a_run(world, one):
    """It is there from the start on, partial until the end, with the component and a journal."""
    run, _ = begin(one)
    folder, = world.folders()
    manifest = folder / "manifest.json"
    assert json.loads(manifest.read_text(encoding="utf-8"))["partial"] is True
    world.streams(one)
    world.tick("2850", "2851")
    world.has_seen(one, 2)
    result = one.stop()
    assert result.run_dir == folder and result.run_dir.name == run.run_id
    told = result.manifest()
    assert told["partial"] is False and told["run_kind"] == "paper"
    assert (folder / "strategy.wasm").read_bytes() == pathlib.Path(component("buy-and-hold")).read_bytes()
    assert list(folder.glob("journal-????????*"))
    for name in ("orders", "fills", "signals", "narrative", "log", "round_trips"):
        assert (folder / f"{name}.parquet").is_file(), name


def newest(folder):
    """The file of a journal for the market's day; the first one is of the day on which the engine started it."""
    return max(folder.glob("journal-*"))


@NEEDS_PANDAS
def test_p113_p120_the_journal_gives_the_same_run_again(world, one):
    run, _ = begin(one, "sma-cross", strategy_init_kwargs={"fast": 2, "slow": 4})
    world.streams(one)
    prices = [str(price) for price in (2850, 2852, 2854, 2851, 2848, 2846, 2849, 2853, 2857, 2852, 2847, 2844)]
    world.tick(*prices)
    world.has_seen(one, len(prices))
    result = one.stop()
    sides = [side for side, *_ in outcome(result)]
    assert len(sides) > 2 and sides[0::2] == ["BUY"] * len(sides[0::2]) and "SELL" in sides
    for command in ("journal", "compare-live"):
        ended = replay(command, result.run_dir, "--format", "json")
        assert ended.returncode == 0 and NOT_ENDED not in ended.stderr, ended
    assert run.done()
    # The run's own orders, one by one, by its own model and by another one.
    ended = replay("compare-live", result.run_dir, "--execution", "realistic", "--execution", "optimistic",
                   "--format", "json")
    assert ended.returncode == 0, ended
    compared = json.loads(ended.stdout)
    assert compared["identical"] is True and compared["ended"] is True
    for model in compared["models"]:
        assert (model["orders"], model["rejected"]) == (len(sides), 0), model
        assert model["fills"]["recorded"] == len(sides), model
    # A line that is taken out, wherever it was.
    journal = newest(result.run_dir)
    lines = journal.read_bytes().splitlines(keepends=True)
    assert lines[-1].endswith(b' {"host":"end"}\n')
    for taken in (1, len(lines) // 2, len(lines) - 1):
        journal.write_bytes(b"".join(lines[:taken] + lines[taken + 1:]))
        for command in ("journal", "compare-live"):
            ended = replay(command, result.run_dir)
            assert ended.returncode == 5 and "damaged" in ended.stderr, (taken, ended)


def test_p113_p120_the_journal_of_a_run_that_goes_on_is_read(world, one):
    """As far as it is written, while the run goes on and after a kill. What is made at the end is not there."""
    begin(one, "orders-every-tick")
    world.streams(one)
    world.tick("2850", "2851", "2852", "2853")
    world.has_seen(one, 4)
    folder, = world.folders()
    world.until(lambda: newest(folder).read_bytes().count(b'"input":"row"') >= 4, "it is on the disk")

    def reads():
        for command in ("journal", "compare-live"):
            ended = replay(command, folder)
            assert ended.returncode == 0 and NOT_ENDED in ended.stdout, ended
            ended = replay(command, folder, "--format", "json")
            assert ended.returncode == 0 and json.loads(ended.stdout)["identical"] is True, ended
        ended = replay("report", folder)
        assert ended.returncode == 1 and "it still runs, or it was killed" in ended.stderr, ended
        assert "`kumiki replay journal`" in ended.stderr and not (folder / "report.html").exists()

    reads()
    world.engine.kill()
    reads()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit")
def test_p128_a_folder_that_takes_no_more_ends_the_run_with_a_journal_fault(world, one):
    run, events = begin(one, "orders-every-tick")
    world.streams(one)
    folder, = world.folders()
    # So much that the last manifest still has room.
    while newest(folder).stat().st_size < 40_000:
        world.tick("2850", "2851", "2852", "2853")
    journal = newest(folder)
    pid, free = world.engine.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (journal.stat().st_size, free[1]))
    try:
        world.tick("2850", "2851")
        with pytest.raises(kumiki.StrategyFaultError) as failed:
            run.result(timeout=PATIENCE)
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, free)
    result = failed.value.result
    assert (result.status, result.fault_code) == ("fault", "strategy_fault")
    assert result.fault_message.startswith("JOURNAL: ") and events[-1].name == "EngineStopped", result
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["status"], manifest["partial"]) == ("failed", False), manifest
    assert manifest["fault"].startswith("JOURNAL: ") and "File too large" in manifest["fault"], manifest
    # What was written is no damaged journal.
    ended = replay("journal", folder, "--format", "json")
    assert ended.returncode == 0 and json.loads(ended.stdout)["identical"] is True, ended
    # The engine goes on.
    begin(one)
    assert one.stop().status == "stopped"


def test_p90_bars_of_a_minute_in_place_of_trades(world, one):
    run, events = begin(one, granularity="Minute")
    world.streams(one)
    world.tick("2850", "2855", "2845", after=1)
    world.tick("2850", "2851", "2852", after=60)
    world.has_seen(one, 3)
    result = one.stop()
    assert result.rows_done >= 3 and len(names(events, "OrderFilled")) == 1 and run.result() == result


@NEEDS_PANDAS
def test_several_instruments(world, one):
    ids = ["7203.TSE", "9984.TSE"]
    run, events = begin(one, instrument_id=ids, max_position_qty=100)
    world.streams(one, "7203", "9984")
    for ticker in ("7203", "9984", "7203", "9984"):
        world.tick("2850", symbol=ticker)
    world.until(lambda: len(names(events, "OrderFilled")) == 2, "both are bought")
    result = one.stop()
    assert sorted(result.fills()["instrument_id"]) == ids and run.done()
    world.registers()


# --- Refusals.


def test_p82_p83_settings_that_are_wrong(world, one):
    for field, wrong in {
        "MAX_QTY": {"max_qty": 0}, "MAX_NOTIONAL_JPY": {"max_notional_jpy": 0},
        "MAX_ORDERS_PER_MINUTE": {"max_orders_per_minute": 0}, "MAX_OPEN_ORDERS": {"max_open_orders": 0},
        "MAX_DAILY_LOSS_JPY": {"max_daily_loss_jpy": 0}, "MAX_POSITION_QTY": {"max_position_qty": 0},
        "GRANULARITY": {"granularity": "Daily"}, "INITIAL_CASH": {"initial_cash": 0},
        "INSTRUMENT_ID": {"instrument_id": ""}, "STRATEGY_FILE": {"strategy_file": ""},
    }.items():
        with pytest.raises(kumiki.ValidationError, match=f"^{field}: "):
            one.run(**{**HOW, "strategy_file": component("empty"), **wrong})
    with pytest.raises(kumiki.ValidationError):
        one.run(**{**HOW, "strategy_file": component("empty"), "execution": "kind"})
    assert one.session().state == "Idle" and world.folders() == []
    world.registers()


def test_p84_refusals_leave_nothing_behind(world, frames):
    with world.session() as one:
        with pytest.raises(kumiki.VenueNotReadyError, match="^local_broker: "):
            begin(one)
        one.login()
        with pytest.raises(kumiki.StrategyLoadError):
            one.run(**HOW, strategy_file="nothing-of-that-name")
        with pytest.raises(kumiki.StrategyInitError):
            begin(one, "panics-in-init")
        with pytest.raises(kumiki.StrategyInitError, match="fats"):
            begin(one, "sma-cross", strategy_init_kwargs={"fats": 5})
        assert world.folders() == [] and one.session().state == "Idle"
        world.registers()
        assert not [frame for frame in frames.received if '"event":"EngineStarted"' in frame]
        codes = [str(code) for code in range(1301, 1351)]
        world.gateway.control({"do": "register", "symbols": codes})
        with pytest.raises(kumiki.RegisterFullError):
            begin(one)
        assert one.session().state == "Idle" and world.folders() == []
        world.gateway.control({"do": "unregister", "symbols": codes})
        begin(one)
        with pytest.raises(kumiki.BusyError, match="^StartEngine while Running: "):
            begin(one)
        one.stop()
        with pytest.raises(kumiki.BusyError, match="Idle"):
            one.stop()


# --- Limits.


@pytest.mark.parametrize("strategy, how, prices, word", [
    ("buy-and-hold", {"strategy_init_kwargs": {"quantity": 200}, "max_qty": 100}, "2850 2850", "MAX_QTY"),
    ("buy-and-hold", {"max_notional_jpy": 284_999}, "2850 2850", "MAX_NOTIONAL_JPY"),
    ("buy-and-hold", {"strategy_init_kwargs": {"quantity": 200}, "max_position_qty": 100}, "2850 2850", "MAX_POSITION"),
    ("orders-every-tick", {"max_orders_per_minute": 1}, "2850 2851 2852", "MAX_ORDERS_PER_MINUTE"),
    ("orders-every-tick", {"max_open_orders": 1, "execution": {**EXECUTION, "latency_ns": 30 * 10**9}},
     "2850 2851 2852", "MAX_OPEN_ORDERS"),
    ("orders-every-tick", {"max_daily_loss_jpy": 1_000}, "2850 2850 2800 2800 2800", "MAX_DAILY_LOSS_JPY"),
])
def test_p95_p96_p123_a_limit_rejects_an_order_and_the_run_goes_on(world, one, strategy, how, prices, word):
    run, events = begin(one, strategy, **how)
    world.streams(one)
    rows = prices.split()
    world.tick(*rows)
    world.until(lambda: names(events, "OrderRejected"), f"{word} rejects an order")
    world.has_seen(one, len(rows))
    first = names(events, "OrderRejected")[0]
    assert first.reason_code == "VALIDATION_ERROR" and first.reason_text.startswith(f"{word}: "), first
    assert (first.venue, first.origin) == ("paper", "strategy")
    submitted = {event.client_order_id for event in names(events, "OrderSubmitted")}
    assert first.client_order_id not in submitted, "it was never sent"
    assert not run.done() and one.stop().status == "stopped"


def test_p95_what_equals_a_limit_is_allowed(world, one):
    _, events = begin(one, max_qty=100, max_position_qty=100, max_open_orders=1, max_orders_per_minute=1)
    world.streams(one)
    world.tick("2850", "2850", "2850")
    world.until(lambda: names(events, "OrderFilled", "OrderRejected"), "it is filled")
    assert not names(events, "OrderRejected")
    one.stop()


# --- Ends.


@NEEDS_PANDAS
def test_p86_p89_what_an_end_leaves(world, one):
    """Working orders are cancelled before the end, and what others watch stays registered."""
    with world.session() as other:
        other.subscribe("9984")
        late = {**EXECUTION, "latency_ns": 30 * 10**9}
        _, events = begin(one, execution=late, instrument_id=["7203.TSE", "9984.TSE"])
        world.streams(one, "7203", "9984")
        world.tick("2850", "2850")
        world.until(lambda: names(events, "OrderSubmitted"), "it works")
        result = one.stop()
        assert result.status == "stopped" and events[-1].name == "EngineStopped"
        assert names(events, "OrderCanceled") and not names(events, "OrderFilled", "ReplayStopped")
        assert list(result.orders()["status"]) == ["CANCELED"] and result.final_equity == 0
        assert one.session().state == "Idle"
        world.registers("9984")
        # The next run begins flat.
        begin(one)
        assert one.session().positions == []
        one.stop()


@NEEDS_PANDAS
def test_p110_a_fault_ends_the_run_and_nothing_else(world, one):
    with world.session() as other:
        other.subscribe("9984")
        with one.events("EngineError", timeout=PATIENCE) as errors:
            run, events = begin(one, "panics-in-event", strategy_init_kwargs={"at": 3})
            world.streams(one)
            world.tick("2850", "2851", "2852")
            with pytest.raises(kumiki.StrategyFaultError) as failed:
                run.result(timeout=PATIENCE)
            assert next(errors).code == "strategy_fault"
        result = failed.value.result
        assert (result.status, result.fault_code, result.rows_done) == ("fault", "strategy_fault", 3)
        assert events[-1].name == "EngineStopped" and len(result.fills()) == 1
        assert one.status == "errored" and one.session().state == "Idle"
        assert other.venue_state().state == "Ready"
        world.registers("9984")
        begin(one)
        assert one.stop().status == "stopped"


def test_p115_lost_data_are_told_and_the_run_goes_on(world, one):
    run, events = begin(one, "empty")
    world.streams(one)
    world.tick("2850")
    world.has_seen(one, 1)
    world.gateway.control({"do": "drop-push"})
    lost = "market_data_lost"
    world.until(lambda: [event for event in names(events, "EngineError") if event.code == lost], "it is told")
    world.until(lambda: one.venue_state().push == "Streaming", "it streams again")
    world.tick("2851", "2852", "2853")
    world.has_seen(one, 2)
    assert not run.done() and one.stop().status == "stopped"


def test_another_session_sees_a_run_and_ends_it(world, one):
    run, _ = begin(one)
    with world.session() as other:
        assert other.status == "running" and other.session().run_id == run.run_id
        result = other.stop()
    assert run.result(timeout=PATIENCE) == result


def test_a_run_outlives_its_session_in_an_engine_of_its_own(world, one):
    with world.session() as other:
        run, _ = begin(other)
    info = one.session()
    assert (info.state, info.run_id) == ("Running", run.run_id)
    assert one.stop().run_id == run.run_id


def test_ctrl_c_of_a_script_ends_its_run(world, one, tmp_path):
    """The script waits for the end, and the engine goes on."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import signal, kumiki
# Tests that run in the background inherit that it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with kumiki.LiveSession(venue="local_broker", attach={str(world.config)!r}) as session:
    def heard(event):
        if event.name == "EngineStarted":
            print(event.run_id, flush=True)
    try:
        session.run(**{HOW!r}, strategy_file={component("empty")!r}, on_event=heard)
    except KeyboardInterrupt:
        print(session.status, session.session().last_run.status, flush=True)
""", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment,
                          **OWN_CONSOLE) as ran:
        run_id = ran.stdout.readline().strip()
        assert one.session().run_id == run_id
        interrupt(ran)
        assert ran.stdout.read() == "stopped stopped\n" and ran.wait(PATIENCE) == 0
    info = one.session()
    assert (info.state, info.last_run.run_id, info.last_run.status) == ("Idle", run_id, "stopped")


def test_ctrl_c_here_ends_the_run(world, one):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(1.5, interrupt_this).start()
        with pytest.raises(KeyboardInterrupt):
            one.run(**HOW, strategy_file=component("empty"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert one.status == "stopped" and one.session().state == "Idle"


# --- Engines and loops.


def test_an_engine_of_ones_own(world, tmp_path, monkeypatch, frames):
    """It is told of the gateway by the environment, asks for the password, and ends with the session, and the run with
    it."""
    for name, value in (setting.split("=", 1) for setting in (
        *QUICK, logged_out(720, 721), f"base_url={world.gateway.address}",
    )):
        monkeypatch.setenv(f"KUMIKI_LOCAL_BROKER_{name.upper()}", value)
    for name, value in fake_pinentry(tmp_path, f"say('D {PASSWORD}', 'OK')").items():
        monkeypatch.setenv(name, value)
    how = {"attach": None, "config_dir": tmp_path / "own", "cache_dir": tmp_path / "cache", "program": program()}
    with kumiki.LiveSession(venue="local_broker", **how) as one:
        assert one.mode == "spawn"
        one.login()
        run, events = begin(one)
        world.streams(one)
        world.tick("2850", "2851", "2852")
        world.until(lambda: names(events, "OrderFilled"), "it is filled")
    manifest = tmp_path / "cache" / "runs" / run.run_id / "manifest.json"
    assert json.loads(manifest.read_text(encoding="utf-8"))["run_kind"] == "paper"
    ends = [json.loads(frame) for frame in frames.received if '"event":"EngineStopped"' in frame]
    assert not ends or ends[0]["status"] == "stopped"


@NEEDS_PANDAS
def test_the_same_with_asyncio(world):
    async def main():
        async with kumiki.aio.LiveSession(venue="local_broker", attach=world.config) as one:
            await one.login()
            filled = asyncio.Event()

            async def heard(event):
                if event.name == "OrderFilled":
                    filled.set()

            run = await one.run(**HOW, strategy_file=component("buy-and-hold"), on_event=heard, wait=False)
            while (await one.venue_state()).push != "Streaming" or world.registered() != ["7203"]:
                await asyncio.sleep(0.03)
            world.tick("2850", "2850", "2851", "2852")
            await asyncio.wait_for(filled.wait(), PATIENCE)
            result = await one.stop()
            assert await run.result() == result and len(result.fills(backend="pandas")) == 1

    asyncio.run(main())


# --- The notebook.


def test_the_notebook_of_a_run_on_paper(tmp_path, monkeypatch):
    for package in ("ipykernel", "matplotlib", "pandas", "pyarrow"):
        pytest.importorskip(package)
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(ROOT / "examples" / "python" / "paper.ipynb", 4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells), "it is kept without outputs"
    for name, value in {
        "PYTHONPATH": SOURCE, "HOME": tmp_path, "KUMIKI_PROGRAM": program(), "KUMIKI_CACHE": tmp_path / "cache",
        "KUMIKI_STRATEGIES": pathlib.Path(component("sma-cross")).parent, "KUMIKI_KEY_STORE": "off",
        "MPLCONFIGDIR": tmp_path / "matplotlib", "IPYTHONDIR": tmp_path / "ipython", "JUPYTER_RUNTIME_DIR": tmp_path,
    }.items():
        monkeypatch.setenv(name, str(value))
    for name in ("KUMIKI_ENGINE_TOKEN", "MPLBACKEND", "KUMIKI_DATA"):
        monkeypatch.delenv(name, raising=False)
    where = {"metadata": {"path": str(tmp_path)}}
    began = time.monotonic()
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()
    assert time.monotonic() - began < 120, "people wait for it"

    _, _, run, end, table, plot, again, _ = [cell.outputs for cell in cells]
    told = "".join(output.text for output in run if output.output_type == "stream")
    assert len(re.findall(r"^\d\d:\d\d:\d\d (BUY|SELL) \d+ at \d+(\.5)?$", told, re.MULTILINE)) >= 6, told
    assert re.search(r"^run \S+: stopped at .* profit or loss ", "".join(output.text for output in end), re.MULTILINE)
    assert "<table" in table[0].data["text/html"] and len(plot[0].data["image/png"]) > 10_000
    assert "identical" in "".join(output.text for output in again)
