"""`kumiki watch` before an engine that is played here, so that it is known what was sent, and when."""

import contextlib
import json
import os
import re
import secrets
import select
import signal
import socket as sockets
import struct
import subprocess
import threading
import time

import pytest
from conftest import program
from engine_process import OWN_CONSOLE, interrupt
from plain_client import PATIENCE, SCHEMA_MAJOR, SCHEMA_MINOR, proof
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

VENUE = "local_broker"
TOKEN = "a token of sixteen"
NEEDS_UNIX = pytest.mark.skipif(os.name != "posix", reason="signals and terminals of Unix")


class Played:
    """An engine with one client, which does `script(engine, command)` for each command."""

    def __init__(self, folder, script, state="Ready"):
        self.config, self.script, self.state = folder, script, state
        self.push, self.code, self.is_silent = None, None, False
        self.commands, self.socket = [], None
        self.server = serve(self._serve, "127.0.0.1", 0, compression=None)
        self.port = self.server.socket.getsockname()[1]
        (folder / "engine-session.json").write_text(json.dumps({"port": self.port, "token": TOKEN}))
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join(PATIENCE)

    def tell(self, event, **fields):
        self.socket.send(json.dumps({"event": event, **fields}))

    def _serve(self, socket):
        self.socket = socket
        nonce = secrets.token_hex(32)
        versions = {"schema_major": SCHEMA_MAJOR, "schema_minor": SCHEMA_MINOR}
        self.tell("Challenge", server_nonce=nonce, **versions)
        with contextlib.suppress(ConnectionClosed):
            hello = json.loads(socket.recv())
            able = {"requires_local_app": True, "max_push_symbols": 50, "supports_amend": False,
                    "requires_trade_password_for_cancel": True, "is_production": False}
            self.tell("Ready", **versions, engine_version="1", engine_session_id="played",
                      capabilities={"strategy_engine": {"live": False, "replay": True}},
                      venue_capabilities={VENUE: able}, dialects={VENUE: {"name": "played", "sha256": "00"}},
                      session_state="Idle", proof=proof(TOKEN, "server", hello["client_nonce"], nonce, "live"))
            while True:
                command = json.loads(socket.recv())
                self.commands.append(command)
                if command["op"] == "GetVenueState":
                    if not self.is_silent:
                        self.tell("VenueState", request_id=command["request_id"], venue=VENUE, state=self.state,
                                  push=self.push, code=self.code, since_ms=1)
                else:
                    self.script(self, command)

    def has_heard(self, op):
        deadline = time.monotonic() + PATIENCE
        while not any(command["op"] == op for command in list(self.commands)):
            assert time.monotonic() < deadline, f"{op} did not come: {self.commands}"
            time.sleep(0.01)

    # --- Events.

    def subscribed(self, command, name=None):
        ticker = command["ticker"]
        info = {"symbol": ticker, "exchange": "LocalBrokerStock", "market_kind": "Stock", "display_name_ja": name}
        self.tell("Subscribed", request_id=command["request_id"], venue=VENUE, ticker=ticker, ticker_info=info)

    def depth(self, ticker, number):
        self.tell("DepthSnapshot", venue=VENUE, exchange="LocalBrokerStock", ticker=ticker, stream_session_id="s",
                  sequence_id=number, received_ms=1_795_492_805_300, timestamp_ms=1_795_492_805_250,
                  timestamp_source="venue", last_price="2850", bids=[], asks=[])

    def trade(self, ticker, number):
        row = {"price": "2850", "qty": "100", "side": "buy", "side_rule": "at_ask", "ts_ms": 1_795_492_805_250,
               "sequence_id": number, "received_ms": 1_795_492_805_300}
        self.tell("Trades", venue=VENUE, exchange="LocalBrokerStock", ticker=ticker, stream_session_id="s",
                  trades=[row])


def watching(engine, *arguments, **how):
    command = [program(), "watch", "--config-dir", engine.config, *arguments]
    return subprocess.Popen(list(map(str, command)), **{"text": True, "stderr": subprocess.PIPE, **how})


def told(text):
    """The events of lines, each in short."""
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        numbers = [row["sequence_id"] for row in event.get("trades", [event]) if "sequence_id" in row]
        yield (event["event"], *(event[name] for name in ("ticker",) if name in event), *numbers)


