"""The sessions of the Python package for asyncio."""

import asyncio
import contextlib
import csv

import kumiki
import pytest
from conftest import program
from engine_process import CASH, EXECUTION, component


@pytest.fixture
def session(market, tmp_path):
    """Makes sessions with engines of their own."""
    def session(**how):
        how = {"data": market.folder, "attach": None, "cache_dir": tmp_path / "cache", "program": program(), **how}
        return kumiki.aio.ReplaySession(**how)

    return session


async def begun(one, market, **more):
    """A run in which the strategy does nothing, after its first rows."""
    await one.load("7203.TSE", market.days[1], market.days[1])
    more = {"multiplier": 1, **more}
    run = await one.run(strategy_file=component("empty"), wait=False, execution=EXECUTION, initial_cash=CASH, **more)
    while (await one.session()).rows_done == 0:
        await asyncio.sleep(0.02)
    return run


def test_a_run_with_its_events(session, market):
    async def main():
        events, steps = [], []
        async with session() as one:
            assert (one.mode, one.status) == ("spawn", "idle")
            await one.load(market.instruments, market.days[1], market.days[2], on_progress=steps.append)

            async def heard(event):
                await asyncio.sleep(0)
                events.append(event.name)

            result = await one.run(
                strategy_file=component("sma-cross"), multiplier="max", strategy_init_kwargs={"fast": 5, "slow": 20},
                on_event=heard,
            )
            assert (result.status, one.status) == ("completed", "stopped")
            assert (events[0], events[-1]) == ("EngineStarted", "EngineStopped")
            with open(result.run_dir / "fills.csv", newline="", encoding="utf-8") as file:
                assert events.count("OrderFilled") == len(list(csv.DictReader(file))) > 0
        calls = (one.session, one.stop, one.positions, lambda: one.set_speed(2), lambda: one.run(strategy_file="x"))
        for call in calls:
            with pytest.raises(kumiki.SessionClosedError, match="not open any more"):
                await call()
        assert one.status == "stopped"

    asyncio.run(main())


def test_a_session_that_is_closed_within_a_run_is_stopped(session, market):
    async def main():
        async with session() as one:
            run = await begun(one, market)
            waiting = asyncio.create_task(run.result())
            await asyncio.sleep(0)
            assert one.status == "running"
        assert one.status == "stopped" and run.done()
        with contextlib.suppress(kumiki.ConnectionLostError):
            # The engine ends the run before it goes, and may be heard.
            assert (await waiting).status == "stopped"

    asyncio.run(main())


def test_much_at_the_same_time(session, market):
    async def main():
        async with session() as one, session() as other:
            await one.subscribe("7203")
            runs = await asyncio.gather(*(begun(each, market, multiplier=20) for each in (one, other)))
            trade = await one.events("Trades", timeout=60).__anext__()
            low = trade.trades[0]["price"] // 100 * 95
            wanted = {"instrument_id": "7203.TSE", "side": "BUY", "quantity": 100, "order_type": "LIMIT", "price": low}
            orders = [one.submit_order(**wanted) for _ in range(20)]
            sent = await asyncio.gather(*orders)
            assert len({answer.venue_order_id for answer in sent}) == 20
            power, held, listed = await asyncio.gather(one.buying_power(), one.positions(), one.order_list())
            assert (power.cash, held, len(listed)) == (CASH, [], 20)
            first = sent[0].client_order_id
            changed = await one.modify_order(client_order_id=first, new_price=low - 10)
            assert changed.price == low - 10
            # Two cancels of one order: both are answered.
            cancels = [one.cancel_order(client_order_id=first) for _ in range(2)]
            done = await asyncio.gather(*cancels, return_exceptions=True)
            assert [type(answer) for answer in done].count(kumiki.CancelOrderResult) >= 1, done
            assert (await one.cancel_all()).canceled_count == 19
            with pytest.raises(kumiki.BusyError):
                await one.load("7203.TSE", market.days[1], market.days[1])
            with pytest.raises(kumiki.OrderRejectedError):
                await one.submit_order(instrument_id="7203.TSE", side="SELL", quantity=100)
            await one.set_speed("max")
            assert (await runs[0].result()).status == "completed"
            assert not runs[1].done() and (await other.stop()).status == "stopped"

    asyncio.run(main())


def test_a_run_that_is_cancelled_is_ended(session, market):
    async def main():
        async with session() as one:
            for on_event in (None, lambda _: None):
                await one.load("7203.TSE", market.days[1], market.days[1])
                paced = one.run(strategy_file=component("empty"), multiplier=1, on_event=on_event)
                task = asyncio.create_task(paced)
                while one.status != "running" or not (await one.session()).rows_done:
                    await asyncio.sleep(0.02)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                info = await one.session()
                assert (info.state, info.last_run.status) == ("Idle", "stopped")

    asyncio.run(main())


def test_a_callback_that_fails_ends_the_run(session, market):
    async def main():
        async with session() as one:
            await one.load("7203.TSE", market.days[1], market.days[1])

            async def heard(event):
                if event.name == "ReplayBuyingPower":
                    raise LookupError("enough")

            with pytest.raises(LookupError, match="enough"):
                await one.run(strategy_file=component("empty"), multiplier=1, on_event=heard)
            assert (await one.session()).last_run.status == "stopped"

    asyncio.run(main())


def test_an_engine_that_is_killed_ends_everything(start, market):
    async def main():
        engine = start(standalone=True)
        async with kumiki.aio.ReplaySession(attach=engine.config_dir, timeout=30) as one:
            run = await begun(one, market)
            waiting = asyncio.create_task(run.result())
            stream = one.events("Nothing")
            await asyncio.sleep(0)
            engine.kill()
            for late in (waiting, stream.__anext__(), one.session()):
                with pytest.raises(kumiki.ConnectionLostError):
                    await late
            assert one.status == "errored"
            with contextlib.suppress(kumiki.KumikiError):
                await one.stop()

    asyncio.run(main())


def test_a_start_that_is_given_up_leaves_no_run(start, market, monkeypatch):
    """The engine goes on without the session; what begins after all is ended."""
    engine = start(standalone=True)

    async def work():
        async with kumiki.aio.ReplaySession(attach=engine.port, token=engine.token) as one:
            await one.load("7203.TSE", market.days[1], market.days[2])
            ask = one._ask

            async def given_up(op, **fields):
                if op != "StartEngine":
                    return await ask(op, **fields)
                answer = asyncio.ensure_future(ask(op, **fields))
                await asyncio.sleep(0)
                answer.cancel()
                return await answer

            monkeypatch.setattr(one, "_ask", given_up)
            with pytest.raises(asyncio.CancelledError):
                await one.run(strategy_file=component("empty"), multiplier=1)

    asyncio.run(work())
    with engine.client() as client:
        session = client.ask("GetSession", "Session")
        assert (session["state"], session["last_run"]["status"]) == ("Idle", "stopped")
