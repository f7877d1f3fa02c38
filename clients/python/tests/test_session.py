"""The sessions of the Python package: runs, their results, and what goes wrong with them."""

import asyncio
import csv
import dataclasses
import datetime
import functools
import inspect
import json
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal

import kumiki
import kumiki.aio
import pytest
from conftest import SOURCE, program
from engine_process import CASH, EXECUTION, component, interrupt_this
from kumiki import _arguments

SMA = {"fast": 5, "slow": 20}


def load(session, market, first=1, last=1, instruments=None, **more):
    """Loads a range of days, by their places."""
    return session.load(instruments or market.instruments[0], market.days[first], market.days[last], **more)


def begin(session, market, **more):
    """Starts a run in which nothing happens, and waits for its first rows."""
    load(session, market)
    run = session.run(strategy_file=component("empty"), wait=False, **{"multiplier": 1, **more})
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


def test_a_printed_result_tells_what_is_not_modelled(session, market):
    one = session()
    load(one, market)
    result = one.run(strategy_file="sma-cross", multiplier="max", strategy_init_kwargs=SMA)
    shown = str(result).splitlines()
    assert shown[0].startswith(f"run {result.run_id}: completed at ")
    assert shown[-1] == f"not modelled: {result.manifest()['rules']['NOT MODELLED']}"
    assert result.warning() == result.manifest()["warning"]
    # Its folder is one of the last 20, or it is gone.
    gone = dataclasses.replace(result, run_dir=result.run_dir / "gone")
    assert str(gone).splitlines() == shown[:1]


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
    run = one.run(strategy_file=component("empty"), multiplier=1, on_event=events.append, wait=False)
    assert not run.done() and (one.status, run.execution["model"]) == ("running", "strict")
    info = one.session()
    assert (info.state, info.run_id, info.multiplier, info.cash) == ("Running", run.run_id, 1, Decimal(CASH))
    assert [loaded.instrument_id for loaded in info.instruments] == market.instruments
    with pytest.raises(kumiki.EngineTimeoutError):
        run.result(timeout=0.2)
    one.set_speed("max")
    result = run.result(timeout=60)
    assert run.done() and run.result() == result
    assert (result.status, result.final_equity) == ("completed", CASH)
    assert result.rows_done == sum(len(market.trades(issue, market.days[1:3])) for issue in market.instruments)
    names = [event.name for event in events]
    assert (names[0], names[-1], names.count("ReplaySpeedChanged")) == ("EngineStarted", "EngineStopped", 1)
    last = one.session().last_run
    assert (last.run_id, last.status, last.final_equity) == (run.run_id, "completed", result.final_equity)


def test_a_run_has_full_speed_unless_it_is_asked_for_less(session, market):
    one = session()
    for asked, told in (({}, "max"), ({"multiplier": 1_000_000}, 1_000_000)):
        load(one, market)
        events = []
        one.run(strategy_file=component("empty"), on_event=events.append, **asked)
        assert (events[0].name, events[0].multiplier) == ("EngineStarted", told)


