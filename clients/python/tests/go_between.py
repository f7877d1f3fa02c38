"""Stands between an engine and a server of this machine: passes requests on, and changes what is answered."""

import http.client
import http.server
import socket
import threading


class GoBetween:
    """Listens at `port`, and passes on to the port `behind` it."""

    def __init__(self, behind):
        self.behind = behind
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.pass_on(self)

            do_POST = do_PUT = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        thread.start()

    def heard(self, path, sent):
        """What `changed` is to know of a request for this path with this body."""
        return path, sent

    def changed(self, body, asked):
        """The body of an answer as it is to come back."""
        raise NotImplementedError

    def pass_on(self, handler):
        """Passes a request on; of a connection that becomes a WebSocket everything, as it is."""
        if "Upgrade" in handler.headers:
            return self.tunnel(handler)
        sent = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        asked = self.heard(handler.path, sent)
        names = [name for name in ("Content-Type", "X-API-KEY") if name in handler.headers]
        connection = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=90)
        try:
            connection.request(handler.command, handler.path, sent or None,
                               {name: handler.headers[name] for name in names})
            answer = connection.getresponse()
            status, body = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            # As the server does: no answer, or the half of one.
            part = getattr(error, "partial", b"")
            if part:
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * len(part)) + part)
            handler.close_connection = True
            return
        finally:
            connection.close()
        body = self.changed(body, asked)
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", answer.getheader("Content-Type", "application/json"))
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except OSError:
            handler.close_connection = True

    def tunnel(self, handler):
        lines = [handler.requestline, *(f"{name}: {value}" for name, value in handler.headers.items()), "", ""]
        with socket.create_connection(("127.0.0.1", self.behind)) as there:
            there.sendall("\r\n".join(lines).encode())
            back = threading.Thread(target=copy, args=(there, handler.connection), daemon=True)
            back.start()
            copy(handler.connection, there)
            back.join()
        handler.close_connection = True

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def copy(one, other):
    """Passes on what comes from one connection, until either ends; then both do."""
    try:
        while data := one.recv(1 << 16):
            other.sendall(data)
    except OSError:
        pass
    for side in (one, other):
        try:
            side.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
