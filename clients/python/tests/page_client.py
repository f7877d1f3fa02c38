"""A page of the engine in the browser, as far as it is a client: the address that opens it, its session, its
connection. `request` sends what a browser would, and what it would not."""

import http.client
import json
import socket
from urllib.parse import urlsplit

from plain_client import PATIENCE, Client

#: What a browser says of a request of the page itself.
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}


def request(url, method="GET", body=None, headers=None):
    """A request to a console: status, headers and body of the answer."""
    parts = urlsplit(url)
    connection = http_connection(parts.port)
    connection.request(method, parts.path or "/", body=body, headers=headers or {})
    answer = connection.getresponse()
    text = answer.read().decode("utf-8")
    connection.close()
    return answer.status, dict((name.lower(), value) for name, value in answer.getheaders()), text


def http_connection(port):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)


def slow_connection(url, begun=b"GET / HTTP/1.1\r\nHost: "):
    """A connection to a console whose request is begun."""
    one = socket.create_connection(("127.0.0.1", urlsplit(url).port), PATIENCE)
    one.sendall(begun)
    return one


def is_closed(connection):
    """Waits for what a console says to a connection: whether it closes it without an answer."""
    try:
        return connection.recv(64) == b""
    except ConnectionResetError:
        return True


def origin_of(url):
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def begin(url, **other):
    """Exchanges the code of an address for a session, as the page does: status and answer."""
    origin, code = origin_of(url), urlsplit(url).fragment
    headers = {"Origin": origin, **SAME_ORIGIN, **other.pop("headers", {})}
    status, _, text = request(f"{origin}/session", "POST", json.dumps({"code": code, **other}), headers)
    return status, json.loads(text) if status == 200 else text


class PageClient(Client):
    """The connection of a page."""

    def __init__(self, session, origin, greet=True):
        self.session = session
        super().__init__(session["port"], session["key"], session["mode"], origin=origin, greet=greet)

    def hello(self, **other):
        return super().hello(**{"session_id": self.session["session_id"], **other})


def page(client, **how):
    """Opens a page through a client: its session and its origin."""
    url = client.ask("OpenConsole", "ConsoleOpened", **how)["url"]
    status, session = begin(url)
    assert status == 200, session
    return session, origin_of(url)