def test_a_run_starts_with_the_cash_of_the_command():
    """Else the same strategy has another result here than with `kumiki replay run`, and nothing says why."""
    told = subprocess.run([program(), "replay", "run", "--help"], check=True, capture_output=True, text=True).stdout
    cash = int(re.search(r"--cash <YEN>.*\[default: (\d+)\]", told)[1])
    for kind in (kumiki.ReplaySession, kumiki.aio.ReplaySession):
        assert inspect.signature(kind.run).parameters["initial_cash"].default == cash == CASH


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
        one.run(strategy_file=component("empty"), multiplier=1, on_event=heard)
    info = one.session()
    assert (info.state, info.last_run.status, one.status) == ("Idle", "stopped", "stopped")
    load(one, market)
    run = one.run(strategy_file=component("empty"), multiplier=1, on_event=heard, wait=False)
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
    assert type(refused.value) is kumiki.TooManyInstrumentsError and refused.value.code == "too_many_instruments"
    load(one, market)
    with pytest.raises(kumiki.StrategyError) as refused:
        one.run(strategy_file="nothing-of-that-name")
    assert (refused.value.code, refused.value.result) == ("strategy_load_failed", None)
    assert type(refused.value) is kumiki.StrategyLoadError
    with pytest.raises(kumiki.StrategyError) as refused:
        one.run(strategy_file=component("panics-in-init"))
    assert (refused.value.code, one.status) == ("strategy_init_failed", "loaded")
    assert type(refused.value) is kumiki.StrategyInitError
    for wrong in ({"multiplier": 0}, {"execution": "perfect"}, {"initial_cash": 0}, {"strategy_id": ""}):
        with pytest.raises(kumiki.ValidationError):
            one.run(strategy_file="sma-cross", **wrong)
    assert frames.take_wrong() == ["StartEngine"], "a multiplier of 0 breaks the schema, the others its meaning"
    with pytest.raises(kumiki.ValidationError, match="^initial_cash: 1000000.0 .float. was given"):
        one.run(strategy_file="sma-cross", initial_cash=1e6)
    with pytest.raises(kumiki.StrategyError) as failed:
        one.run(strategy_file=component("panics-in-event"), strategy_init_kwargs={"at": 20}, multiplier="max")
    assert (failed.value.code, failed.value.result.status, one.status) == ("strategy_fault", "fault", "errored")
    assert type(failed.value) is kumiki.StrategyFaultError
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
    assert type(refused.value) is kumiki.WrongEngineError
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
            one.run(strategy_file=component("empty"), multiplier=1, on_event=heard)
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


def test_ctrl_c_ends_the_run_and_keeps_its_results(session, market):
    one = session()
    load(one, market)

    def heard(event):
        if event.name == "EngineStarted":
            threading.Timer(0.3, interrupt_this).start()

    # pytest's own handler raises KeyboardInterrupt too; this is the one of a script.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for on_event in (heard, None):
            load(one, market)
            if on_event is None:
                threading.Timer(1.0, interrupt_this).start()
            with pytest.raises(KeyboardInterrupt):
                one.run(strategy_file=component("empty"), multiplier=1, on_event=on_event)
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
        with pytest.raises(kumiki.ValidationError, match="^strategy_init_kwargs.odd: "):
            one.run(strategy_file=component("empty"), strategy_init_kwargs={"odd": odd})


# --- A session that is over.


def every_call(one):
    """All that a session can be asked for."""
    return [
        one.session, one.stop, one.positions, one.buying_power, one.order_list, one.cancel_all, one.events,
        lambda: one.load("7203.TSE", "2025-01-06", "2025-01-06"), lambda: one.subscribe("7203"),
        lambda: one.load("7203.TSE", "2025-01-06", "2025-01-06", on_progress=print),
        lambda: one.unsubscribe("7203"), lambda: one.set_speed(2), lambda: one.run(strategy_file="sma-cross"),
        lambda: one.run(strategy_file="sma-cross", on_event=print, wait=False),
        lambda: one.submit_order(instrument_id="7203.TSE", side="BUY", quantity=100),
        lambda: one.modify_order(client_order_id="x", new_price=1), lambda: one.cancel_order(client_order_id="x"),
    ]


def test_what_is_called_after_the_end_is_told_that(session, market):
    one = session()
    unopened = kumiki.ReplaySession()
    for call in every_call(unopened):
        with pytest.raises(kumiki.SessionClosedError, match="not open yet; use it as `with"):
            call()
    assert unopened.status == "idle" and unopened.close() is None
    load(one, market)
    with one.events() as stream:
        first = one.run(strategy_file="sma-cross", multiplier="max", wait=False)
        result = first.result()
        run = begin(one, market)
        one.close()
        assert one.status == "stopped" and run.done()
        assert list(stream)[-1].name, "what came is still there"
    for call in every_call(one):
        with pytest.raises(kumiki.SessionClosedError, match="not open any more") as closed:
            call()
        assert closed.value.code == "closed" and isinstance(closed.value, ConnectionError)
    assert first.result() == result, "of a run that was over the result stays"
    # The engine ends the run before it goes, and may be heard.
    try:
        assert run.result().status == "stopped"
    except kumiki.ConnectionLostError as error:
        assert error.code in ("closed", "connection_lost")
    with one.open():
        assert (one.status, one.session().state) == ("idle", "Idle"), "it can be opened again"


