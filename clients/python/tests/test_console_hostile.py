"""What a hostile page tries against the engine's pages, and what a hostile server gets in the engine's place: nothing.

The hostile page comes from another port of this machine, which a browser takes for the same site. What it tries is
also tried where it is allowed, so that a refusal is none of the browser for another reason.
"""

import contextlib
import http.server
import json
import logging
import os
import pathlib
import signal
import stat
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest
from browser import Browser
from conftest import program
from console_pages import ANY_PORT, READY, TICKET, address, ready_page, stored_session
from engine_process import wait_until
from page_client import PageClient, begin, is_closed, origin_of, request, slow_connection
from page_client import page as signed_in
from plain_client import PATIENCE, SCHEMA_MAJOR, SCHEMA_MINOR
from secret_search import forms, found_in, texts_of
from web_broker import SECOND_PASSWORD
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

#: Attempts of a page. Each tells `done` or `refused`.
SOCKET = """(url) => new Promise((tell) => {
  const socket = new WebSocket(url);
  socket.onopen = () => { socket.close(); tell('done'); };
  socket.onerror = () => tell('refused');
})"""
FETCH = "(url, how) => fetch(url, how).then(() => 'done', () => 'refused')"
SCRIPT = """(url) => new Promise((tell) => {
  const script = document.createElement('script');
  script.onload = () => tell('done');
  script.onerror = () => tell('refused');
  script.src = url;
  document.head.append(script);
})"""
STYLE = """(url) => new Promise((tell) => {
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.onload = () => tell('done');
  link.onerror = () => tell('refused');
  link.href = url;
  document.head.append(link);
})"""
FRAME = """(url) => new Promise((tell) => {
  const frame = document.createElement('iframe');
  frame.onload = () => tell('loaded');
  frame.src = url;
  document.body.append(frame);
})"""
FORM = """(url, name) => new Promise((tell) => {
  const frame = document.createElement('iframe');
  frame.name = 'target' + document.forms.length;
  document.body.append(frame);
  frame.onload = () => tell('loaded');
  const form = document.createElement('form');
  Object.assign(form, { action: url, method: 'POST', enctype: 'text/plain', target: frame.name });
  const input = document.createElement('input');
  input.name = name;
  form.append(input);
  document.body.append(form);
  form.submit();
})"""


def tried(page, attempt, *arguments):
    """What becomes of an attempt of a page."""
    return page.js(f"({attempt})({', '.join(map(json.dumps, arguments))})")


