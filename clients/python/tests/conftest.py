"""Runs the built `kumiki` once on sample data; the tests read the run's folder."""

import errno
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

# What these two assert is told as well as in the tests themselves.
pytest.register_assert_rewrite("bare_client", "browser", "console_pages", "engine_process", "frames", "live_world",
                              "local_world", "market_world", "page_access", "plain_client", "sessions")

#: What is for Windows alone.
collect_ignore = [] if os.name == "nt" else ["test_windows.py"]

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The package as it is in the source tree; the wheel is tried by `cargo xtask dist`.
SOURCE = ROOT / "clients" / "python" / "src"
sys.path.insert(0, str(SOURCE))


#: The port of a production gateway, which no test may reach: it is held while tests run, and whoever connects to it fails
#: the run. `cargo xtask test` holds it itself, and says so.
PRODUCTION_PORT, HELD = 18080, "KUMIKI_PRODUCTION_PORT_HELD"


class ProductionPort:
    """Holds the port, and counts who connects."""

    def __init__(self, port=PRODUCTION_PORT):
        self.listeners, self.connections = [], 0
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            try:
                listener = socket.socket(family, socket.SOCK_STREAM)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((address, port))
            except OSError as error:
                if family == socket.AF_INET6 and error.errno != errno.EADDRINUSE:
                    continue
                raise
            listener.listen()
            self.listeners.append(listener)
            threading.Thread(target=self.take, args=(listener,), daemon=True).start()

    def take(self, listener):
        try:
            while True:
                listener.accept()[0].close()
                self.connections += 1
        except OSError:
            pass

    def release(self):
        """Gives the port back, and the number of connections."""
        for listener in self.listeners:
            listener.close()
        return self.connections


def pytest_configure(config):
    if hasattr(config, "workerinput") or os.environ.get(HELD):
        return
    try:
        config.production_port = ProductionPort()
    except OSError as error:
        pytest.exit(f"port {PRODUCTION_PORT} is that of a production gateway, and somebody has it ({error}); end that "
                    "program before tests, which must not reach it", 4)


def pytest_sessionfinish(session):
    port = getattr(session.config, "production_port", None)
    if port is not None and port.release():
        print(f"\na test has connected to port {PRODUCTION_PORT}, the production gateway's")
        session.exitstatus = 1


def program():
    """The built program: as told by KUMIKI_PROGRAM, else where cargo puts it."""
    told = os.environ.get("KUMIKI_PROGRAM")
    if told:
        return pathlib.Path(told)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / ("kumiki.exe" if os.name == "nt" else "kumiki")


@pytest.fixture
def world(tmp_path):
    """Makes worlds of a broker, an engine and a client, which end with the test."""
    from live_world import World  # It needs what this file makes ready.
    worlds = []

    def world(*arguments, **how):
        worlds.append(World(tmp_path / f"world-{len(worlds)}", *arguments, **how))
        return worlds[-1]

    yield world
    for one in worlds:
        one.close()


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory):
    """Temporary files of programs lie in pytest's own folder, where those of a run that was killed are removed."""
    # Those of Ray, whose sockets need short paths, stay where they were.
    os.environ.setdefault("RAY_TMPDIR", tempfile.gettempdir())
    before, folder = os.environ.get("TMPDIR"), tmp_path_factory.mktemp("tmp")
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    yield
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before
    tempfile.tempdir = None


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """A folder to work in, and the program as a function that runs there."""
    kumiki = program()
    if not kumiki.is_file():
        pytest.skip(f"{kumiki} is not built; `cargo xtask test` builds it")
    folder = tmp_path_factory.mktemp("desk")
    environment = {**os.environ, "KUMIKI_CACHE": str(folder / "cache")}

    def call(*arguments):
        subprocess.run([str(kumiki), *arguments], check=True, cwd=folder, env=environment)

    return folder, call


@pytest.fixture(scope="session")
def run_folder(desk):
    """The folder of a run that trades often for 40 days."""
    folder, call = desk
    call("data", "sample", "--out", "data", "--instrument", "7203.TSE", "--days", "40",
         "--trades-per-day", "2000", "--seed", "5")
    call("replay", "run", "sma-cross", "--data", "data", "--instrument", "7203.TSE", "--param", "fast=10",
         "--param", "slow=50", "--param", "quantity=500", "--cash", "3000000", "--out", "run", "--quiet")
    return folder / "run"


@pytest.fixture(scope="session")
def sweep_folder(desk, run_folder):
    """A folder with a sweep of nine runs in `sweep`, and each of them as a run in `run-FAST-SLOW`."""
    folder, call = desk
    assert run_folder.is_dir(), "it made the data"
    common = ("sma-cross", "--data", "data", "--instrument", "7203.TSE", "--param", "quantity=500", "--quiet")
    call("replay", "sweep", *common, "--grid", "fast=5,10,20", "--grid", "slow=30,50,80", "--out", "sweep")
    for fast in (5, 10, 20):
        for slow in (30, 50, 80):
            call("replay", "run", *common, "--param", f"fast={fast}", "--param", f"slow={slow}",
                 "--out", f"run-{fast}-{slow}")
    return folder


@pytest.fixture(scope="session")
def market(desk):
    """Three days of trades and bars of two instruments, for the engine."""
    import engine_process

    folder, call = desk
    instruments = ["7203.TSE", "9984.TSE"]
    call("data", "sample", "--out", "market", "--instrument", instruments[0], "--instrument", instruments[1],
         "--days", "3", "--trades-per-day", "1500", "--seed", "11", "--bars")
    return engine_process.Market(folder / "market", instruments)


@pytest.fixture
def start(tmp_path, market):
    """Starts engines over the market, each in a folder of its own, and ends them after the test."""
    import engine_process

    engines = []

    def start(folder=None, data=market.folder, **how):
        engine = engine_process.Engine(folder or tmp_path / f"engine-{len(engines)}", data, **how)
        engines.append(engine)
        return engine

    yield start
    for engine in engines:
        engine.kill()
        print(f"what {engine.folder.name} said:", engine.stderr.read_text(encoding="utf-8", errors="replace"))


@pytest.fixture(autouse=True)
def frames(monkeypatch):
    """All frames of the package's sessions, both ways, which must fit the schemas when the test is over."""
    from frames import Frames

    frames = Frames(monkeypatch)
    yield frames
    frames.check()


@pytest.fixture
def session(tmp_path, market):
    """Makes sessions with engines of their own; they are closed after the test."""
    import kumiki

    sessions = []

    def session(**how):
        how = {"data": market.folder, "attach": None, "cache_dir": tmp_path / "cache", "program": program(), **how}
        sessions.append(kumiki.ReplaySession(**how))
        return sessions[-1].open()

    yield session
    for one in sessions:
        one.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for the tests of a file; each makes tabs of its own."""
    from browser import Browser

    one = Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture
def client(start):
    """A connection to an engine of its own, which is told the trades of 7203."""
    with start().client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker="7203")
        yield client