def test_the_status_is_that_of_the_run_until_the_end(start, market):
    """Of sessions with an engine that goes on without them, and with one that does not."""
    engine = start(standalone=True)
    idle, loaded, running, errored = (kumiki.ReplaySession(attach=engine.session_file) for _ in range(4))
    idle.open().close()
    with loaded:
        load(loaded, market)
        assert loaded.status == "loaded"
    assert (idle.status, loaded.status) == ("idle", "idle")
    with running:
        run = begin(running, market)
        assert running.status == "running"
    assert running.status == "stopped"
    with pytest.raises(kumiki.SessionClosedError):
        run.result()
    with errored:
        assert errored.status == "running", "the engine goes on with the run"
        engine.kill()
        with pytest.raises(kumiki.ConnectionLostError):
            errored.session()
        assert errored.status == "errored"
    assert errored.status == "errored"


def test_calls_that_meet_the_end_of_the_session_are_answered(session):
    """From threads of their own, at every moment of it: an answer, or that the session is over."""
    one = session()
    ends, go = [], threading.Event()

    def ask():
        go.set()
        while True:
            try:
                one.session()
            except BaseException as error:
                ends.append(error)
                return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    go.wait(60)
    one.close()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(ends) == 8 and all(isinstance(end, kumiki.ConnectionLostError) for end in ends), ends


# --- Arguments.


class Odd:
    """What nothing wants."""

    def __repr__(self):
        return "odd\n" * 1_000


