"""`kumiki live run --real` at `kumiki sim market`: what it shows and asks before it starts, what it takes over after a
crash, and its exit codes. The last yen of a trade's price tells the strategy what to do (guests/test/acts-by-price)."""

import os
import select
import subprocess

import pytest
from conftest import program
from engine_process import component
from market_world import MarketWorld
from plain_client import PATIENCE
from web_broker import CLEAN, SECOND_PASSWORD

#: Terminals as Unix has them.
pty = pytest.importorskip("pty")
BUY, SELL, LIMIT, NOTHING = "2841", "2842", "2843", "2840"
ID = "acts-by-price"
LIMITS = ("--max-qty", "100", "--max-notional", "400000")


def words(world, *command):
    """A command at the engine of a world."""
    return [str(word) for word in (program(), *command, "--config-dir", world.engine.config)]


def says(world, *command):
    """Runs a command without a terminal: exit code, standard output, standard error."""
    ended = subprocess.run(words(world, *command), capture_output=True, text=True, timeout=PATIENCE,
                           stdin=subprocess.DEVNULL, env={**os.environ, **CLEAN})
    return ended.returncode, ended.stdout, ended.stderr


class Run:
    """`kumiki live run --real` at a terminal. `shown` is what stands there."""

    def __init__(self, world, *options):
        command = words(world, "live", "run", component(ID), "--instrument", "7203.TSE", "--real", *LIMITS, *options)
        self.shown = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, {**os.environ, **CLEAN})

    def _read(self):
        assert select.select([self.terminal], [], [], PATIENCE)[0], f"nothing more came:\n{self.shown}"
        try:
            self.shown += os.read(self.terminal, 4096).decode()
            return True
        except OSError:
            return False

    def until(self, text):
        """Waits until a text stands there."""
        while text not in self.shown:
            assert self._read(), f"it ended without {text!r}:\n{self.shown}"

    def type(self, text):
        os.write(self.terminal, text.encode() + b"\n")

    def end(self):
        """Waits for its end: the exit code."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def market(tmp_path):
    """Makes a market with an engine."""
    worlds = []

    def market(**environment):
        world = MarketWorld(tmp_path, environment=environment)
        worlds.append(world)
        world.ready()
        world.boards()
        return world

    yield market
    for world in worlds:
        world.close()


def trade(world, *prices):
    """Trades, each of which the strategy has seen before the next comes."""
    for price in prices:
        seen = world.client.ask("GetSession", "Session")["rows_done"]
        world.gateway.trade(price)
        world.until(lambda seen=seen: world.client.ask("GetSession", "Session")["rows_done"] > seen, f"trade {price}")


def begun(world, run):
    """Waits until the strategy gets trades."""
    run.until("Ctrl-C stops the strategy")
    # The first frame of a session is no trade.
    world.gateway.trade(NOTHING)
    trade(world, NOTHING)


def test_p122_p123_p126_what_is_shown_and_asked_before_it_starts(market):
    """Where the orders go, the limits, what it takes over; then its id, and the second password, which is not shown."""
    world = market()
    world.client.send("ForgetSecondPassword")
    run = Run(world)
    run.until(f"Type the strategy's id, {ID}, to start it: ")
    for line in ("real ones, to web_broker: the simulator at 127.0.0.1:", "local_broker: verification", "no shares",
                 "100 shares in an order, 400,000 yen in an order, 30 orders in a minute, 10 working orders, 100"):
        assert line in run.shown, run.shown
    run.type("yes")
    assert run.end() == 1 and "nothing was started" in run.shown
    assert world.client.ask("GetSession", "Session")["state"] == "Idle"
    run = Run(world)
    run.until("to start it: ")
    run.type(ID)
    run.until("(is not shown): ")
    run.type(SECOND_PASSWORD)
    begun(world, run)
    assert "LIVE: orders go to web_broker" in run.shown and SECOND_PASSWORD not in run.shown
    code, told, _ = says(world, "live", "status")
    assert code == 0 and "LIVE" in told
    code, told, _ = says(world, "live", "stop")
    assert code == 0 and "stopped" in told
    assert run.end() == 0, run.shown
    assert world.broker.orders() == []


def test_p100_p125_p126_a_position_outlives_a_crash_of_the_engine(market):
    """The next start shows what it takes over, and the strategy sells that."""
    world = market()
    run = Run(world, "--yes")
    begun(world, run)
    trade(world, BUY)
    run.until("BUY 7203.TSE: accepted")
    trade(world, NOTHING)
    run.until("filled 100 at")
    world.kill_engine()
    assert run.end() == 1 and "the engine ended the connection" in run.shown, run.shown
    world.ready()
    code, told, _ = says(world, "live", "positions")
    assert code == 0 and ID in told and "7203.TSE" in told
    world.boards()
    run = Run(world, "--yes")
    run.until("takes over")
    begun(world, run)
    assert "7203.TSE 100 at 2,84" in run.shown, run.shown
    code, _, why = says(world, "live", "adjust", ID, "7203.TSE", "0", "0", "--why", "while it runs", "--yes")
    assert code == 1 and "error: " in why, "P125: not while it runs"
    trade(world, SELL)
    run.until("SELL 7203.TSE: accepted")
    trade(world, NOTHING)
    run.until("position flat")
    assert says(world, "live", "stop")[0] == 0 and run.end() == 0, run.shown
    assert says(world, "live", "positions")[1] == "no strategy holds shares\n"


@pytest.mark.parametrize("who", ["live stop", "live run"])
def test_p81_p127_orders_that_a_run_leaves_are_an_exit_code(market, who):
    """With on_strategy_stop = keep the order goes on working; both commands end with 8 and name it."""
    world = market(KUMIKI_ON_STRATEGY_STOP="keep")
    run = Run(world, "--yes")
    begun(world, run)
    trade(world, LIMIT)
    run.until("accepted, number ")
    number = world.broker.orders()[0]["number"]
    if who == "live stop":
        code, _, why = says(world, "live", "stop")
        assert code == 8 and "orders_working" in why and number in why, why
    else:
        run.type("\x03")
    assert run.end() == 8, run.shown
    assert "error: orders_working: " in run.shown and number in run.shown
    # It works on, so that a person can cancel it.
    assert says(world, "order", "cancel", "--number", number, "--yes")[0] == 0
