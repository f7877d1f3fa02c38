"""Starts `kumiki serve` as a process of its own, and reads the market data that it replays from the vendor's
files, without any code of ours."""

import csv
import ctypes
import datetime
import gzip
import importlib.util
import json
import os
import pathlib
import queue
import signal
import stat
import subprocess
import sys
import threading
import time
from decimal import Decimal

import pytest
from conftest import program
from plain_client import PATIENCE, SCHEMA_MAJOR, SCHEMA_MINOR, Client

TOKEN = "0f" * 32
JAPAN = datetime.timezone(datetime.timedelta(hours=9))
#: Orders fill at the very trades of the data, so that a test can work out what must happen.
EXECUTION = {
    "model": "strict", "latency_ns": 0, "slippage_ticks": 0, "participation_percent": 100, "queue_ahead": 0,
    "commission": "none", "same_day_round_trips": True,
}
#: The same on the command line.
EXECUTION_FLAGS = (
    "--execution strict --latency 0ms --slippage-ticks 0 --participation 100 --queue-ahead 0 --commission none "
    "--same-day-round-trips allow"
).split()
CASH = 10_000_000
#: Marks a test that reads tables of results.
NEEDS_PANDAS = pytest.mark.skipif(not all(map(importlib.util.find_spec, ("pandas", "pyarrow"))),
                                  reason="reads tables with pandas and pyarrow")
IS_WINE = os.name == "nt" and hasattr(ctypes.windll.ntdll, "wine_get_version")
#: How a program is started that `interrupt` is to reach. Ctrl-C is for all programs of a console on Windows, so that
#: each gets one of its own, without a window.
OWN_CONSOLE = {"creationflags": subprocess.CREATE_NO_WINDOW} if os.name == "nt" else {}
#: The exit code of a program that ends itself as a crash does.
ABORTED = 0xC000_0409 if os.name == "nt" else -signal.SIGABRT
#: Ctrl-C for the programs of another console, on Windows.
CTRL_C = """
import ctypes, sys
kernel = ctypes.WinDLL("kernel32", use_last_error=True)
kernel.FreeConsole()
for done in (kernel.AttachConsole(int(sys.argv[1])), kernel.SetConsoleCtrlHandler(None, True),
             kernel.GenerateConsoleCtrlEvent(0, 0)):
    assert done, ctypes.WinError(ctypes.get_last_error())
"""
#: Whoever has started the tests may have switched Ctrl-C off, which programs that they start would inherit.
if os.name == "nt":
    ctypes.windll.kernel32.SetConsoleCtrlHandler(None, False)


def component(name):
    """The file of a built strategy or test guest."""
    folders = [program().parent / "strategies", program().parent / "test-guests"]
    if os.environ.get("KUMIKI_STRATEGIES"):
        folders.insert(0, pathlib.Path(os.environ["KUMIKI_STRATEGIES"]))
    for folder in folders:
        if (folder / f"{name}.wasm").is_file():
            return str(folder / f"{name}.wasm")
    pytest.skip(f"{name}.wasm is not built; `cargo xtask guests` builds it")


def shortest(text):
    """An amount in the shortest form of its decimal text."""
    number = f"{Decimal(text).normalize():f}"
    return "0" if number == "-0" else number