def test_an_argument_of_a_wrong_kind_is_named(session, market):
    """Before anything is sent: its name, what was given, and what is wanted."""
    one = session()
    load(one, market)
    odd, range_ = Odd(), (market.days[1], market.days[1])
    order = {"instrument_id": "7203.TSE", "side": "BUY", "quantity": 100}
    late = datetime.datetime(2025, 1, 6, 15, 0)
    load_from = lambda day: one.load("7203.TSE", day, range_[1])  # noqa: E731 - a table of calls
    load_to = lambda day: one.load("7203.TSE", range_[0], day)  # noqa: E731
    start = lambda **how: one.run(**{"strategy_file": "sma-cross", **how})  # noqa: E731
    submit = lambda **how: one.submit_order(**{**order, **how})  # noqa: E731
    modify = lambda **how: one.modify_order(client_order_id="x", **how)  # noqa: E731
    Made = kumiki.ReplaySession
    calls = {
        "instrument_id": [
            *each(lambda id_: one.load(id_, *range_), odd, None, [], b"7203.TSE", {"7203.TSE": 1}),
            *each(lambda id_: submit(instrument_id=id_), 7203, "\ud800", ["7203.TSE"]),
            lambda: one.cancel_all(instrument_id=odd), lambda: one.order_list(instrument_id=7203)],
        r"instrument_id\[1\]": [lambda: one.load(["7203.TSE", odd], *range_)],
        "start_date": each(load_from, odd, None, 20250106, late, 1.5),
        "end_date": each(load_to, odd, late.replace(tzinfo=kumiki.JST)),
        "granularity": [lambda: one.load("7203.TSE", *range_, odd)],
        "on_progress": [lambda: one.load("7203.TSE", *range_, on_progress=odd)],
        "strategy_file": each(lambda file: start(strategy_file=file), odd, None, b"sma-cross", "a\0b", "\udcff"),
        "on_event": [lambda: start(on_event=odd)],
        "strategy_id": each(lambda name: start(strategy_id=name), odd, None, 5),
        "initial_cash": each(lambda cash: start(initial_cash=cash), odd, 1e6, None, True, "much", "1E+999999999"),
        "multiplier": [lambda: start(multiplier=odd), *each(one.set_speed, 1.5, None, True, Decimal(2), odd)],
        "strategy_init_kwargs": each(
            lambda values: start(strategy_init_kwargs=values), odd, [1], "fast=1", {1: 2}, {odd: 2}),
        r"strategy_init_kwargs\.a": each(
            lambda value: start(strategy_init_kwargs={"a": value}), odd, late, {1, 2}, float("nan"), 2**70, b"x", 1j,
            Decimal("NaN"), Decimal("0.12345678901234567890"), nested(40), "\ud800"),
        r"execution\.latency_ns": [lambda: start(execution={"latency_ns": odd})],
        "execution": each(lambda model: start(execution=model), 5, odd),
        "side": [lambda: submit(side=odd), lambda: one.cancel_all(side=1)],
        "quantity": each(lambda quantity: submit(quantity=quantity), odd, 100.0, None, True),
        "order_type": [lambda: submit(order_type=odd)],
        "price": [lambda: submit(price=odd)],
        "trigger_price": [lambda: submit(trigger_price=2.5)],
        "time_in_force": [lambda: submit(time_in_force=None)],
        "expire_time": each(lambda time: submit(expire_time=time), odd, late, "2025-01-06", 1.5),
        "client_order_id": [lambda: submit(client_order_id=5), one.cancel_order, lambda: one.modify_order(new_price=1),
                            lambda: one.cancel_order(client_order_id=odd)],
        "tags": each(lambda tags: submit(tags=tags), "cash_margin=cash", 5),
        r"tags\[0\]": [lambda: submit(tags=[odd])],
        "venue_order_id": [lambda: one.cancel_order(venue_order_id=1)],
        "new_quantity": [lambda: modify(new_quantity=1.5)],
        "new_price": [lambda: modify(new_price=odd)],
        "new_trigger_price": [lambda: modify(new_trigger_price=odd)],
        "new_expire_time": [lambda: modify(new_expire_time=late)],
        "status": [lambda: one.order_list(status=odd)],
        "date": each(lambda day: one.order_list(date=day), late, 20250106, odd),
        "ticker": [lambda: one.subscribe(7203), lambda: one.unsubscribe(odd)],
        r"names\[0\]": each(one.events, odd, ["OrderFilled"]),
        "timeout": [*each(lambda wait: one.events(timeout=wait), odd, float("nan"), -1, "5"),
                    *each(lambda wait: Made(timeout=wait), odd, None, 0, -1, "5", 1e300)],
        "attach": [*each(lambda attach: Made(attach=attach), odd, True, 1.5), lambda: Made(attach="x" * 5_000).open()],
        "data": [lambda: Made(data=odd)],
        "config_dir": [lambda: Made(config_dir=5)],
        "cache_dir": [lambda: Made(cache_dir=b"x")],
        "program": [lambda: Made(program=odd)],
        "log_level": each(lambda level: Made(log_level=level), odd, "loud"),
        "venue": [lambda: kumiki.LiveSession(venue=odd)],
        "token": [lambda: Made(token=5)],
        "time": each(kumiki.to_ns, odd, 1.5, late, True),
        "nanos": each(kumiki.to_datetime, odd, 1.5, 10**40),
    }
    sent = len(frames_of(one))
    for name, wrongs in calls.items():
        for place, call in enumerate(wrongs):
            with pytest.raises(kumiki.ValidationError, match=f"^{name}(:|[.[])") as wrong:
                call()
            told = str(wrong.value)
            assert wrong.value.code == "validation_error" and "\n" not in told and len(told) < 500, (name, place, told)
    assert one.status == "loaded" and len(frames_of(one)) == sent, "nothing was started, and nothing sent"
    with pytest.raises(kumiki.ValidationError, match="1,048,576 are the most"):
        one.run(strategy_file="sma-cross", strategy_init_kwargs={"long": "x" * (1 << 20)})
    run = one.run(strategy_file="sma-cross", multiplier="max", strategy_init_kwargs=SMA, wait=False)
    result = run.result()
    for name, call in {"backend": lambda: result.fills(backend=odd), "name": lambda: result.table(odd),
                       "timeout": lambda: run.result(timeout="soon")}.items():
        with pytest.raises(kumiki.ValidationError, match=f"^{name}: "):
            call()


def each(call, *values):
    """The calls with each of these values."""
    return [functools.partial(call, value) for value in values]


def frames_of(one):
    """The commands of a session that its connection has counted."""
    return range(one._core._connection._count)