@pytest.mark.parametrize("form", [(), ("--format", "json")])
def test_lines_begin_with_what_the_engine_tells_first(tmp_path, form):
    """What comes of the first ticker while the second is being subscribed is printed, too."""
    def script(engine, command):
        if command["ticker"] == "7203":
            return engine.subscribed(command)
        for number in (1, 3):
            engine.depth("7203", number)
            engine.trade("7203", number + 1)
        engine.subscribed(command)
        engine.trade("7203", 5)
        engine.trade("9984", 1)
        return engine.socket.close()

    with Played(tmp_path, script) as engine:
        out, errors = watching(engine, "7203", "9984.TSE", "7203.TSE", *form, stdout=subprocess.PIPE).communicate(
            timeout=PATIENCE)
    assert list(told(out)) == [
        ("Subscribed", "7203"), ("DepthSnapshot", "7203", 1), ("Trades", "7203", 2), ("DepthSnapshot", "7203", 3),
        ("Trades", "7203", 4), ("Subscribed", "9984"), ("Trades", "7203", 5), ("Trades", "9984", 1),
    ], errors
    assert [command["ticker"] for command in engine.commands if command["op"] == "Subscribe"] == ["7203", "9984"]


def test_lines_tell_of_the_login(tmp_path):
    def script(engine, command):
        if command["op"] == "RequestVenueLogin":
            engine.tell("VenueLoginStarted", venue=VENUE, request_id=command["request_id"])
            engine.tell("VenueReady", venue="web_broker")
            engine.tell("VenueReady", venue=VENUE, request_id=command["request_id"])
            return
        engine.subscribed(command)
        engine.socket.close()

    with Played(tmp_path, script, state="Disconnected") as engine:
        out, errors = watching(engine, "7203", "--login", "--format", "json", stdout=subprocess.PIPE).communicate(
            timeout=PATIENCE)
    assert list(told(out)) == [("VenueLoginStarted",), ("VenueReady",), ("Subscribed", "7203")], errors


def asks_for_ever(engine, command):
    """A login that waits for a person."""
    if command["op"] == "RequestVenueLogin":
        engine.tell("VenueLoginStarted", venue=VENUE, request_id=command["request_id"])


@pytest.mark.parametrize("name", ["SIGINT", *(["SIGTERM", "SIGHUP"] if os.name == "posix" else [])])
@pytest.mark.parametrize("more", [("--format", "json"), ("--once",)])
def test_a_signal_ends_a_login(tmp_path, name, more):
    with Played(tmp_path, asks_for_ever, state="Disconnected") as engine:
        watch = watching(engine, "7203", "--login", *more, stdout=subprocess.PIPE, **OWN_CONSOLE)
        engine.has_heard("RequestVenueLogin")
        interrupt(watch) if name == "SIGINT" else watch.send_signal(getattr(signal, name))
        watch.communicate(timeout=PATIENCE)
    assert watch.returncode == 130


def take_the_terminal():
    import fcntl
    import termios
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """`kumiki watch` at a terminal."""

    def __init__(self, engine, *arguments, **how):
        import termios
        self.termios = termios
        self.ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        self.before = termios.tcgetattr(theirs)
        self.theirs, self.shown = theirs, b""
        self.process = watching(engine, *arguments, stdin=theirs, stdout=theirs, stderr=theirs, text=False, **how)

    def until(self, text):
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.ours], [], [], left)[0], (text, self.shown)
            self.shown += os.read(self.ours, 65_536)

    def sees(self, *texts):
        """Waits until all of these stand on the screen."""
        deadline = time.monotonic() + PATIENCE
        while not all(text in self.picture() for text in texts):
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.ours], [], [], left)[0], (texts, self.picture())
            self.shown += os.read(self.ours, 65_536)

    def picture(self):
        """What stands on the screen, of letters of one column."""
        rows, row, column = [[" "] * 80 for _ in range(24)], 0, 0
        for code, text in re.findall(r"\x1b\[([^a-zA-Z]*[a-zA-Z])|([^\x1b])", self.shown.decode(errors="replace")):
            if code == "2J":
                rows = [[" "] * 80 for _ in range(24)]
            elif code.endswith("H"):
                row, column = (int(part) - 1 for part in (code[:-1] or "1;1").split(";"))
            elif text >= " " and row < 24 and column < 80:
                rows[row][column] = text
                column += 1
        return "\n".join("".join(row).rstrip() for row in rows)

    def ended(self):
        """Its exit code, and whether the terminal is as it was."""
        code = None
        deadline = time.monotonic() + PATIENCE
        while code is None:
            assert time.monotonic() < deadline, self.shown
            if select.select([self.ours], [], [], 0.01)[0]:
                self.shown += os.read(self.ours, 65_536)
            code = self.process.poll()
        return code, self.termios.tcgetattr(self.theirs) == self.before

    def vanish(self):
        os.close(self.ours)
        self.ours = None

    def close(self):
        self.process.kill()
        self.process.wait()
        if self.ours is not None:
            os.close(self.ours)
        os.close(self.theirs)