def wait_until(condition, what):
    """Waits until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not so in time: {what}"
        time.sleep(0.02)


def not_under_wine(reason):
    """Marks a test of what Windows has and Wine has not."""
    return pytest.mark.skipif(IS_WINE, reason=f"Wine: {reason}")


def interrupt(process):
    """Ctrl-C. On Windows the process has to be started with OWN_CONSOLE."""
    if os.name == "nt":
        subprocess.run([sys.executable, "-c", CTRL_C, str(process.pid)], check=True, timeout=PATIENCE)
    else:
        process.send_signal(signal.SIGINT)


def interrupt_this():
    """Ctrl-C for this process."""
    if os.name == "nt":
        signal.raise_signal(signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)


def is_alive(pid):
    """Whether there is such a process."""
    if os.name == "nt":
        # The right to wait for it, and what a wait of no time says of one that goes on.
        kernel = ctypes.windll.kernel32
        process = kernel.OpenProcess(0x0010_0000, False, pid)
        try:
            return bool(process) and kernel.WaitForSingleObject(process, 0) == 0x102
        finally:
            kernel.CloseHandle(process)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def lock(file):
    """Locks an open file for this process alone, until it is closed."""
    if os.name == "nt":
        import msvcrt
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl
        fcntl.flock(file, fcntl.LOCK_EX)


def python_program(path, text):
    """A program that is a text in Python, for those who start programs by one path, which is returned."""
    script = path.with_suffix(".py")
    script.write_text(text, encoding="utf-8")
    begin, suffix = ("@", ".bat") if os.name == "nt" else ("#!/bin/sh\nexec ", "")
    path = path.with_suffix(suffix)
    path.write_text(f'{begin}"{sys.executable}" "{script}"\n', encoding="utf-8")
    path.chmod(0o700)
    return str(path)


def replayed(command, folder, cache):
    """What a command of `kumiki replay` says of the folder of a run, whose end must be good."""
    asked = [program(), "replay", command, folder, "--format", "json", "--cache-dir", cache]
    ended = subprocess.run(list(map(str, asked)), capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, (command, folder, ended)
    return json.loads(ended.stdout)


class Market:
    """A folder of sample data of some days. Days are counted from 0; what is replayed begins with day 1, so that
    the close before it is known, around which the day's price limits lie."""

    def __init__(self, folder, instruments):
        self.folder, self.instruments = folder, instruments
        self.files = sorted(folder.glob("equities_trades_*.csv.gz"))
        self.days = sorted({row["Date"] for row in self.vendor_rows()})

    def vendor_rows(self):
        for path in self.files:
            with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
                yield from csv.DictReader(file)

    def trades(self, instrument, days=None):
        """The trades of an instrument in the order of the file, as the engine tells them: price, shares, and
        nanoseconds since 1970 UTC."""
        code = instrument.split(".")[0] + "0"
        rows = [row for row in self.vendor_rows() if row["Code"] == code and row["Date"] in (days or self.days)]
        return [(shortest(row["Price"]), shortest(row["TradingVolume"]), nanos(row)) for row in rows]

    def span(self, first=1, last=1):
        """A range of days for a command, by their places."""
        return {"start_date": self.days[first], "end_date": self.days[last]}

    def load(self, client, first=1, last=1, granularity="Trade", instruments=None):
        """Loads a range of days."""
        instruments = instruments or self.instruments[:1]
        more = {"instrument_ids": instruments} if len(instruments) > 1 else {}
        return client.ask(
            "LoadReplayData", "ReplayDataLoaded", instrument_id=instruments[0], granularity=granularity,
            **self.span(first, last), **more,
        )

    def config(self, strategy, first=1, last=1, granularity="Trade", instruments=None, **more):
        """What a strategy is started with."""
        instruments = instruments or self.instruments[:1]
        several = {"instrument_ids": instruments} if len(instruments) > 1 else {}
        return {
            "instrument_id": instruments[0], **several, **self.span(first, last), "granularity": granularity,
            "initial_cash": str(CASH), "strategy_file": component(strategy), "execution": EXECUTION, **more,
        }

    def run(self, client, strategy="empty", strategy_id="one", **more):
        """Starts a strategy."""
        config = self.config(strategy, **more)
        return client.ask(
            "StartEngine", "EngineStarted", engine="Backtest", strategy_id=strategy_id, config=config
        )


def write_market(folder, *days):
    """A market of one instrument, 7203, from trades of its days: each a date and texts like `09:00:00 850 100`,
    time, price and shares."""
    folder.mkdir(parents=True)
    with gzip.open(folder / "equities_trades_202501.csv.gz", "wt", encoding="utf-8") as file:
        file.write("Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId\n")
        for date, *trades in days:
            for number, trade in enumerate(trades):
                clock, price, shares = trade.split()
                session = "01" if clock < "12" else "02"
                file.write(f"{date},72030,{clock}.000000,{session},{price},{shares},{number:012}\n")
    return Market(folder, ["7203.TSE"])


def nanos(row):
    """The time of a vendor's row in nanoseconds since 1970 UTC."""
    whole, _, fraction = row["Time"].partition(".")
    clock = datetime.datetime.fromisoformat(f"{row['Date']}T{whole}").replace(tzinfo=JAPAN)
    return int(clock.timestamp()) * 10**9 + int(fraction.ljust(9, "0"))