def nested(depth):
    return [] if depth == 0 else [nested(depth - 1)]


def test_values_of_pandas_and_numpy_are_what_they_say(session, market):
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    one = session()
    first, last = market.days[1], market.days[2]
    date = datetime.date.fromisoformat(first)
    whole = [kind(date) for kind in (str, pandas.Timestamp, numpy.datetime64)]
    whole += [date, datetime.datetime(date.year, date.month, date.day), numpy.datetime64(f"{first}T00:00:00", "ns"),
              pandas.Timestamp(first, tz="Asia/Tokyo"), numpy.str_(first)]
    for day in whole:
        loaded = one.load(numpy.array(["7203.TSE"]), day, pandas.Timestamp(last))
        assert (loaded.start_date, loaded.end_date) == (first, last), repr(day)
    for odd in (pandas.Timestamp(f"{first} 09:00"), pandas.Timestamp(first, tz="UTC"), pandas.NaT,
                numpy.datetime64("NaT"), numpy.datetime64(f"{first}T09:00"), numpy.datetime64("2025-01"),
                pandas.Timestamp(f"{first} 00:00:00.000000001"), numpy.int64(20250106), pandas.NA):
        with pytest.raises(kumiki.ValidationError, match="^start_date: "):
            one.load("7203.TSE", odd, last)
    execution = {**EXECUTION, "latency_ns": numpy.int64(0), "same_day_round_trips": numpy.bool_(True)}
    run = one.run(
        strategy_file="sma-cross", initial_cash=numpy.int64(CASH), multiplier=numpy.int32(20), wait=False,
        execution=execution, strategy_init_kwargs={"fast": numpy.int8(5), "slow": numpy.uint64(20)},
    )
    assert run.execution["same_day_round_trips"] is True and run.execution["latency_ns"] == 0
    while not one.session().rows_done:
        time.sleep(0.02)
    assert one.stop().manifest()["parameters"].items() >= {"fast": 5, "slow": 20}.items()
    given = {"a": numpy.float32(0.5), "b": numpy.float64(0.1), "c": numpy.bool_(False), "d": [numpy.int64(2)]}
    told = _arguments.values("values", given, "")
    assert json.dumps(told) == '{"a": 0.5, "b": 0.1, "c": false, "d": [2]}'
    one.load("7203.TSE", first, last)
    one.subscribe("7203")
    with one.events("Trades", timeout=numpy.float64(60)) as trades:
        one.run(strategy_file=component("empty"), initial_cash=CASH, multiplier=20, wait=False)
        price = numpy.int64(next(trades).trades[-1]["price"] * Decimal("0.95") // 10 * 10)
    end = pandas.Timestamp(f"{last} 15:00", tz="Asia/Tokyo")
    sent = one.submit_order(
        instrument_id=numpy.str_("7203.TSE"), side="BUY", quantity=numpy.uint16(100), order_type="LIMIT", price=price,
        time_in_force="GTD", expire_time=end, tags=("note=a",),
    )
    listed, = one.order_list(date=pandas.Timestamp(first))
    assert (listed.price, listed.quantity, listed.venue_order_id) == (int(price), 100, sent.venue_order_id)
    assert kumiki.to_ns(end) == end.value and kumiki.to_datetime(numpy.int64(end.value)) == end
    assert kumiki.to_ns(pandas.Timestamp(1736121600123456789, tz="UTC")) == 1736121600123456789
    for odd in (numpy.float64(1.5), numpy.float32(100), numpy.bool_(True), numpy.array([1, 2]), pandas.NA):
        with pytest.raises(kumiki.ValidationError, match="^new_quantity: "):
            one.modify_order(client_order_id=sent.client_order_id, new_quantity=odd)


def test_arguments_need_no_numpy():
    script = """
import sys
sys.modules["numpy"] = sys.modules["pandas"] = None
from decimal import Decimal
from kumiki import _arguments, times
assert _arguments.values("v", {"a": (1, 0.5, Decimal("0.1"), None)}, "x") == {"a": [1, 0.5, 0.1, None]}
assert times.date_text("2025-01-06") == "2025-01-06"
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=SOURCE)
