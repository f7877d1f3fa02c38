"""An engine with a venue, as a script: it speaks the handshake, and a function says what it answers to each command.

Every frame is held against the committed schemas, both ways.
"""

import json
import logging
import threading

from plain_client import SCHEMA_MAJOR, SCHEMA_MINOR, check_command, check_event, parse, proof
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

TOKEN = "a token of sixteen"
NONCE = "5e" * 32
VENUE = {"requires_local_app": False, "max_push_symbols": 0, "supports_amend": True,
         "requires_trade_password_for_cancel": True, "is_production": False}


class VenueEngine:
    """`play(command)` gives the events that answer a command; `heard` is every command, after the greeting.

    What is wrong with a frame is raised by `close()`.
    """

    def __init__(self, play):
        self.play, self.heard, self.wrong = play, [], []
        self._server = serve(self._talk, "127.0.0.1", 0, compression=None, logger=logging.Logger("silent"))
        self.port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _talk(self, socket):
        try:
            self._greet(socket)
            while True:
                command = parse(socket.recv())
                check_command(command)
                self.heard.append(command)
                for event in self.play(command):
                    self._tell(socket, event)
        except ConnectionClosed:
            pass
        except Exception as error:
            self.wrong.append(error)

    def _greet(self, socket):
        version = {"schema_major": SCHEMA_MAJOR, "schema_minor": SCHEMA_MINOR}
        self._tell(socket, {"event": "Challenge", "server_nonce": NONCE, **version})
        hello = parse(socket.recv())
        check_command(hello)
        own = hello["client_nonce"]
        assert hello["mode"] == "live" and hello["proof"] == proof(TOKEN, "client", NONCE, own, "live")
        self._tell(socket, {
            "event": "Ready", **version, "engine_version": "0", "engine_session_id": "x", "session_state": "Idle",
            "capabilities": {"strategy_engine": {"live": False, "replay": False}},
            "venue_capabilities": {"web_broker": VENUE}, "proof": proof(TOKEN, "server", own, NONCE, "live"),
        })
        self._tell(socket, {"event": "ClientConnected", "count": 1})

    def _tell(self, socket, event):
        check_event(event)
        socket.send(json.dumps(event, separators=(",", ":")))

    def ops(self):
        """The names of the commands that came."""
        return [command["op"] for command in self.heard]

    def close(self):
        self._server.shutdown()
        assert not self.wrong, self.wrong
