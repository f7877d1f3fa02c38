"""The sessions of the Python package: runs, their results, and what goes wrong with them."""

import asyncio
import csv
import inspect
import os
import pathlib
import signal
import sys
import threading
import time
from decimal import Decimal

import kumiki
import kumiki.aio
import pytest
from engine_process import CASH, EXECUTION, component

SMA = {"fast": 5, "slow": 20}


def load(session, market, first=1, last=1, instruments=None, **more):
    """Loads a range of days, by their places."""
    return session.load(instruments or market.instruments[0], market.days[first], market.days[last], **more)


def begin(session, market, **more):
    """Starts a run in which nothing happens, and waits for its first rows."""
    load(session, market)
    run = session.run(strategy_file=component("empty"), wait=False, **more)
    while session.session().rows_done == 0:
        time.sleep(0.02)
    return run


def rows(result, name):
    with open(result.run_dir / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_run_from_its_begin_to_its_end(session, market):
    with session() as one:
        assert (one.mode, one.status, one.portfolio) == ("spawn", "idle", None)
        told, events, threads = [], [], set()
        loaded = load(one, market, 1, 2, on_progress=told.append)
        assert loaded.trades_loaded == len(market.trades("7203.TSE", market.days[1:3]))
        assert (loaded.instrument_ids, loaded.days, loaded.days_missing) == (["7203.TSE"], 2, 0)
        assert kumiki.to_datetime(loaded.ts_event_ns).isoformat() == f"{market.days[1]}T00:00:00+09:00"
        # Small files are read before there is anything to tell.
        assert all(0 <= step.done <= step.total and step.kind == "load" for step in told)
        assert one.status == "loaded"

        def heard(event):
            threads.add(threading.current_thread())
            events.append(event)

        result = one.run(
            strategy_file=component("sma-cross"), strategy_id="crossing", initial_cash=CASH, multiplier="max",
            strategy_init_kwargs=SMA, execution=EXECUTION, on_event=heard,
        )
        assert (result.status, result.strategy_id, result.rows_done) == ("completed", "crossing", loaded.trades_loaded)
        assert (one.status, one.portfolio.equity) == ("stopped", result.final_equity)
        assert threads == {threading.current_thread()}, "events are handed over where run() was called"
        assert (events[0].name, events[-1].name) == ("EngineStarted", "EngineStopped")
        fills = [event for event in events if event.name == "OrderFilled"]
        assert [(fill.last_price, fill.last_qty, fill.ts_ns) for fill in fills] == [
            (Decimal(row["price"]), int(row["quantity"]), int(row["ts_event_ns"])) for row in rows(result, "fills")]
        assert fills and isinstance(fills[0].last_price, Decimal) and isinstance(fills[0]["last_qty"], int)
        # A run uses up what is loaded, and the next is another one.
        with pytest.raises(kumiki.NotLoadedError) as refused:
            one.run(strategy_file="sma-cross")
        assert refused.value.code == "not_loaded"
        load(one, market)
        assert one.run(strategy_file="sma-cross", multiplier="max").run_id != result.run_id
    # What there is of it stays.
    assert result.manifest()["partial"] is False and Decimal(result.summary()["equity_end"]) == result.final_equity


def test_the_frames_are_the_tables_of_the_run(session, market, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    one = session()
    load(one, market)
    result = one.run(strategy_file="sma-cross", multiplier="max", strategy_init_kwargs=SMA)
    for name, frame in (("orders", result.orders()), ("fills", result.fills()), ("equity", result.equity()),
                        ("days", result.table("days"))):
        wanted = rows(result, name)
        assert len(frame) == len(wanted) > 0 and list(frame.columns) == list(wanted[0]), name
    assert list(result.fills()["price"]) == [Decimal(row["price"]) for row in rows(result, "fills")]
    equity = result.equity(exact=False)
    assert equity["equity"].dtype == float and str(equity["ts_event_ns"].dt.tz) == "UTC"
    assert equity["equity"].iloc[-1] == float(result.final_equity)
    assert isinstance(equity, pandas.DataFrame)
    with pytest.raises(ValueError, match="backend"):
        result.fills(backend="abacus")
    with pytest.raises(FileNotFoundError):
        result.table("nothing")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(kumiki.MissingPackageError, match="pip install pandas pyarrow"):
        result.fills()
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="pip install polars"):
        result.fills(backend="polars")


def test_polars_reads_the_same(session, market):
    pytest.importorskip("polars")
    one = session()
    load(one, market)
    result = one.run(strategy_file="sma-cross", multiplier="max", strategy_init_kwargs=SMA)
    assert result.fills(backend="polars")["price"].to_list() == [Decimal(row["price"]) for row in rows(result, "fills")]
    assert result.equity(backend="polars", exact=False)["equity"][-1] == float(result.final_equity)


def test_a_run_goes_on_by_itself(session, market):
    one = session()
    load(one, market, 1, 2, instruments=market.instruments)
    events = []
    run = one.run(strategy_file=component("empty"), on_event=events.append, wait=False)
    assert not run.done() and (one.status, run.execution["model"]) == ("running", "strict")
    info = one.session()
    assert (info.state, info.run_id, info.multiplier, info.cash) == ("Running", run.run_id, 1, Decimal(1_000_000))
    assert [loaded.instrument_id for loaded in info.instruments] == market.instruments
    with pytest.raises(kumiki.EngineTimeoutError):
        run.result(timeout=0.2)
    one.set_speed("max")
    result = run.result(timeout=60)
    assert run.done() and run.result() == result
    assert (result.status, result.final_equity) == ("completed", 1_000_000)
    assert result.rows_done == sum(len(market.trades(issue, market.days[1:3])) for issue in market.instruments)
    names = [event.name for event in events]
    assert (names[0], names[-1], names.count("ReplaySpeedChanged")) == ("EngineStarted", "EngineStopped", 1)
    last = one.session().last_run
    assert (last.run_id, last.status, last.final_equity) == (run.run_id, "completed", result.final_equity)


def test_a_run_can_be_stopped(session, market):
    one = session()
    with pytest.raises(kumiki.BusyError):
        one.stop()
    run = begin(one, market)
    result = one.stop()
    assert (result.status, one.status, run.result()) == ("stopped", "stopped", result)
    assert result.manifest()["partial"] is True


def test_what_an_event_raises_ends_the_run(session, market):
    one = session()
    load(one, market)
    one.subscribe("7203")

    def heard(event):
        if event.name == "Trades":
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        one.run(strategy_file=component("empty"), on_event=heard)
    info = one.session()
    assert (info.state, info.last_run.status, one.status) == ("Idle", "stopped", "stopped")
    load(one, market)
    run = one.run(strategy_file=component("empty"), on_event=heard, wait=False)
    with pytest.raises(LookupError, match="enough"):
        run.result()
    one.unsubscribe("7203")


def test_a_command_that_does_not_fit_is_busy(session, market):
    one = session()
    for early in (one.buying_power, one.positions, one.cancel_all, lambda: one.set_speed(2),
                  lambda: one.submit_order(instrument_id="7203.TSE", side="BUY", quantity=100)):
        with pytest.raises(kumiki.BusyError) as refused:
            early()
        assert (refused.value.current_state, refused.value.code) == ("Idle", "engine_busy")
    begin(one, market)
    for late in (lambda: load(one, market), lambda: one.run(strategy_file=component("empty"))):
        with pytest.raises(kumiki.BusyError, match="while Running"):
            late()
    assert one.status == "running"


def test_what_is_wrong_is_told_by_its_kind(session, market, frames):
    one = session()
    with pytest.raises(kumiki.DataNotFoundError, match="8888"):
        load(one, market, instruments="8888.TSE")
    with pytest.raises(kumiki.ValidationError, match="^START_DATE"):
        one.load("7203.TSE", "2025-13-01", "2025-01-31")
    with pytest.raises(ValueError) as refused:
        load(one, market, instruments=[f"{code}.TSE" for code in range(7201, 7206)])
    assert refused.value.code == "too_many_instruments"
    load(one, market)
    with pytest.raises(kumiki.StrategyError) as refused:
        one.run(strategy_file="nothing-of-that-name")
    assert (refused.value.code, refused.value.result) == ("strategy_load_failed", None)
    with pytest.raises(kumiki.StrategyError) as refused:
        one.run(strategy_file=component("panics-in-init"))
    assert (refused.value.code, one.status) == ("strategy_init_failed", "loaded")
    for wrong in ({"multiplier": 0}, {"execution": "perfect"}, {"initial_cash": 0}, {"strategy_id": ""}):
        with pytest.raises(kumiki.ValidationError):
            one.run(strategy_file="sma-cross", **wrong)
    assert frames.take_wrong() == ["StartEngine"], "a multiplier of 0 breaks the schema, the others its meaning"
    with pytest.raises(TypeError, match="initial_cash"):
        one.run(strategy_file="sma-cross", initial_cash=1e6)
    with pytest.raises(kumiki.StrategyError) as failed:
        one.run(strategy_file=component("panics-in-event"), strategy_init_kwargs={"at": 20}, multiplier="max")
    assert (failed.value.code, failed.value.result.status, one.status) == ("strategy_fault", "fault", "errored")
    assert failed.value.result.manifest()["fault"]


def test_the_engine_of_the_other_mode_is_a_value_error(session, market):
    one = session()
    load(one, market)
    config = {
        "instrument_id": "7203.TSE", **market.span(), "granularity": "Trade", "initial_cash": "1",
        "strategy_file": component("empty"),
    }
    with pytest.raises(ValueError) as refused:
        one._loop.call(one._core._ask("StartEngine", engine="Live", strategy_id="one", config=config))
    assert isinstance(refused.value, kumiki.ModeError) and refused.value.code == "value_error"
    assert one.status == "loaded"


def test_an_engine_that_is_killed_is_a_lost_connection(start, market):
    engine = start(standalone=True)
    with kumiki.ReplaySession(attach=engine.session_file, timeout=30) as one:
        stream = one.events()
        run = begin(one, market)

        def heard(event):
            if event.name == "ReplayBuyingPower":
                engine.kill()

        one.stop()
        assert run.result().status == "stopped"
        load(one, market)
        with pytest.raises(kumiki.ConnectionLostError, match="broke"):
            one.run(strategy_file=component("empty"), on_event=heard)
        assert one.status == "errored"
        for late in (one.session, lambda: list(stream), one.stop, lambda: one.run(strategy_file="sma-cross")):
            with pytest.raises(ConnectionError):
                late()
        # What came before is still there.
        with pytest.raises(kumiki.ConnectionLostError):
            one.events("Trades").__next__()
    with pytest.raises(kumiki.ConnectionLostError, match="not open"):
        one.session()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot halt a process")
def test_an_engine_that_says_nothing_is_not_waited_for(start, market):
    engine = start(standalone=True)
    with kumiki.ReplaySession(attach=engine.session_file) as one:
        patience, one._core._timeout = one._core._timeout, 0.5
        engine.suspend()
        with pytest.raises(TimeoutError) as late:
            one.session()
        assert late.value.code == "timeout"
        engine.signal("SIGCONT")
        one._core._timeout = patience
        # The answer that came too late is nobody's.
        assert one.session().state == "Idle"


def test_events_come_one_after_another(session, market):
    one = session()
    load(one, market)
    one.subscribe("7203")
    with one.events("Trades", timeout=60) as trades, one.events("OrderFilled", timeout=0.1) as fills:
        run = one.run(strategy_file=component("empty"), multiplier="max", wait=False)
        wanted = [(Decimal(price), int(qty), nanos)
                  for price, qty, nanos in market.trades("7203.TSE", market.days[1:2])]
        seen = []
        for event in trades:
            seen += [(row["price"], row["qty"], row["ts_ns"]) for row in event.trades]
            if len(seen) >= len(wanted):
                break
        assert seen == wanted
        run.result()
        with pytest.raises(kumiki.EngineTimeoutError):
            next(fills)
    assert next(trades, None) is None
    rest = one.events()
    one.close()
    assert [event.name for event in rest if event.name != "ClientConnected"] == []


def test_events_that_nobody_takes_are_not_kept_forever(session, market, monkeypatch):
    monkeypatch.setattr("kumiki._streams.WAITING_BYTES_MAX", 10_000)
    one = session()
    load(one, market)
    stream = one.events()
    one.run(strategy_file="sma-cross", multiplier="max", strategy_init_kwargs=SMA)
    with pytest.raises(kumiki.TooSlowError):
        list(stream)
    assert one.session().state == "Idle", "the session goes on"


def test_two_sessions_at_once(session, market):
    first, second = session(), session()
    runs = [begin(one, market) for one in (first, second)]
    assert [one.session().run_id for one in (first, second)] == [run.run_id for run in runs]
    first.set_speed("max")
    assert (runs[0].result().status, runs[1].done()) == ("completed", False)
    assert second.stop().status == "stopped"
    assert runs[0].result().run_dir != runs[1].result().run_dir


def test_who_waits_is_told_that_the_session_was_closed(session, market):
    one = session()
    run = begin(one, market, on_event=lambda _: None)
    ends = []

    def wait(what):
        try:
            what()
        except kumiki.KumikiError as error:
            ends.append(error.code)

    waits = (run.result, lambda: one._result(run._run, None))
    threads = [threading.Thread(target=wait, args=(what,)) for what in waits]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    one.close()
    one.close()
    for thread in threads:
        thread.join(60)
    # The engine ends the run before it goes, and may be heard.
    assert not any(thread.is_alive() for thread in threads) and set(ends) <= {"closed", "connection_lost"}


def test_a_session_also_works_inside_of_an_event_loop(session, market):
    async def cell():
        one = session()
        load(one, market)
        return one.run(strategy_file="sma-cross", multiplier="max", strategy_init_kwargs=SMA)

    assert asyncio.run(cell()).status == "completed"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_the_run_and_keeps_its_results(session, market):
    one = session()
    load(one, market)

    def heard(event):
        if event.name == "EngineStarted":
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    # pytest's own handler raises KeyboardInterrupt too; this is the one of a script.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for on_event in (heard, None):
            load(one, market)
            if on_event is None:
                threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                one.run(strategy_file=component("empty"), on_event=on_event)
            last = one.session().last_run
            assert last.status == "stopped"
            assert (pathlib.Path(last.run_dir) / "manifest.json").is_file()
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_given_by_place_and_what_by_name():
    """`load` takes its range by place, `run` everything by name."""
    load, run = (inspect.signature(one).parameters for one in (kumiki.ReplaySession.load, kumiki.ReplaySession.run))
    by_place = [name for name, one in load.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert by_place == ["self", "instrument_id", "start_date", "end_date", "granularity"]
    assert {name for name, one in run.items() if one.kind is not one.KEYWORD_ONLY} == {"self"}
    with pytest.raises(TypeError, match="positional"):
        kumiki.ReplaySession().run("sma-cross")


@pytest.mark.parametrize("kind", [kumiki.ReplaySession, kumiki.LiveSession])
def test_both_kinds_of_sessions_have_the_same_methods(kind):
    def public(kind):
        found = inspect.getmembers(kind, lambda member: inspect.isfunction(member) or isinstance(member, property))
        return {name: member for name, member in found if not name.startswith("_")}

    plain, awaited = public(kind), public(getattr(kumiki.aio, kind.__name__))
    assert plain.keys() == awaited.keys()
    for name, member in plain.items():
        if not isinstance(member, property):
            given = [inspect.signature(one).parameters for one in (member, awaited[name])]
            assert [str(one) for one in given[0].values()] == [str(one) for one in given[1].values()], name
        assert member.__doc__, name


def test_numbers_that_json_does_not_have_are_refused_at_once(session, market):
    one = session()
    one.load("7203.TSE", market.days[1], market.days[1])
    for odd in (float("nan"), float("inf"), object()):
        with pytest.raises(kumiki.ValidationError, match="StartEngine"):
            one.run(strategy_file=component("empty"), strategy_init_kwargs={"odd": odd})