class Elsewhere:
    """A server of somebody else on this machine. `asked` are the requests that it got: paths and headers."""

    def __init__(self, port=0):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers everything."""

            def do_GET(self):
                length = int(self.headers.get("content-length") or 0)
                asked.append((self.path, dict(self.headers.items()), self.rfile.read(length)))
                kind = {"js": "text/javascript", "css": "text/css"}.get(self.path.rpartition(".")[2], "text/html")
                body = b"<!doctype html><title>elsewhere</title>" if kind == "text/html" else b"/**/"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        self.origin = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Impostor:
    """A WebSocket server in the place of an engine that has died: it says `lines` to who comes, and keeps what it
    hears. `{"wait": 1}` waits for a message first."""

    def __init__(self, port, lines):
        self.heard, self.came, self.left = [], 0, 0
        self.lines = lines
        self.server = serve(self.talk, "127.0.0.1", port, compression=None, logger=logging.Logger("silent"))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def talk(self, connection):
        self.came += 1
        with contextlib.suppress(ConnectionClosed):
            for line in self.lines:
                if "wait" in line:
                    self.heard.append(connection.recv(timeout=PATIENCE))
                else:
                    connection.send(json.dumps(line))
            while True:
                self.heard.append(connection.recv(timeout=PATIENCE))
        self.left += 1

    def close(self):
        self.server.shutdown()


VERSION = {"schema_major": SCHEMA_MAJOR, "schema_minor": SCHEMA_MINOR}
CHALLENGE = {"event": "Challenge", "server_nonce": "5e" * 32, **VERSION}


def forged_ready(mode):
    """What an impostor can say of itself; its proof is a guess."""
    venue = {"requires_local_app": False, "max_push_symbols": 0, "supports_amend": True,
             "requires_trade_password_for_cancel": True, "is_production": False}
    return {
        "event": "Ready", **VERSION, "engine_version": "0", "engine_session_id": "x", "session_state": "Idle",
        "capabilities": {"strategy_engine": {"live": True, "replay": True}}, "scope": "full",
        "venue_capabilities": {"web_broker": venue} if mode == "live" else {}, "proof": "0" * 64,
    }


@pytest.fixture
def elsewhere():
    one = Elsewhere()
    yield one
    one.close()


@pytest.fixture
def engine(start):
    return start(more=ANY_PORT)


def is_unspent(url):
    """Whether the code of an address is still good; it is not any more after this."""
    return begin(url)[0] == 200


def test_a_page_of_another_port_reaches_neither_port(engine, browser, elsewhere):
    """WebSocket, fetch, script and style."""
    with engine.client() as client:
        own, url = ready_page(browser, client), address(client)
        origin, body = origin_of(url), json.dumps({"code": urlsplit(url).fragment})
        engine_socket = f"ws://127.0.0.1:{engine.port}/"
        page = browser.page(elsewhere.origin + "/")
        page.until("document.title === 'elsewhere'")
        attempts = [
            (SOCKET, own, (engine_socket,), page, (engine_socket,)),
            (FETCH, own, (origin + "/",), page, (origin + "/",)),
            (FETCH, page, ("/", {"mode": "no-cors"}), page, (origin + "/", {"mode": "no-cors"})),
            (SCRIPT, page, ("/one.js",), page, (origin + "/assets/entry.js",)),
            (STYLE, page, ("/one.css",), page, (origin + "/assets/console.css",)),
        ]
        for attempt, allowed, right, hostile, wrong in attempts:
            assert tried(allowed, attempt, *right) == "done", right
            assert tried(hostile, attempt, *wrong) == "refused", wrong
        assert page.js("typeof codeOfEntry") == "undefined", "nothing of the page's scripts ran here"
        for how in (
            {"mode": "no-cors", "headers": {"Content-Type": "text/plain"}},
            {"headers": {"Content-Type": "application/json"}},
            {"mode": "no-cors", "credentials": "include"},
        ):
            tried(page, FETCH, origin + "/session", {"method": "POST", "body": body, **how})
        for other in ("data:text/html,none", f"http://localhost:{urlsplit(url).port}/"):
            foreign = browser.page(other)
            foreign.until("document.readyState === 'complete' && location.href !== 'about:blank'")
            assert foreign.js("document.querySelector('script')") is None, "no page of the console"
            assert tried(foreign, SOCKET, engine_socket) == "refused", other
            tried(foreign, FETCH, origin + "/session", {"method": "POST", "body": body, "mode": "no-cors"})
        assert is_unspent(url)
        own.reload()
        own.until(READY, "the page is as it was")
        for tab in (own, page):
            tab.close()


def test_a_page_of_another_port_frames_nothing_and_sends_no_form(engine, browser, elsewhere):
    with engine.client() as client:
        url, other = address(client), address(client)
        page = browser.page(elsewhere.origin + "/")
        page.until("document.title === 'elsewhere'")

        def framed():
            tree = page.call("Page.getFrameTree")["frameTree"]
            return [child["frame"].get("unreachableUrl", child["frame"]["url"]) for child in tree["childFrames"]], [
                child["frame"]["url"] for child in tree["childFrames"]]

        assert tried(page, FRAME, "/inner") == "loaded"
        assert tried(page, FRAME, url) == "loaded"
        asked, shown = framed()
        assert shown[0] == elsewhere.origin + "/inner", "a frame of its own is shown"
        assert asked[1].startswith(origin_of(url)) and shown[1].startswith("chrome-error:"), (asked, shown)
        code = urlsplit(other).fragment
        for name in (json.dumps({"code": code}), json.dumps({"code": code, "x": ""})[:-2]):
            assert tried(page, FORM, origin_of(other) + "/session", name) == "loaded"
        assert is_unspent(url) and is_unspent(other)
        page.close()


def test_who_opens_a_page_has_no_hold_on_it(engine, browser, elsewhere):
    """No opener either way; a junk address of a stranger's making ends no session and gets none."""
    with engine.client() as client:
        page = browser.page(elsewhere.origin + "/")
        page.until("document.title === 'elsewhere'")
        # A window of its own it does hold.
        held = browser.opened_by(lambda: page.js("void (globalThis.held = open('/held', 'held'))"))
        held.until("document.title === 'elsewhere' && opener !== null")
        url = address(client)
        junk = origin_of(url) + "/#junk"
        held.go(url)
        held.until(READY)
        assert held.js("opener") is None and page.js("globalThis.held.closed"), "the page has left the opener's group"
        session = stored_session(held)
        page.js(f"globalThis.held.location = {json.dumps(junk)}; globalThis.held.postMessage('?', '*')")
        second = browser.opened_by(lambda: page.js(f"void (globalThis.second = open({json.dumps(junk)}, 'held'))"))
        second.until("document.documentElement.dataset.connection === 'refused'")
        assert second.js("sessionStorage.getItem('kumiki.session')") is None
        assert second.js("opener") is None and page.js("globalThis.second.closed")
        # In the tab itself too: by the address bar, or by a link.
        held.go(junk)
        held.until("location.hash === '' && " + READY)
        held.reload()
        held.until(READY)
        assert stored_session(held) == session
        for tab in (page, held, second):
            tab.close()


