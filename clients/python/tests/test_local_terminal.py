"""The password of the local broker's gateway, asked for in the terminal where no program with a window is installed."""

import os
import signal
import threading

import pytest

pty = pytest.importorskip("pty", reason="no pseudo terminals on this system")
import fcntl  # noqa: E402
import termios  # noqa: E402

from local_world import PASSWORD, LocalWorld, venue_state  # noqa: E402
from plain_client import PATIENCE  # noqa: E402


class Terminal:
    """A terminal, and all that it has shown so far."""

    def __init__(self):
        self.keys, self.side = pty.openpty()
        self.shown = b""
        # The engine's own: it is in front there, and hears its Ctrl-C.
        self.how = {"stdin": self.side, "stderr": self.side, "start_new_session": True,
                    "preexec_fn": lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)}
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        try:
            while data := os.read(self.keys, 1 << 16):
                self.shown += data
        except OSError:
            pass

    def type(self, keys):
        os.write(self.keys, keys)

    def echoes(self):
        """Whether it shows what is typed."""
        return bool(termios.tcgetattr(self.side)[3] & termios.ECHO)

    def close(self):
        """When nobody else is at it. Its number is another file's soon: nobody may read there any more."""
        os.close(self.side)
        self.reader.join(PATIENCE)
        os.close(self.keys)


def with_terminal(folder, how):
    """An engine at a terminal, and nobody but that to ask for a password."""
    nobody_else = {"KUMIKI_PINENTRY": "", "PATH": str(folder), "DEV_LOCALBROKER_API_PASSWORD": ""}
    return LocalWorld(folder, dev_login=False, environment=nobody_else, terminal=how)


@pytest.fixture
def asked(tmp_path):
    """An engine at a terminal, which asks there for the password, and a client that has asked for a login."""
    terminal = Terminal()
    with with_terminal(tmp_path, terminal.how) as world, world.client() as client:
        assert terminal.echoes()
        client.send("RequestVenueLogin", venue="local_broker")
        client.wait("VenueLoginStarted")
        world.until(lambda: b"(is not shown): " in terminal.shown, "it asks")
        world.until(lambda: not terminal.echoes(), "what is typed is not shown")
        yield world, client, terminal
    terminal.close()


def test_the_password_is_typed_where_nothing_is_shown(asked):
    world, client, terminal = asked
    assert venue_state(client)["state"] == "LoggingIn"
    terminal.type(PASSWORD.encode() + b"\n")
    client.wait("VenueReady")
    assert venue_state(client)["state"] == "Ready" and terminal.echoes()
    assert world.engine.end() == 0
    assert world.gateway.view()["counts"]["logins"] == 1
    assert PASSWORD.encode() not in terminal.shown


def test_a_wrong_password_is_typed(asked):
    """And the right one, when somebody logs in again."""
    world, client, terminal = asked
    terminal.type(b"canary-typed-8830\n")
    assert client.wait("VenueError")["code"] == "login_failed"
    client.send("RequestVenueLogin", venue="local_broker")
    world.until(lambda: terminal.shown.count(b"(is not shown): ") == 2 and not terminal.echoes(), "it asks again")
    terminal.type(PASSWORD.encode() + b"\n")
    client.wait("VenueReady")
    assert b"canary-typed-8830" not in terminal.shown and PASSWORD.encode() not in terminal.shown


@pytest.mark.parametrize("keys", [b"\n", b"\x04"], ids=["an empty line", "the end of the input"])
def test_nothing_is_typed(asked, keys):
    """The login is given up, and the venue stays as it was."""
    world, client, terminal = asked
    terminal.type(keys)
    cancelled = client.wait("VenueLoginCancelled", "VenueReady", "VenueError")
    assert (cancelled["event"], cancelled["venue"]) == ("VenueLoginCancelled", "local_broker")
    told = venue_state(client)
    assert (told["state"], told["code"]) == ("Disconnected", None)
    assert terminal.echoes() and world.gateway.view()["calls"].get("token", 0) == 0


@pytest.mark.parametrize("end", ["Ctrl-C", "SIGTERM"])
def test_the_engine_ends_while_somebody_is_asked(asked, end):
    """P80: at once, and the terminal shows again what is typed."""
    world, client, terminal = asked
    if end == "Ctrl-C":
        terminal.type(b"\x03")
    else:
        world.engine.process.send_signal(signal.SIGTERM)
    assert client.closed() == 1001
    assert world.engine.process.wait(PATIENCE) == 0 and terminal.echoes()
    assert client.since(0, "VenueReady", "VenueError") == []
    assert world.gateway.view()["calls"].get("token", 0) == 0


def test_an_engine_in_the_background_of_a_terminal_asks_nobody(tmp_path):
    """The system would stop it: who reads in the background is sent SIGTTIN."""
    terminal = Terminal()
    # The terminal is that of no session, so nobody is in front there.
    how = {**terminal.how, "preexec_fn": None}
    with with_terminal(tmp_path, how) as world, world.client() as client:
        client.send("RequestVenueLogin", venue="local_broker")
        client.wait("VenueLoginCancelled")
        assert world.engine.end() == 0
    world.until(lambda: b"kumiki runs in the background of its terminal" in terminal.shown, "the log says why")
    assert b"(is not shown)" not in terminal.shown
    terminal.close()