class Engine:
    """A running `kumiki serve`."""

    def __init__(self, folder, data, standalone=False, more=(), env=None):
        self.folder, self.token = folder, TOKEN
        self.config_dir, self.cache_dir = folder / "config", folder / "cache"
        for needed in (self.config_dir, self.cache_dir):
            needed.mkdir(parents=True, exist_ok=True)
        arguments = ["--data", str(data), *more]
        if standalone:
            arguments += ["--standalone", "--config-dir", str(self.config_dir), "--cache-dir", str(self.cache_dir)]
            arguments += ["--port", "0"]
        self.stderr = folder / "stderr.txt"
        with open(self.stderr, "ab") as stderr:
            self.process = spawn(
                arguments, stdin=subprocess.DEVNULL if standalone else subprocess.PIPE, stderr=stderr, cwd=folder,
                env=env,
            )
        if not standalone:
            self.process.stdin.write(self.first_line().encode())
            self.process.stdin.flush()
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            line = self.lines.get(timeout=PATIENCE)
            assert line is not None, f"it ended with {self.process.wait()}: {self.stderr.read_text()}"
            listening = json.loads(line)
            assert list(listening) == ["listening"] and 0 < listening["listening"] < 65536, line
            self.port = listening["listening"]
            if standalone:
                self.token = self.session()["token"]
        except BaseException:
            self.kill()
            raise

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def first_line(self, **other):
        """The line by which a program that starts the engine tells it what it needs."""
        return start_line(self.config_dir, self.cache_dir, **other)

    @property
    def session_file(self):
        return self.config_dir / "engine-session.json"

    def session(self):
        """The session's file: whole, of this process, for nobody else's eyes."""
        session = json.loads(self.session_file.read_text(encoding="utf-8"))
        assert set(session) == {"port", "token", "pid", "schema_major", "schema_minor", "started_at"}
        assert (session["port"], session["pid"]) == (self.port, self.process.pid)
        assert (session["schema_major"], session["schema_minor"]) == (SCHEMA_MAJOR, SCHEMA_MINOR)
        datetime.datetime.fromisoformat(session["started_at"].replace("Z", "+00:00"))
        if os.name == "posix":
            assert stat.S_IMODE(self.session_file.stat().st_mode) == 0o600
        return session

    def client(self, **more):
        """A new connection."""
        return Client(self.port, more.pop("token", self.token), **more)

    def runs(self):
        """The folders of runs that are complete, by their names."""
        folders = self.cache_dir / "runs"
        return {folder.name: folder for folder in folders.glob("*") if (folder / "manifest.json").is_file()}

    def ended(self):
        """Waits for the end of the process and gives its exit code."""
        return self.process.wait(timeout=PATIENCE)

    def kill(self):
        """Ends it at once, as a crash does."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()

    def suspend(self):
        """Halts it, until SIGCONT; where the system tells, it has come to a halt when this returns."""
        self.signal("SIGSTOP")
        state = pathlib.Path(f"/proc/{self.process.pid}/stat")
        if state.exists():
            wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", "it is halted")

    def signal(self, name):
        """Sends a signal; SIGINT is Ctrl-C."""
        interrupt(self.process) if name == "SIGINT" else self.process.send_signal(getattr(signal, name))


def start_line(config_dir, cache_dir, **other):
    """The line that `kumiki serve` reads."""
    line = {
        "port": 0, "token": TOKEN, "config_dir": str(config_dir), "cache_dir": str(cache_dir),
        "dev_login_allowed": False,
    }
    return json.dumps({**line, **other}) + "\n"


def spawn(arguments, **how):
    """`kumiki serve --mode replay` with some more arguments."""
    environment = {name: value for name, value in os.environ.items() if name not in ("KUMIKI_DATA", "KUMIKI_CACHE")}
    command = [str(program()), "serve", "--mode", "replay", *arguments]
    how = {**OWN_CONSOLE, **how, "env": {**environment, **(how.get("env") or {})}}
    # A file that may not grow is an error to it, and not its death by a signal.
    return subprocess.Popen(command, stdout=subprocess.PIPE, restore_signals=False, **how)