@NEEDS_UNIX
@pytest.mark.parametrize("how", ["q", "\x03", "SIGINT", "SIGTERM", "SIGHUP"])
def test_a_login_is_given_up_at_the_terminal(tmp_path, how):
    with Played(tmp_path, asks_for_ever, state="Disconnected") as engine:
        terminal = Terminal(engine, "7203", "--login")
        try:
            terminal.until(b"a login is under way")
            if how.startswith("SIG"):
                terminal.process.send_signal(getattr(signal, how))
            else:
                os.write(terminal.ours, how.encode())
            assert terminal.ended() == (130, True), terminal.shown
            assert b"\x1b[?1049l" in terminal.shown, "it leaves the screen of its own"
        finally:
            terminal.close()


@NEEDS_UNIX
@pytest.mark.parametrize("how", ["q", "SIGTERM"])
def test_a_board_is_left_at_the_terminal(tmp_path, how):
    def script(engine, command):
        engine.subscribed(command)
        engine.depth("7203", 1)

    with Played(tmp_path, script) as engine:
        terminal = Terminal(engine, "7203")
        try:
            terminal.until(b"2,850")
            terminal.process.send_signal(signal.SIGTERM) if how == "SIGTERM" else os.write(terminal.ours, how.encode())
            assert terminal.ended() == (0, True), terminal.shown
        finally:
            terminal.close()


@NEEDS_UNIX
@pytest.mark.parametrize("is_own", [True, False], ids=["own", "another's"])
@pytest.mark.parametrize("state", ["Ready", "Disconnected"])
def test_a_terminal_that_goes_away_ends_it(tmp_path, state, is_own):
    """A closed window or a lost line: with a signal where the terminal is its own, and without one."""
    def script(engine, command):
        if command["op"] == "Subscribe":
            engine.subscribed(command)
            engine.depth("7203", 1)
        else:
            asks_for_ever(engine, command)

    how = {"start_new_session": True, "preexec_fn": take_the_terminal} if is_own else {}
    with Played(tmp_path, script, state=state) as engine:
        terminal = Terminal(engine, "7203", "--login", **how)
        try:
            terminal.until(b"2,850" if state == "Ready" else b"a login is under way")
            terminal.vanish()
            assert terminal.process.wait(PATIENCE) == 130
        finally:
            terminal.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that takes nothing")
@pytest.mark.parametrize("form", ["table", "json"])
def test_lines_that_cannot_be_written_end_it(tmp_path, form):
    def script(engine, command):
        engine.subscribed(command)

    with Played(tmp_path, script) as engine, open("/dev/full", "w") as full:
        watch = watching(engine, "7203", "--format", form, stdout=full)
        _, errors = watch.communicate(timeout=PATIENCE)
    assert watch.returncode == 1 and errors.startswith("error: cannot print to standard output"), errors


def test_more_tickers_than_the_gateway_pushes(tmp_path):
    """They are counted before an engine is looked for."""
    command = [program(), "watch", "--config-dir", tmp_path, *(str(1_301 + one) for one in range(51))]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2 and "51 tickers; the gateway pushes 50 symbols at most" in ended.stderr, ended


@pytest.mark.parametrize("wrong", ["abc", "7203.OSE", "7203@1"])
def test_a_ticker_that_is_none(tmp_path, wrong):
    """It is a wrong argument, whatever the engine says."""
    command = [program(), "watch", "--config-dir", str(tmp_path), "7203", wrong]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2 and f"`{wrong}` is not a ticker" in ended.stderr, ended


@pytest.mark.parametrize("more", [("--format", "json"), ("--once",)])
def test_a_full_register_set_tells_what_its_user_can_do(tmp_path, more):
    def script(engine, command):
        engine.tell("Error", request_id=command["request_id"], code="register_full", message="the words of the gateway")

    with Played(tmp_path, script) as engine:
        watch = watching(engine, "7203", *more, stdout=subprocess.PIPE)
        _, errors = watch.communicate(timeout=PATIENCE)
    assert watch.returncode == 1, errors
    assert "register_full: the words of the gateway" in errors and "end another `kumiki watch`" in errors, errors


