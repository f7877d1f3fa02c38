"""The connection to an engine: the handshake, commands with their answers, and events for listeners."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Mapping
from typing import Any, Callable, Protocol

from kumiki._attach import Door
from kumiki._refusals import of_event
from kumiki._requests import ANSWERS, OnProgress, Request, Requests
from kumiki.errors import (
    AuthError, ConnectionLostError, EngineTimeoutError, KumikiError, MissingPackageError, SchemaError,
    SessionClosedError, ValidationError,
)
from kumiki.events import Event, decode

#: The messages that this client knows: `kumiki.schema("ipc.md")`.
SCHEMA_MAJOR, SCHEMA_MINOR = 1, 4
#: Bytes of a message of the engine. The longest are lists of 10,000 orders.
_MESSAGE_BYTES_MAX = 64 << 20
#: Bytes of a command; the engine ends the connection of who sends more.
_COMMAND_BYTES_MAX = 1 << 20
#: Seconds between two pings that show that the engine still answers.
_PING_EVERY = 10.0
#: What the WebSocket says goes here. Nobody can make it show frames: one of them has the second password.
_LOG = logging.Logger("kumiki.connection", logging.INFO)
_LOG.parent = logging.getLogger("kumiki")
#: Seconds for the end of a connection; what is not over then is dropped.
_CLOSE_TIME = 0.5


class Listener(Protocol):
    """Who takes every event of a connection, in their order."""

    def put(self, event: Event) -> None:
        """Takes an event. Must not wait."""

    def end(self, error: KumikiError | None) -> None:
        """There are no more, because of an error or because the session was closed."""


def proof(token: str, side: str, first_nonce: str, second_nonce: str, mode: str) -> str:
    """What shows that a side knows the token, without telling it."""
    message = f"{side}:{first_nonce}:{second_nonce}:{mode}"
    return hmac.new(token.encode(), message.encode(), hashlib.sha256).hexdigest()


class Connection:
    """A connection that both sides have proved. Everything runs in one event loop."""

    def __init__(self, socket: Any, ready: Event) -> None:
        self._socket = socket
        #: The engine's greeting.
        self.ready = ready
        #: Why there are no more events, once that is so.
        self.lost: KumikiError | None = None
        self._closing = False
        self._requests = Requests()
        self._listeners: list[Listener] = []
        # Ids of others appear in events that everybody gets.
        self._name, self._count = secrets.token_hex(6), 0
        self._reader = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def open(cls, door: Door, *, mode: str, version: str, timeout: float) -> Connection:
        """Connects. Nothing but the greeting is sent before the engine has shown that it knows the token.

        Raises AuthError, ModeError, SchemaError, ConnectionLostError or EngineTimeoutError.
        """
        try:
            from websockets.asyncio.client import connect
            from websockets.exceptions import ConnectionClosed, WebSocketException
        except ImportError as error:
            raise MissingPackageError(f"{error}; sessions need it: pip install 'websockets>=15'") from None
        socket = None
        try:
            async with _within(timeout, f"the engine at port {door.port} did not greet"):
                socket = await connect(
                    f"ws://127.0.0.1:{door.port}/", compression=None, proxy=None, max_size=_MESSAGE_BYTES_MAX,
                    ping_interval=_PING_EVERY, ping_timeout=max(timeout, _PING_EVERY), close_timeout=_CLOSE_TIME,
                    open_timeout=None, logger=_LOG,
                )
                ready = await _greet(socket, door.token, mode, version)
        except BaseException as error:
            if socket is not None:
                await socket.close()
            if isinstance(error, ConnectionClosed):
                raise _lost(error) from None
            if isinstance(error, (OSError, WebSocketException)) and not isinstance(error, KumikiError):
                raise ConnectionLostError(f"no engine at port {door.port}: {error}") from None
            raise
        return cls(socket, ready)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Gives every event from now on to a listener, until the function that is given back is called."""
        if self.lost is not None or self._closing:
            listener.end(self.lost)
            return lambda: None
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def ask(self, op: str, *, timeout: float, on_progress: OnProgress = None, **fields: Any) -> list[Event]:
        """Sends a command and gives its answer: one event, or all frames of a list.

        Raises the exception of a refusal, ConnectionLostError, or EngineTimeoutError where nothing is heard of the
        command for `timeout` seconds, or an order is not answered in that time.
        """
        request = self._wait_for(op, fields, on_progress)
        loop = asyncio.get_running_loop()
        try:
            await self._send(request.fields)
            while not request.done.done():
                left = request.heard + timeout - loop.time()
                if left <= 0:
                    raise EngineTimeoutError(f"the engine did not answer {op} within {timeout:g} s")
                await asyncio.wait({request.done}, timeout=left)
            return request.done.result()
        finally:
            _forget(request)

    async def tell(self, op: str, *, timeout: float, **fields: Any) -> None:
        """Sends a command that has no answer, and waits until it was done: commands take effect in their order.

        Raises as `ask()` does.
        """
        request = self._wait_for(op, fields, None)
        try:
            await self._send(request.fields)
            await self.ask("Ping", timeout=timeout)
            if request.done.done():
                request.done.result()
        finally:
            _forget(request)

    def _wait_for(self, op: str, fields: dict[str, Any], on_progress: OnProgress) -> Request:
        """A command, from now on with its answer."""
        assert op in ANSWERS, op
        if self.lost is not None:
            raise self.lost
        self._count += 1
        loop = asyncio.get_running_loop()
        command = {"op": op, "request_id": f"{self._name}-{self._count}", **fields}
        request = Request(command, loop.create_future(), loop.time(), on_progress)
        self._requests.add(request)
        return request

    async def shut_down(self) -> None:
        """Tells the engine to end; that has no answer."""
        self._closing = True
        self._count += 1
        await self._send({"op": "Shutdown", "request_id": f"{self._name}-{self._count}"})

    async def close(self) -> None:
        """Ends the connection."""
        self._closing = True
        await self._socket.close()
        await asyncio.wait({self._reader})

    async def _send(self, command: Mapping[str, Any]) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            text = json.dumps(command, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValidationError(f"{command['op']}: {error}", code="validation_error") from None
        if len(text) > _COMMAND_BYTES_MAX:
            long = f"{command['op']}: {len(text):,} bytes, {_COMMAND_BYTES_MAX:,} are the most; send less at once"
            raise ValidationError(long, code="validation_error")
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise self.lost or _lost(error) from None

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        now = asyncio.get_running_loop().time
        error: KumikiError
        try:
            while True:
                event = decode(await self._socket.recv())
                for listener in list(self._listeners):
                    listener.put(event)
                self._requests.take(event, now())
        except ConnectionClosed as closed:
            error = _lost(closed)
        except (KumikiError, LookupError, TypeError, ValueError) as wrong:
            # An event may also lack a field that it must have.
            words = f"the engine sent an invalid event: {wrong!r}"
            error = wrong if isinstance(wrong, KumikiError) else SchemaError(words, code="schema_mismatch")
            await self._socket.close()
        if self._closing:
            error = SessionClosedError()
        self.lost = error
        self._requests.fail(error)
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.end(None if self._closing else error)


class _within:  # noqa: N801 - used as asyncio.timeout is, which Python 3.11 has first
    """Ends what takes longer than some seconds with EngineTimeoutError."""

    def __init__(self, seconds: float, what: str) -> None:
        self._seconds, self._what = seconds, what
        self._late = False

    async def __aenter__(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def end() -> None:
            self._late = True
            if task is not None:
                task.cancel()

        self._timer = loop.call_later(self._seconds, end)

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self._timer.cancel()
        if self._late and isinstance(error, asyncio.CancelledError):
            raise EngineTimeoutError(f"{self._what} within {self._seconds:g} s") from None


async def _greet(socket: Any, token: str, mode: str, version: str) -> Event:
    """Takes the challenge, shows the proof, and checks the engine's."""
    challenge = decode(await socket.recv())
    if challenge.name != "Challenge" or not isinstance(challenge.get("server_nonce"), str):
        raise SchemaError(f"the engine began with {challenge.name}, not with Challenge", code="schema_mismatch")
    major, minor = challenge.get("schema_major"), challenge.get("schema_minor")
    if major != SCHEMA_MAJOR:
        text = f"the engine's messages have version {major}.{minor}, this client's {SCHEMA_MAJOR}.{SCHEMA_MINOR}"
        raise SchemaError(text, code="schema_mismatch")
    server_nonce, client_nonce = challenge["server_nonce"], secrets.token_hex(32)
    hello = {
        "op": "Hello", "schema_major": SCHEMA_MAJOR, "schema_minor": SCHEMA_MINOR, "client_version": version,
        "mode": mode, "client_nonce": client_nonce,
        "proof": proof(token, "client", server_nonce, client_nonce, mode),
    }
    await socket.send(json.dumps(hello))
    ready = decode(await socket.recv())
    if ready.name in ("EngineError", "Error"):
        raise of_event(ready)
    expected = proof(token, "server", client_nonce, server_nonce, mode)
    shown = str(ready.get("proof")).encode()
    if ready.name != "Ready" or not hmac.compare_digest(shown, expected.encode()):
        raise AuthError("the program at the engine's port does not know the token", code="auth_failed")
    return ready


def _forget(request: Request) -> None:
    """Nobody waits for its answer any more."""
    if not request.done.done():
        request.done.cancel()
    elif not request.done.cancelled():
        # It is known to have been looked at.
        request.done.exception()


def _lost(closed: Any) -> ConnectionLostError:
    """What a closed connection means."""
    frame = closed.rcvd
    if frame is None:
        return ConnectionLostError("the connection to the engine broke; it was killed, or does not answer")
    reason = f" ({frame.reason})" if frame.reason else ""
    text = "the engine has ended" if frame.code == 1001 else f"the engine closed the connection: {frame.code}{reason}"
    return ConnectionLostError(text, close_code=frame.code)
