"""How sessions of the Python package find an engine, start one, and know it for what it is."""

import asyncio
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time

import kumiki
import pytest
import websockets
from conftest import SOURCE, program
from engine_process import component, is_alive, wait_until
from kumiki import _attach
from plain_client import proof

NONCE = "5e" * 32


@pytest.fixture
def standalone(start):
    return start(standalone=True)


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """The system's folders lie elsewhere, so that nobody's own engine is met."""
    for name in ("XDG_CONFIG_HOME", "APPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "system"))
    for name in ("KUMIKI_ENGINE_TOKEN", "KUMIKI_PORT", "KUMIKI_CACHE", "KUMIKI_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "system"


def engine_id(engine):
    """Which engine it is, as it says to everybody."""
    with engine.client() as client:
        return client.ready["engine_session_id"]


def test_an_engine_that_runs_is_attached_to(standalone, elsewhere, monkeypatch):
    places = (standalone.session_file, standalone.config_dir, str(standalone.session_file))
    for attach in places:
        with kumiki.ReplaySession(attach=attach) as one:
            assert (one.mode, one.session().state) == ("attach", "Idle")
    port = standalone.port
    for attach in (port, str(port), f"127.0.0.1:{port}", f"ws://localhost:{port}/"):
        with kumiki.ReplaySession(attach=attach, config_dir=standalone.config_dir) as one:
            assert one.mode == "attach"
        with kumiki.ReplaySession(attach=attach, token=standalone.token) as one:
            assert one.mode == "attach"
        with pytest.raises(kumiki.AuthError, match="KUMIKI_ENGINE_TOKEN"):
            kumiki.ReplaySession(attach=attach).open()
    with pytest.raises(kumiki.AuthError) as refused:
        kumiki.ReplaySession(attach=port, token="0" * 64).open()
    assert refused.value.code == "auth_failed"
    monkeypatch.setenv("KUMIKI_ENGINE_TOKEN", standalone.token)
    with kumiki.ReplaySession(attach=port) as one:
        assert one.mode == "attach"
    assert standalone.process.poll() is None, "it goes on after its clients"
    for wrong in ("10.0.0.1:19876", "wss://127.0.0.1:1", "127.0.0.1", "no/such/file", "127.0.0.1:99999"):
        with pytest.raises(ValueError, match="attach"):
            kumiki.ReplaySession(attach=wrong).open()
    with pytest.raises(kumiki.ConnectionLostError):
        kumiki.ReplaySession(attach=1).open()


def test_auto_attaches_where_it_may(standalone, elsewhere, market, tmp_path):
    cache, config = tmp_path / "cache", standalone.config_dir
    how = {"program": program(), "cache_dir": cache}
    with kumiki.ReplaySession(config_dir=config) as one, kumiki.ReplaySession(data=market.folder, config_dir=config):
        assert one.mode == "attach"
    # Nothing in the system's folder; then the running engine; but not for data of one's own.
    modes = []
    for data in (market.folder, None, market.folder):
        with kumiki.ReplaySession(data=data, **how) as one:
            modes.append(one.mode)
        (elsewhere / "kumiki").mkdir(parents=True, exist_ok=True)
        (elsewhere / "kumiki" / "engine-session.json").write_text(standalone.session_file.read_text())
    assert modes == ["spawn", "attach" if sys.platform != "darwin" else modes[1], "spawn"]


def test_the_folder_of_the_environment_is_the_default(standalone, start, elsewhere, market, tmp_path, monkeypatch):
    """As for the program: `config_dir`, then KUMIKI_CONFIG_DIR, then the system's folder."""
    how = {"program": program(), "cache_dir": tmp_path / "cache"}
    monkeypatch.setenv("KUMIKI_CONFIG_DIR", str(standalone.config_dir))
    with kumiki.ReplaySession(**how) as one:
        assert (one.mode, one._core._connection.ready["engine_session_id"]) == ("attach", engine_id(standalone))
    with kumiki.ReplaySession(attach=standalone.port, **how) as one:
        assert one.mode == "attach", "its token is in that folder"
    other = start(standalone=True)
    with kumiki.ReplaySession(config_dir=other.config_dir, **how) as one:
        assert one._core._connection.ready["engine_session_id"] == engine_id(other) != engine_id(standalone)
    # An own engine of a replay has a folder that goes with it, so two may run.
    monkeypatch.setenv("KUMIKI_CONFIG_DIR", str(tmp_path / "told"))
    with kumiki.ReplaySession(data=market.folder, **how) as one, kumiki.ReplaySession(
        attach=None, data=market.folder, **how
    ) as two:
        assert (one.mode, two.mode) == ("spawn", "spawn")
    assert not (tmp_path / "told").exists()
    monkeypatch.setenv("KUMIKI_CONFIG_DIR", "")
    assert _attach.config_folder() == _attach.system_folder("config")


def test_auto_tries_the_token_and_port_that_are_told(standalone, start, elsewhere, market, tmp_path, monkeypatch):
    """The session file, then KUMIKI_ENGINE_TOKEN with KUMIKI_PORT, then an engine of its own."""
    how = {"program": program(), "cache_dir": tmp_path / "cache"}
    monkeypatch.setenv("KUMIKI_DATA", str(market.folder))
    monkeypatch.setenv("KUMIKI_ENGINE_TOKEN", standalone.token)
    monkeypatch.setenv("KUMIKI_PORT", str(standalone.port))
    with kumiki.ReplaySession(**how) as one:
        assert (one.mode, one._core._connection.ready["engine_session_id"]) == ("attach", engine_id(standalone))
    # Data that are named are those of an own engine, unless a folder is named too where one may run.
    with kumiki.ReplaySession(config_dir=tmp_path / "empty", data=market.folder, **how) as one:
        assert one.mode == "attach"
    with kumiki.ReplaySession(data=market.folder, **how) as one:
        assert one.mode == "spawn"
    with kumiki.ReplaySession(attach=None, **how) as one:
        assert one.mode == "spawn"
    # What the session file names goes first.
    other = start(standalone=True)
    with kumiki.ReplaySession(config_dir=other.config_dir, **how) as one:
        assert one._core._connection.ready["engine_session_id"] == engine_id(other) != engine_id(standalone)
    # The token may be an argument.
    monkeypatch.delenv("KUMIKI_ENGINE_TOKEN")
    for token, mode in ((standalone.token, "attach"), (None, "spawn")):
        with kumiki.ReplaySession(token=token, **how) as one:
            assert one.mode == mode


@pytest.mark.parametrize("told", ["nobody's port", "another token", "any port", "no token"])
def test_a_token_of_no_engine_is_in_nobodys_way(standalone, elsewhere, market, tmp_path, monkeypatch, caplog, told):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobodys = taken.getsockname()[1]
    port = {"nobody's port": nobodys, "any port": 0}.get(told, standalone.port)
    monkeypatch.setenv("KUMIKI_DATA", str(market.folder))
    monkeypatch.setenv("KUMIKI_PORT", str(port))
    monkeypatch.setenv("KUMIKI_ENGINE_TOKEN", {"another token": "x" * 64, "no token": ""}.get(told, standalone.token))
    with kumiki.ReplaySession(cache_dir=tmp_path / "cache", program=program()) as one:
        assert one.mode == "spawn"
    words = [record.getMessage() for record in caplog.records]
    assert bool(words) == (told in ("nobody's port", "another token")), words
    assert standalone.token not in str(words)


@pytest.mark.parametrize("port", ["many", "-1", "65536", "1e3", "９"])
def test_a_port_that_is_told_wrong_is_named(elsewhere, monkeypatch, port):
    monkeypatch.setenv("KUMIKI_ENGINE_TOKEN", "x" * 64)
    monkeypatch.setenv("KUMIKI_PORT", port)
    with pytest.raises(kumiki.ValidationError, match="^KUMIKI_PORT: .* a port from 0 to 65,535"):
        kumiki.ReplaySession().open()


def test_the_port_that_is_not_told_is_that_of_the_program(monkeypatch):
    """Nobody is asked there: somebody's own engine may run at it."""
    table = kumiki.schema("configuration.md")
    default, variable = re.search(r"`engine.port` \| [^|]+ \| (\d+) \| `(\w+)`", table).groups()
    monkeypatch.delenv("KUMIKI_PORT", raising=False)
    monkeypatch.setenv("KUMIKI_ENGINE_TOKEN", "x" * 64)
    door = _attach.told(None)
    assert (str(door.port), _attach.PORT_VARIABLE, door.token) == (default, variable, "x" * 64)
    monkeypatch.delenv("KUMIKI_ENGINE_TOKEN")
    assert _attach.told(None) is None


@pytest.mark.parametrize("file", ["a dead process", "nobody's port", "another token", "nothing", "no JSON", "a pipe"])
def test_a_file_of_no_engine_is_in_nobodys_way(standalone, market, tmp_path, file, caplog):
    said = json.loads(standalone.session_file.read_text())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    changes = {"a dead process": {"pid": ended.pid}, "nobody's port": {"port": 1}, "another token": {"token": "x" * 64}}
    config = tmp_path / "config"
    config.mkdir()
    if file == "a pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("named pipes")
        os.mkfifo(config / "engine-session.json")
    else:
        text = json.dumps({**said, **changes[file]}) if file in changes else {"nothing": "", "no JSON": "{"}[file]
        (config / "engine-session.json").write_text(text)
    how = {"data": market.folder, "cache_dir": tmp_path / "cache", "program": program(), "config_dir": config}
    with kumiki.ReplaySession(**how) as one:
        assert one.mode == "spawn"
        # Now the file is of this engine, and others find it.
        with kumiki.ReplaySession(config_dir=config) as other:
            assert other.mode == "attach"
    assert not (config / "engine-session.json").exists()
    assert bool(caplog.records) == (file != "a dead process"), "what is left alone is told"
    with pytest.raises(kumiki.ConnectionLostError):
        kumiki.ReplaySession(attach=config).open()


LIMIT = "it has more than 65,536 bytes"
RIGHT = {"port": 19876, "token": "x" * 64, "pid": os.getpid()}
ODD_FILES = {
    "empty": ("", "it holds no JSON object"),
    "half": ('{"port":', "it holds no JSON object"),
    "bytes": (b"\xff\xfe\x00", "it holds no JSON object"),
    "a list": ("[1]", "it holds no JSON object"),
    "deep": ("[" * 60_000, "it holds no JSON object"),
    "10 MB": ("x" * 10_000_000, LIMIT),
    "a little too long": (json.dumps(RIGHT).ljust(65_537), LIMIT),
    "no port": ({"token": "x", "pid": 1}, "its port is not a port from 1 to 65,535"),
    "port 0": ({**RIGHT, "port": 0}, "its port is not a port from 1 to 65,535"),
    "port 65536": ({**RIGHT, "port": 65_536}, "its port is not a port from 1 to 65,535"),
    "a port as text": ({**RIGHT, "port": "19876"}, "its port is not a port from 1 to 65,535"),
    "port true": ({**RIGHT, "port": True}, "its port is not a port from 1 to 65,535"),
    "no token": ({**RIGHT, "token": None}, "its token is not a text"),
    "an empty token": ({**RIGHT, "token": ""}, "its token is not a text"),
    "a token of numbers": ({**RIGHT, "token": [1]}, "its token is not a text"),
    "pid 0": ({**RIGHT, "pid": 0}, "its pid is not the number of a process"),
    "pid as text": ({**RIGHT, "pid": "1"}, "its pid is not the number of a process"),
    "a pid of no system": ({**RIGHT, "pid": 2**70}, f"there is no process {2**70}"),
}


@pytest.mark.parametrize("what", [*ODD_FILES, "a pipe", "a folder", "a device", "a loop", "nothing", "a stale pid"])
def test_a_session_file_that_is_none_is_named(tmp_path, what):
    """In its own words, and without waiting for a pipe, a device or a large file."""
    path = tmp_path / "engine-session.json"
    if what in ODD_FILES:
        content, words = ODD_FILES[what]
        path.write_bytes(content if isinstance(content, bytes) else
                         (content if isinstance(content, str) else json.dumps(content)).encode())
    elif what == "a stale pid":
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        path.write_text(json.dumps({**RIGHT, "pid": ended.pid}))
        words = f"there is no process {ended.pid}"
    elif what == "nothing":
        words = "there is no "
    elif what == "a folder":
        path.mkdir()
        words = "plain file" if os.name == "posix" else "cannot be read"
    elif os.name != "posix":
        pytest.skip("files of POSIX")
    elif what == "a pipe":
        os.mkfifo(path)
        words = "it is no plain file"
    else:
        path.symlink_to("/dev/zero" if what == "a device" else path)
        words = "it is no plain file" if what == "a device" else "cannot be read"
    for attach in (path, tmp_path):
        with pytest.raises(kumiki.ConnectionLostError) as refused:
            kumiki.ReplaySession(attach=attach).open()
        assert refused.value.code == "no_engine" and str(refused.value).startswith("attach: ")
        assert words in str(refused.value) and str(path) in str(refused.value), refused.value
    assert "x" * 64 not in str(refused.value), "no token is shown"


def test_two_sessions_of_one_engine(standalone, market):
    """Both are told what happens, and each gets its own answers."""
    with kumiki.ReplaySession(attach=standalone.config_dir) as one, \
            kumiki.ReplaySession(attach=standalone.config_dir) as other:
        one.load("7203.TSE", market.days[1], market.days[2])
        wait_until(lambda: other.status == "loaded", "the other session is told of the load")
        run = one.run(strategy_file=component("empty"), wait=False, multiplier=20, initial_cash=100_000_000)
        wait_until(lambda: other.status == "running" and other.session().rows_done, "and of the run")
        sent = []
        threads = [
            threading.Thread(target=lambda who=who, name=f"{name}{number}": sent.append(who.submit_order(
                instrument_id="7203.TSE", side="BUY", quantity=100, client_order_id=name)))
            for name, who in (("a", one), ("b", other)) for number in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({answer.client_order_id for answer in sent}) == len({answer.venue_order_id for answer in sent}) == 10
        with kumiki.ReplaySession(attach=standalone.config_dir) as late:
            assert late.status == "running"
            result = late.stop()
        assert run.result() == result and other.status == one.status == "stopped"
    assert standalone.process.poll() is None


def test_an_engine_that_trades_is_none_to_replay(market, tmp_path):
    config = tmp_path / "config"
    command = [program(), "serve", "--mode", "live", "--standalone", "--port", "0", "--config-dir", config,
               "--cache-dir", tmp_path / "cache"]
    engine = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        engine.stdout.readline()
        with pytest.raises(ValueError) as refused:
            kumiki.ReplaySession(attach=config).open()
        assert isinstance(refused.value, kumiki.ModeError) and refused.value.code == "mode_mismatch"
    finally:
        engine.kill()
        engine.communicate()


# --- What answers at the port.


class Impostor:
    """A server that has no token, and keeps what it is sent."""

    def __init__(self, *answers):
        self.answers, self.heard, self.port = answers, [], None
        self._begun = threading.Event()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True).start()
        assert self._begun.wait(30)

    async def _serve(self):
        from websockets.asyncio.server import serve

        async with serve(self._answer, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            self._begun.set()
            self._end = asyncio.Event()
            await self._end.wait()

    async def _answer(self, socket):
        for answer in self.answers:
            told = answer(self.heard) if callable(answer) else json.dumps(answer)
            for text in told if isinstance(told, list) else [told]:
                await socket.send(text)
            try:
                self.heard.append(json.loads(await socket.recv()))
            except websockets.exceptions.ConnectionClosed:
                return

    def close(self):
        self._loop.call_soon_threadsafe(self._end.set)


CHALLENGE = {"event": "Challenge", "server_nonce": NONCE, "schema_major": 1, "schema_minor": 4}
READY = {"event": "Ready", "schema_major": 1, "schema_minor": 4, "session_state": "Idle", "engine_version": "0",
         "engine_session_id": "x", "capabilities": {"strategy_engine": {"live": False, "replay": True}},
         "venue_capabilities": {}}


def shown(token, side):
    """A Ready with a proof, as an engine makes it that has this token."""
    def ready(heard):
        own = heard[0]["client_nonce"]
        nonces = (own, NONCE) if side == "server" else (NONCE, own)
        return json.dumps({**READY, "proof": proof(token, side, *nonces, "replay")})
    return ready


@pytest.mark.parametrize("answers, error", [
    ((CHALLENGE, {**READY, "proof": "0" * 64}), kumiki.AuthError),
    ((CHALLENGE, READY), kumiki.AuthError),
    ((CHALLENGE, shown("another token", "server")), kumiki.AuthError),
    ((CHALLENGE, lambda heard: json.dumps({**READY, "proof": heard[0]["proof"]})), kumiki.AuthError),
    ((CHALLENGE, shown("a token of sixteen", "client")), kumiki.AuthError),
    ((CHALLENGE, {"event": "Session", "proof": "0" * 64}), kumiki.AuthError),
    (({**CHALLENGE, "schema_major": 2}, READY), kumiki.SchemaError),
    ((READY,), kumiki.SchemaError),
    ((lambda _: "no JSON",), kumiki.SchemaError),
    ((lambda _: "[]",), kumiki.SchemaError),
], ids=["wrong", "none", "other token", "ours back", "a client's", "no Ready", "major", "no Challenge", "text", "list"])
def test_nothing_is_sent_to_who_does_not_know_the_token(answers, error, frames):
    impostor = Impostor(*answers)
    with pytest.raises(error):
        kumiki.ReplaySession(attach=impostor.port, token="a token of sixteen", timeout=30).open()
    time.sleep(0.1)
    impostor.close()
    assert [message["op"] for message in impostor.heard] in ([], ["Hello"])
    assert "a token of sixteen" not in json.dumps(impostor.heard)
    if error is kumiki.SchemaError:
        assert impostor.heard == []
    # What it said fits no schema.
    frames.received.clear()


def test_what_knows_the_token_is_taken_and_progress_is_told():
    def progress(heard):
        request = heard[1]["request_id"]
        return json.dumps({"event": "Progress", "request_id": request, "kind": "load", "done": 1, "total": 2,
                           "unit": "bytes"})

    def refused(heard):
        return [json.dumps({"event": "Error", "request_id": load["request_id"], "code": "data_not_found",
                            "message": "none"}) for load in (heard[2], heard[1])]

    server = Impostor(CHALLENGE, shown("a token of sixteen", "server"), progress, refused)
    told = []
    with kumiki.ReplaySession(attach=server.port, token="a token of sixteen", timeout=2) as one:
        def heard(step):
            told.append((step, threading.current_thread()))
            with pytest.raises(kumiki.DataNotFoundError):
                one.load("7203.TSE", "2025-01-06", "2025-01-06")

        with pytest.raises(kumiki.DataNotFoundError):
            one.load("7203.TSE", "2025-01-06", "2025-01-06", on_progress=heard)
    server.close()
    assert told == [(kumiki.Progress("load", 1, 2, "bytes"), threading.current_thread())]


def test_a_server_that_says_nothing_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(kumiki.EngineTimeoutError, match="did not greet"):
            kumiki.ReplaySession(attach=silent.getsockname()[1], token="x" * 16, timeout=0.5).open()


# --- Engines of a session's own.


def test_a_start_that_fails_says_why(tmp_path, market, monkeypatch):
    how = {"attach": None, "cache_dir": tmp_path / "cache", "program": program()}
    with pytest.raises(kumiki.EngineStartError, match="no data folder") as failed:
        kumiki.ReplaySession(data=tmp_path / "nowhere", **how).open()
    assert failed.value.exit_code == 14
    (tmp_path / "file").write_text("")
    with pytest.raises(kumiki.EngineStartError) as failed:
        kumiki.ReplaySession(**{**how, "data": market.folder, "cache_dir": tmp_path / "file" / "cache"}).open()
    assert failed.value.exit_code == 13
    with pytest.raises(kumiki.ProgramNotFoundError, match="program: .*nothing is no program"):
        kumiki.ReplaySession(**{**how, "program": tmp_path / "nothing"}).open()
    monkeypatch.setenv("KUMIKI_PROGRAM", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="KUMIKI_PROGRAM"):
        kumiki.ReplaySession(**{**how, "program": None}).open()
    monkeypatch.setenv("KUMIKI_PROGRAM", str(how["program"]))
    with kumiki.ReplaySession(**{**how, "program": None, "data": market.folder}) as one:
        assert one.mode == "spawn"
    with pytest.raises(ValueError, match="log_level"):
        kumiki.ReplaySession(**how, log_level="loud").open()


def test_what_the_engine_says_is_logged(session, caplog):
    with caplog.at_level(logging.INFO, logger="kumiki.engine"):
        session(log_level="info").close()
    assert "listening port=" in caplog.text


HELD = """
import os, sys, kumiki
session = kumiki.ReplaySession(data=sys.argv[1], cache_dir=sys.argv[2], attach=None, program=sys.argv[3]).open()
session.load("7203.TSE", sys.argv[4], sys.argv[4])
run = session.run(strategy_file=sys.argv[5], multiplier=1, wait=False)
print(session._core._process.pid, flush=True)
sys.stdin.readline()
if sys.argv[6] == "killed":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["killed", "ends"])
def test_an_engine_ends_with_its_session(market, tmp_path, how):
    arguments = [market.folder, tmp_path / "cache", program(), market.days[1], component("empty"), how]
    script = subprocess.Popen(
        [sys.executable, "-c", HELD, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    engine = int(script.stdout.readline())
    assert is_alive(engine)
    script.communicate("\n")
    wait_until(lambda: not is_alive(engine), "the engine ends by itself")
    kept = list((tmp_path / "cache" / "runs").glob("*/manifest.json"))
    assert len(kept) <= 1, "the run that was under way is kept, if it had a row"