@NEEDS_UNIX
def test_a_full_register_set_at_the_terminal(tmp_path):
    def script(engine, command):
        engine.tell("Error", request_id=command["request_id"], code="register_full", message="the words of the gateway")

    with Played(tmp_path, script) as engine:
        terminal = Terminal(engine, "7203")
        try:
            assert terminal.ended() == (1, True), terminal.shown
            terminal.until(b"end another `kumiki watch`")
        finally:
            terminal.close()


def shows_a_board(engine, command):
    if command["op"] == "Subscribe":
        engine.subscribed(command, "Toyota")
        engine.depth("7203", 1)


@contextlib.contextmanager
def board(engine):
    """A terminal with the board of 7203, which is live."""
    engine.push = "Streaming"
    terminal = Terminal(engine, "7203")
    try:
        terminal.sees("2,850 yen  13:00:05 in Japan", "local_broker Ready, push Streaming")
        yield terminal
    finally:
        terminal.close()


@NEEDS_UNIX
def test_a_ticker_that_had_to_make_room_shows_no_board(tmp_path):
    with Played(tmp_path, shows_a_board) as engine, board(engine) as terminal:
        engine.tell("SubscriptionEvicted", symbol="7203")
        terminal.sees("7203 Toyota  not subscribed", "7203 had to make room")
        # One that waited meanwhile; and a key takes the note away.
        engine.depth("7203", 2)
        os.write(terminal.ours, b"x")
        terminal.sees("q quit", "not subscribed any more: it had to make")
        assert "2,850" not in terminal.picture()


@NEEDS_UNIX
def test_an_engine_that_does_not_answer_is_seen(tmp_path):
    with Played(tmp_path, shows_a_board) as engine, board(engine) as terminal:
        engine.is_silent = True
        terminal.sees("unknown: the engine does not answer", "2,850 yen  stale, of 13:00:05")
        engine.is_silent = False
        terminal.sees("local_broker Ready, push Streaming", "2,850 yen  13:00:05 in Japan")


@NEEDS_UNIX
@pytest.mark.parametrize(("state", "push", "code", "words"), [
    ("Ready", "Reconnecting 3", None, "local_broker Ready, push Reconnecting 3"),
    ("Ready", "Streaming", "forced_logout", "local_broker forced logout: no boards until it ends"),
    ("AppDown", None, "local_app_down", "local_broker AppDown"),
    ("TokenExpired", None, "token_expired", "local_broker TokenExpired"),
    ("Disconnected", None, None, "local_broker Disconnected"),
])
def test_a_board_that_is_not_live_is_stale(tmp_path, state, push, code, words):
    with Played(tmp_path, shows_a_board) as engine, board(engine) as terminal:
        engine.state, engine.push, engine.code = state, push, code
        terminal.sees(words, "2,850 yen  stale, of 13:00:05 in Japan")


@NEEDS_UNIX
@pytest.mark.parametrize("name", ["Toyota", None])
def test_a_name_that_is_not_known_yet_is_asked_for_once_more(tmp_path, name):
    def script(engine, command):
        is_first = sum(command["op"] == "Subscribe" for command in engine.commands) == 1
        engine.subscribed(command, None if is_first else name)
        if is_first:
            engine.depth("7203", 1)

    with Played(tmp_path, script) as engine, board(engine) as terminal:
        if name is not None:
            terminal.sees("7203 Toyota  2,850 yen")
        engine.depth("7203", 2)
        terminal.sees("2 told")
        # What is sent next comes after all that was sent for the name.
        before = len(engine.commands)
        deadline = time.monotonic() + PATIENCE
        while all(command["op"] != "GetVenueState" for command in engine.commands[before:]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert [command["op"] for command in engine.commands].count("Subscribe") == 2


@pytest.mark.parametrize("is_reset", [True, False], ids=["killed", "ended"])
def test_an_engine_that_is_gone_tells_what_to_do(tmp_path, is_reset):
    def script(engine, command):
        engine.subscribed(command)
        if is_reset:
            linger = struct.pack("HH" if os.name == "nt" else "ii", 1, 0)
            engine.socket.socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, linger)
            engine.socket.socket.close()
        else:
            engine.socket.close(1008, "too_slow")

    with Played(tmp_path, script) as engine:
        watch = watching(engine, "7203", "--format", "json", stdout=subprocess.PIPE)
        _, errors = watch.communicate(timeout=PATIENCE)
    assert watch.returncode == 1, errors
    assert errors.startswith("error: the engine ended the connection; start"), errors
    assert "start `kumiki serve --mode live`" in errors and "run `kumiki watch` again" in errors, errors
    assert is_reset or "too_slow" in errors, errors
