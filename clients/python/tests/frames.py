"""Every frame between sessions of the Python package and their engines, held against the schemas."""

import jsonschema
import plain_client
import websockets.asyncio.client


class Frames:
    """What connections of the package sent and received since the test began."""

    def __init__(self, monkeypatch):
        self.sent, self.received = [], []
        # The only asyncio clients of the tests are those of the package.
        kind = websockets.asyncio.client.ClientConnection
        send, recv = kind.send, kind.recv

        async def keep_sent(socket, frame, *more):
            self.sent.append(frame)
            return await send(socket, frame, *more)

        async def keep_received(socket, *more):
            frame = await recv(socket, *more)
            self.received.append(frame)
            return frame

        monkeypatch.setattr(kind, "send", keep_sent)
        monkeypatch.setattr(kind, "recv", keep_received)

    def take_wrong(self):
        """Takes out the commands that break their schema, which a test has sent on purpose, and gives their names."""
        wrong = []
        for frame in list(self.sent):
            command = plain_client.parse(frame)
            try:
                plain_client.check_command(command)
            except jsonschema.ValidationError:
                self.sent.remove(frame)
                wrong.append(command["op"])
        return wrong

    def check(self):
        """Fails where a frame breaks its schema. Afterwards, because a client that is slow is left behind."""
        for frame in self.sent:
            plain_client.check_command(plain_client.parse(frame))
        for frame in self.received:
            plain_client.check_event(plain_client.parse(frame))