def test_a_rebound_name_reaches_neither_port(engine, elsewhere, tmp_path):
    """A name of a stranger that leads to this machine: its page has the ports' address, and gets nothing of them."""
    rebinding = Browser(tmp_path / "profile", more=("--host-resolver-rules=MAP rebound.example 127.0.0.1",))
    with contextlib.closing(rebinding), engine.client() as client:
        url = address(client)
        port, body = urlsplit(url).port, json.dumps({"code": urlsplit(url).fragment})
        page = rebinding.page(f"http://rebound.example:{elsewhere.port}/")
        page.until("document.title === 'elsewhere'")
        for host in ("rebound.example", "127.0.0.1"):
            assert tried(page, SOCKET, f"ws://{host}:{engine.port}/") == "refused", host
        page.go(f"http://rebound.example:{port}/")
        page.until("document.body.innerText.includes('another name')")
        assert page.js("location.host") == f"rebound.example:{port}"
        assert page.js("document.querySelector('script')") is None
        # It may read every answer of this name: of the console it gets none.
        how = {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}}
        for path, asked in (("/session", how), ("/assets/main.js", {})):
            status = page.js(f"fetch({json.dumps(path)}, {json.dumps(asked)}).then((answer) => answer.status)")
            assert status == 421, path
        for host in ("rebound.example", "127.0.0.1"):
            assert tried(page, SOCKET, f"ws://{host}:{engine.port}/") == "refused", host
        assert is_unspent(url)


