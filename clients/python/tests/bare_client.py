"""A client of `kumiki serve` by hand, without a package for WebSockets: it answers no pings, and sends bytes as they
are. Whole text frames of both sides are held against the schemas."""

import json
import socket

from plain_client import SCHEMA_MAJOR, SCHEMA_MINOR, check_many, parse, proof


class Bare:
    """A connection. `head` is what the engine answered to its request, in lines."""

    TEXT, CLOSE, PING = 1, 8, 9

    def __init__(self, engine, greet=True, more=()):
        self.engine = engine
        self.socket = socket.create_connection(("127.0.0.1", engine.port), timeout=60)
        lines = [
            "GET / HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", *more, "", "",
        ]
        self.socket.sendall("\r\n".join(lines).encode())
        self.stream = self.socket.makefile("rb")
        self.head = []
        while (line := self.stream.readline().decode().strip()):
            self.head.append(line)
        self.challenge = self.event()
        assert self.challenge["event"] == "Challenge"
        if greet:
            self.send(self.hello())
            assert self.event()["event"] == "Ready"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def hello(self):
        """A greeting that fits the challenge."""
        nonce = "ab" * 32
        return {
            "op": "Hello", "schema_major": SCHEMA_MAJOR, "schema_minor": SCHEMA_MINOR, "client_version": "bare",
            "mode": "replay", "client_nonce": nonce,
            "proof": proof(self.engine.token, "client", self.challenge["server_nonce"], nonce, "replay"),
        }

    @staticmethod
    def frame(command):
        """The bytes of a command: a text frame, masked with zeros."""
        check_many(command)
        text = json.dumps(command).encode()
        long = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
        return b"\x81" + long + bytes(4) + text

    def send(self, command):
        """Sends a command."""
        self.socket.sendall(self.frame(command))

    def next(self, is_checked=True):
        """The kind and the content of the next frame; of very many of a kind, not all need be looked at."""
        first, length = self.stream.read(2)
        if length == 126:
            length = int.from_bytes(self.stream.read(2), "big")
        elif length == 127:
            length = int.from_bytes(self.stream.read(8), "big")
        kind, content = first & 15, self.stream.read(length)
        assert first & 0xF0 == 0x80, "a whole frame, and nothing of an extension"
        if kind == self.TEXT and is_checked:
            check_many(parse(content.decode("utf-8")))
        return kind, content

    def event(self):
        """The next frame, which is an event."""
        kind, content = self.next()
        assert kind == self.TEXT, (kind, content)
        return parse(content.decode("utf-8"))