def test_a_page_of_another_port_shares_no_storage_and_learns_no_address(engine, browser, elsewhere):
    with engine.client() as client:
        page = ready_page(browser, client)
        session = stored_session(page)
        page.js("localStorage.setItem('probe', 'of the console')")
        own = page.js("location.href")
        page.js(f"location.href = {json.dumps(elsewhere.origin + '/first')}")
        page.until("location.pathname === '/first'")
        kept = "JSON.stringify([Object.keys(localStorage), Object.keys(sessionStorage), document.cookie])"
        assert json.loads(page.js(kept)) == [[], [], ""]
        assert page.js("document.referrer") == "" and page.js("opener") is None
        assert page.js("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
        page.js("localStorage.setItem('kumiki.layout', 'forged'); document.cookie = 'session=forged; path=/'")
        page.js("location.href = '/second'")
        page.until("location.pathname === '/second'")
        assert page.js("document.referrer") != "", "another page does tell where it leads from"
        page.js("history.go(-2)")
        page.until(READY, "back in the page it is ready again")
        assert page.js("location.href") == own and stored_session(page) == session
        assert page.js("localStorage.getItem('kumiki.layout')") is None, "its storage is its own"
        referrers = {path: headers.get("Referer") for path, headers, _ in elsewhere.asked}
        assert referrers["/first"] is None and referrers["/second"] == elsewhere.origin + "/first", referrers
        page.js("localStorage.removeItem('probe')")
        page.close()


@pytest.mark.parametrize("lines", [
    [CHALLENGE, {"wait": 1}, forged_ready("replay"), {"event": "ClientConnected", "count": 1}],
    [forged_ready("replay")],
    [CHALLENGE, {"wait": 1}, CHALLENGE, {"wait": 1}, forged_ready("replay")],
], ids=["a guessed proof", "no challenge", "two challenges"])
def test_a_server_in_the_engine_s_place_gets_no_command(start, browser, lines):
    engine = start(more=ANY_PORT)
    with engine.client() as client:
        page = ready_page(browser, client)
        console, key = urlsplit(page.js("location.href")).port, stored_session(page)["key"]
    engine.kill()
    impostor, server = Impostor(engine.port, lines), Elsewhere(console)
    with contextlib.closing(impostor), contextlib.closing(server):
        page.until("document.documentElement.dataset.connection === 'refused'")
        page.until(page.one("[data-banner=connection][data-code=proof]"))
        wait_until(lambda: impostor.left, "the page has hung up")
        assert impostor.came == 1
        heard = [json.loads(text) for text in impostor.heard]
        assert [command["op"] for command in heard] == ["Hello"] * sum("wait" in line for line in lines)
        assert key not in json.dumps(heard)
        assert server.asked == [], "the page asks its own server for nothing more"
        assert page.js(page.one("[data-action=load]") + ".disabled")
    page.close()


def live_ticket(world, browser):
    """A live page that is ready to trade, and an order in review."""
    world.start()
    world.login()
    page = ready_page(browser, world.client)
    fields = dict(instrument_id="7203", order_side="BUY", order_type="LIMIT", quantity="100", price="2800")
    review(page, fields)
    return page


def review(page, fields):
    page.until(f"!{page.one(f'{TICKET} [data-action=review]')}.disabled", "the ticket takes orders")
    for name, value in fields.items():
        page.fill(f"{TICKET} [name={name}]", value)
    page.click(f"{TICKET} [data-action=review]")
    page.until(page.one(f"{TICKET} [data-action=send]"))


DIALOG = "dialog[open][data-dialog=second-password]"


def test_a_server_in_the_engine_s_place_gets_no_password(world, browser):
    """The engine dies while the password is typed; who comes in its place asks for it."""
    one = world(*ANY_PORT)
    page = live_ticket(one, browser)
    page.click(f"{TICKET} [data-action=send]")
    page.until(page.one(DIALOG))
    page.fill(f"{DIALOG} [name=second_password]", SECOND_PASSWORD)
    order = json.loads(page.js("sessionStorage.getItem('kumiki.pending')"))[0]
    console, port = urlsplit(page.js("location.href")).port, one.engine.port
    one.kill_engine()
    page.until("document.documentElement.dataset.connection === 'lost'")
    ask = {"event": "SecondPasswordRequired", "request_id": order["request_id"]}
    lines = [ask, CHALLENGE, {"wait": 1}, ask, {"event": "SecondPasswordSet", "request_id": "x"}, forged_ready("live"),
             ask]
    impostor, server = Impostor(port, lines), Elsewhere(console)
    with contextlib.closing(impostor), contextlib.closing(server):
        page.until("document.documentElement.dataset.connection === 'refused'")
        wait_until(lambda: impostor.left, "the page has hung up")
        assert page.js("document.querySelector('dialog')") is None, "nothing is typed here any more"
        assert [json.loads(text)["op"] for text in impostor.heard] == ["Hello"] and impostor.came == 1
        assert server.asked == []
        heard = [("heard", text.encode()) for text in impostor.heard]
        assert found_in(heard, {"password": forms(SECOND_PASSWORD)}) == set()
        assert SECOND_PASSWORD not in page.js("[...document.querySelectorAll('input')].map((one) => one.value).join()")
    assert one.broker.orders() == []
    page.close()


def test_c6_a_thousand_slow_connections_while_orders_flow(engine, market):
    """Each is closed: by those that come after it, or because it takes too long."""
    with engine.client() as client:
        url = address(client)
        with PageClient(*signed_in(client)) as page:
            market.load(client, last=2)
            market.run(client, "empty", last=2, multiplier=1, initial_cash="1000000000000")
            slow = []

            def connect():
                slow.extend(slow_connection(url) for _ in range(1_000))

            thread = threading.Thread(target=connect)
            thread.start()
            sent = []
            while thread.is_alive() or len(sent) < 100:
                sender = (client, page)[len(sent) % 2]
                sent.append(f"order-{len(sent)}")
                order = {"client_order_id": sent[-1], "instrument_id": "7203.TSE", "order_side": "BUY",
                         "order_type": "MARKET", "quantity": "100", "time_in_force": "DAY", "post_only": False,
                         "reduce_only": False}
                result = sender.ask("SubmitOrder", "SubmitOrderResult", venue="replay", order=order)
                assert result["outcome"] == "Created", result
            thread.join()
            assert len(slow) == 1_000
            assert request(origin_of(url) + "/")[0] == 200 and is_unspent(url)
            listed = page.ask("GetOrderList", "OrderListUpdated", venue="replay", filter={})
            assert sorted(row["client_order_id"] for row in listed["orders"]) == sorted(sent)
        for one in slow:
            with one:
                assert is_closed(one)


#: A browser that tells what it was started with, and what every user sees of all processes then.
TELLING = """#!{python}
import json, os, pathlib, stat, sys, time
told = {{"arguments": sys.argv[1:], "mode": stat.S_IMODE(os.stat(sys.argv[1]).st_mode),
         "file": pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")}}
pathlib.Path({told!r} + ".new").write_text(json.dumps(told), encoding="utf-8")
os.rename({told!r} + ".new", {told!r})
time.sleep({patience})
"""


def command_lines():
    """What every user of the machine sees of all processes."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield int(path.parent.name), path.read_bytes()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are read in /proc")
def test_no_code_key_or_password_is_left_anywhere(world, browser, tmp_path):
    """From `kumiki console` over a real order to the end: history, referrer, logs, processes, storage. C4: a file is
    all that the browser is told, for its user's eyes, and is removed."""
    one = world(*ANY_PORT, environment={"KUMIKI_LOG": "trace"})
    one.start()
    one.login()
    told, script = tmp_path / "told.json", tmp_path / "browser"
    script.write_text(TELLING.format(python=sys.executable, told=str(told), patience=PATIENCE), encoding="utf-8")
    script.chmod(0o700)
    command = [program(), "console", "--config-dir", one.engine.config, "--cache-dir", one.engine.cache]
    with open(tmp_path / "console.txt", "wb") as output:
        console = subprocess.Popen(
            list(map(str, command)), env={**os.environ, "KUMIKI_BROWSER": str(script), "KUMIKI_LOG": "trace"},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    try:
        wait_until(told.exists, "the browser is started")
        started = json.loads(told.read_text(encoding="utf-8"))
        (file,) = started["arguments"]
        assert started["mode"] == stat.S_IRUSR | stat.S_IWUSR
        page = browser.page(pathlib.Path(file).as_uri())
        page.until(READY)
        code = started["file"].partition("/#")[2].partition('"')[0]
        session = stored_session(page)
        secrets = {"code": code, "key": session["key"], "password": SECOND_PASSWORD}
        assert len(code) == len(session["key"]) == 64
        fields = dict(instrument_id="7203", order_side="BUY", order_type="LIMIT", quantity="100", price="2800")
        review(page, fields)
        page.click(f"{TICKET} [data-action=send]")
        page.until(page.one(DIALOG))
        page.fill(f"{DIALOG} [name=second_password]", SECOND_PASSWORD)
        page.click(f"{DIALOG} [data-action=confirm]")
        page.until(page.one("tr[data-client-order-id][data-status=ACCEPTED]"))
        known = {name: forms(value) for name, value in secrets.items()}
        # Simulated brokers, also those of tests beside this one, are told their user's secrets so.
        lines = [(pid, line) for pid, line in command_lines() if b"\0sim\0" not in line]
        assert found_in(lines, known) == set()
        assert any(str(script).encode() in line for _, line in lines), "the browser was among them"
        storage = page.js("JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])")
        local, of_tab = json.loads(storage)
        places = {**dict(of_tab), "local": json.dumps(local), "document": page.js("document.documentElement.outerHTML"),
                  "values": page.js("[...document.querySelectorAll('input')].map((one) => one.value).join(' ')"),
                  "address": page.js("location.href + document.referrer + document.cookie")}
        # Beside each, the browser keeps what was typed; nobody is shown that, and the code is used up.
        history = [(entry["url"], entry["title"]) for entry in page.call("Page.getNavigationHistory")["entries"]]
        places["history"] = json.dumps(history)
        assert any(url.startswith("http://127.0.0.1") for url, _ in history)
        found = {(place, name) for place, text in places.items() for name, secret in secrets.items() if secret in text}
        assert found == {("kumiki.session", "key")}
    finally:
        console.send_signal(signal.SIGINT)
        ended = console.wait(PATIENCE)
        os.killpg(console.pid, signal.SIGKILL)
    assert not pathlib.Path(file).exists(), ("the file that leads to the page is gone", ended)
    assert len(one.broker.orders()) == 1
    one.kill_engine()
    assert found_in(texts_of(one.folder), known) == set()
    assert found_in([("console.txt", (tmp_path / "console.txt").read_bytes())], known) == set()
    assert found_in(texts_of(browser.folder), {"password": known["password"]}) == set()
    page.close()
