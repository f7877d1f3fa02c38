"""Secrets with names of their own go through every flow, with the log at trace; afterwards none stands in any file of
the engine, in its log, or in any frame to a client: not as it is, percent-encoded, as base64 or in UTF-16."""

import base64
import hashlib
import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.parse

import pytest
import web_broker

pytest.register_assert_rewrite("live_world")
from conftest import program  # noqa: E402
from engine_process import ABORTED  # noqa: E402
from go_between import GoBetween  # noqa: E402
from live_world import CANCEL, CORRECT, NEW, SPEC, World  # noqa: E402
from secret_search import forms, found_in, texts_of  # noqa: E402
from web_broker import CLEAN, PASSWORD, USER  # noqa: E402

#: 表 and ソ have a backslash as their second byte at the broker; the others mean something in JSON and in addresses.
SECOND = "canary-odd-6127表ソ\"%\\"
#: The go-between reads and changes addresses, which come encrypted in later releases.
VENDOR = "web-broker-v4r8"
WRONG_SECOND, WRONG_PASSWORD = "canary-wrong-9944", "canary-badlogin-3310"
CORE = re.compile(r"canary-\w+-\d+")
LIST = "CLMOrderList"


class Repeating(GoBetween):
    """Stands between an engine and its broker where logins and orders go, knows every address that a login answered,
    and makes the broker repeat secrets in its words."""

    def __init__(self, broker, form):
        self.form = form
        self.tokens, self.p_nos, self.lock = [], set(), threading.Lock()
        self.login, self.spells = [], False
        super().__init__(broker.port)
        self.url = broker.url.replace(f":{broker.port}/", f":{self.port}/")

    def heard(self, path, sent):
        asked = urllib.parse.unquote_to_bytes(path.partition("?")[2]).decode("cp932", "replace")
        number = re.search(r'"p_no"\s*:\s*"(\d+)"', asked)
        if number:
            with self.lock:
                self.p_nos.add(number[1])
        return asked

    def changed(self, body, asked):
        """The address of requests leads here again; the words of a refusal repeat the secrets of what was asked."""
        raw = urllib.parse.unquote_to_bytes(body) if self.form == SPEC else body
        try:
            fields = json.loads(raw.decode("cp932"))
        except ValueError:
            return body
        if not isinstance(fields, dict):
            return body
        address = fields.get("sUrlRequest", "")
        if address:
            with self.lock:
                self.tokens += [value.rstrip("/").rpartition("/")[2] for name, value in fields.items()
                                if name.startswith("sUrl")]
            fields["sUrlRequest"] = address.replace(f":{self.behind}/", f":{self.port}/")
        words = self.words(asked)
        for name in ("p_err", "sResultText", "sWarningText", "sOrderResultText"):
            if fields.get(name):
                fields[name] += words
        made = json.dumps(fields, ensure_ascii=False).encode("cp932")
        return "".join(f"%{byte:02X}" for byte in made).encode() if self.form == SPEC else made

    def words(self, asked):
        """What a broker that chatters may say: what it was asked, where, and by whom; where it `spells`, also as that
        stands in an address, encoded, and in JSON."""
        address = f"http://127.0.0.1:{self.port}/e_api_v4r8/request/{self.tokens[-1]}/" if self.tokens else ""
        try:
            sent = json.loads(asked)
        except ValueError:
            sent = {}
        if "sPassword" in sent:
            self.login = [sent["sUserId"], sent["sPassword"]]
        told = [*self.login, sent.get("sSecondPassword", ""), sent.get("p_no", "")]
        if not self.spells:
            return " ".join(["", *told, address])
        quoted = ["".join(f"%{byte:02X}" for byte in text.encode("cp932")) for text in told]
        some = [urllib.parse.quote(text.encode("cp932")).lower() for text in told]
        # The request itself first: a reason has 512 characters.
        return " ".join(["", json.dumps(told, ensure_ascii=False), json.dumps(told), *quoted, *some,
                         f"{address}?{asked}"])[:3_000]


@pytest.fixture
def between(tmp_path, monkeypatch):
    """Starts a broker with a go-between and a world around them."""
    made = []
    monkeypatch.setattr(web_broker, "SECOND_PASSWORD", SECOND)

    def start(form, **how):
        go = []

        def address(broker):
            go.append(Repeating(broker, form))
            return go[0].url

        one = World(tmp_path / f"world-{len(made)}", form=form, secret=SECOND, address=address,
                    environment={"KUMIKI_LOG": "trace", **how})
        made.append((one, go[0]))
        return one, go[0]

    yield start
    for one, go in made:
        one.close()
        go.close()


def secrets(tokens):
    whole = [USER, PASSWORD, SECOND, WRONG_SECOND, WRONG_PASSWORD, *tokens]
    return {word: forms(word) for word in [*whole, *(CORE.search(text)[0] for text in whole if CORE.search(text))]}


def test_the_search_finds_what_it_is_to_find():
    for secret, known in secrets(["0123456789abcdef0123456789abcdef"]).items():
        for form in (secret.encode(), secret.encode("cp932"), b"xx" + base64.b64encode(b"?" + secret.encode()),
                     base64.b64encode(b"ab" + secret.encode() + b"tail"), base64.b64encode(secret.encode("cp932")),
                     json.dumps({"value": secret}).encode(), secret.encode("utf-16"), secret.encode("utf-16-be"),
                     urllib.parse.quote(secret).encode(), urllib.parse.quote(secret.encode("cp932")).encode()):
            assert any(one in form for one in known), (secret, form)


def hold(one, go, *more):
    """Holds all that an engine has left behind against all secrets."""
    p_nos = go.p_nos | set(one.p_nos() if one.broker.process.poll() is None else ())
    assert len(go.tokens) >= 5 and p_nos
    known = secrets(sorted(set(go.tokens)))
    numbers = re.compile(rb"(?<![0-9])(" + b"|".join(number.encode() for number in sorted(p_nos)) + rb")(?![0-9])")
    places = list(texts_of(one.folder / "engine"))
    assert {"engine.err", "web_broker_orders.jsonl", "web_broker_p_no"} <= {name for name, _ in places}
    for client in one.clients:
        places += [("a frame to a client", frame.encode()) for frame in client.received]
        places += [("a frame of a client", frame.encode()) for frame in client.sent if "SetSecond" not in frame]
    places += more
    assert not found_in(places, known)
    found = [(name, number) for name, data in places if name not in ("web_broker_p_no", "web_broker_orders.jsonl")
             for number in set(numbers.findall(data))]
    assert found == []
    assert b"e_api_v4r8/request" not in b"".join(data for _, data in places)


def test_the_log_is_one_that_could_tell(between):
    """It has what the desk and the connection to the broker say, and the digest of the dialect (part 5)."""
    one, go = between(SPEC)
    one.ready()
    one.placed("seen")
    assert one.engine.end() == 0
    log = one.engine.stderr.read_text(encoding="utf-8")
    sha256 = hashlib.sha256(web_broker.dialect(SPEC).read_bytes()).hexdigest()
    for text in (sha256, "logged in at the web broker", "the engine sends a request to the web broker", NEW):
        assert text in log, "the log is as chatty as it can be"
    hold(one, go)


def command_line(one, *arguments):
    """What `kumiki order` prints."""
    done = subprocess.run([str(program()), "order", *arguments, "--config-dir", str(one.engine.config)],
                          capture_output=True, timeout=90, stdin=subprocess.DEVNULL, cwd=one.folder,
                          env={**os.environ, **CLEAN, "KUMIKI_LOG": "trace"})
    return "kumiki order", done.stdout + done.stderr


def is_framed(one, text):
    """Sends a frame, where a stream is connected."""
    try:
        one.broker.control({"do": "frame", "text": text})
        return True
    except urllib.error.HTTPError as error:
        error.close()
        return False


@pytest.mark.parametrize("form", [SPEC, VENDOR])
def test_every_flow(between, form):
    one, go = between(form)
    client = one.start()
    # Logins that are refused, for every reason, with words that repeat the secrets.
    for fault in ({"name": "refuse-login"}, {"name": "unread-documents"}, {"name": "offline"},
                  {"name": "production-host"}):
        one.fault(**fault)
        since = len(client.events)
        client.send("RequestVenueLogin", venue="web_broker")
        client.wait("VenueError", since=since)
        one.broker.control({"do": "clear-faults"})
    for fault in ({"name": "garbage"}, {"name": "half-answer"}, {"name": "http-status", "value": 302}):
        one.fault(request="CLMAuthLoginRequest", times=1, **fault)
        since = len(client.events)
        client.send("RequestVenueLogin", venue="web_broker")
        client.wait("VenueError", since=since)
    one.login()
    # Second passwords: wrong, malformed commands, right.
    one.password(WRONG_SECOND)
    assert one.submit("wrong")["reason_code"] == "SECOND_PASSWORD_INVALID"
    for odd in ({"value": [SECOND]}, {"value": {"a": SECOND}}, {"value": SECOND, "more": SECOND}, {"valve": SECOND},
                {"value": SECOND * 500}):
        client.wrong(json.dumps({"op": "SetSecondPassword", "request_id": "odd", **odd}))
        client.wait("Error", "SecondPasswordSet", since=len(client.events))
    client.wrong('{"op": "SetSecondPassword", "value": "%s' % WRONG_SECOND)
    client.wait("Error", since=len(client.events))
    one.password()
    # Orders, and what goes wrong with them.
    number = one.placed("first")
    assert one.modify("first", new_price="2790")["event"] == "OrderUpdated"
    one.placed("filled", order_type="MARKET", price=None)
    one.broker.trade("2850", 100)
    client.wait("OrderFilled", client_order_id="filled")
    for kind, send in ((NEW, lambda: one.submit("r", price="2700")),
                       (CORRECT, lambda: one.modify("first", new_price="2780")),
                       (CANCEL, lambda: one.cancel("first")), (LIST, lambda: one.send("GetOrderList", filter={})()),
                       ("CLMZanKaiKanougaku", lambda: one.send("GetBuyingPower")()),
                       ("CLMZanShinkiKanoIjiritu", lambda: one.send("GetBuyingPower")()),
                       ("CLMGenbutuKabuList", lambda: one.send("GetPositions")()),
                       ("CLMShinyouTategyokuList", lambda: one.send("GetPositions")())):
        for fault in ({"name": "result", "value": 11249}, {"name": "errno", "value": -1},
                      {"name": "errno", "value": 77}):
            # The desk asks for lists by itself too, and one fault would be for whoever comes first.
            one.fault(request=kind, times=1000 if kind == LIST else 1, **fault)
            ended = send()["event"]
            if kind == LIST:
                assert ended in ("OrderRejected", "Error")
            elif kind in (NEW, CORRECT, CANCEL):
                assert ended in ("OrderRejected", "Error", "OrderUpdated", "SubmitOrderResult", "OrderCanceled")
            else:
                assert ended == "Error", "half of the account is not told as all of it"
            one.broker.control({"do": "clear-faults"})
            one.orders()
    for fault in ("garbage", "half-answer", "drop-answer", "drop-before"):
        one.fault(fault, request=NEW, times=1)
        one.submit(f"lost-{fault}", price=str(2600 + len(fault)))
        since = len(client.events)
        one.orders()
    # Frames with what nobody expects in them.
    words = go.words("{}")
    for text in (f"p_no\x021\x01p_cmd\x02EC\x01p_evt_cmd\x02EC\x01p_NT\x024\x01p_ON\x02{number}\x01p_IC\x02{SECOND}",
                 f"p_evt_cmd\x02ST\x01p_cmd\x02ST\x01p_errno\x022\x01p_err\x02{words}", words, "\x01\x02\x03",
                 f"p_evt_cmd\x02EC\x01p_cmd\x02EC\x01p_NT\x02{SECOND}\x01p_ON\x02{go.tokens[-1]}"):
        one.until(lambda text=text: is_framed(one, text), "the stream is followed")
    one.broker.control({"do": "disconnect-events", "errno": 2})
    # The session ends, another begins at other addresses.
    one.broker.control({"do": "end-session"})
    one.submit("frozen", price="2650")
    one.login()
    one.password()
    one.cancel_all()
    terminal = [command_line(one, *arguments) for arguments in (
        ("list",), ("submit", "7203.TSE", "BUY", "100", "--price", "2640", "--yes"), ("cancel-all", "--yes"),
        ("login",))]
    one.client.send("ForgetSecondPassword")
    terminal.append(command_line(one, "submit", "7203.TSE", "BUY", "100", "--price", "2640", "--yes"))
    one.broker.process.kill()
    one.broker.process.wait()
    one.password()
    assert one.submit("nobody", price="2630")["reason_text"].startswith("GUARD: ")
    go.close()
    assert one.submit("nobody", price="2630")["reason_code"] == "CONNECTION_ERROR"
    client.take_all()
    assert one.engine.end() == 0
    hold(one, go, *terminal)


@pytest.mark.parametrize("form", [SPEC, VENDOR])
def test_a_broker_that_repeats_what_it_was_sent(between, form):
    """In its words stands the request, as JSON and as it stands in an address."""
    one, go = between(form)
    go.spells = True
    client = one.start()
    one.fault("refuse-login")
    client.send("RequestVenueLogin", venue="web_broker")
    client.wait("VenueError")
    one.broker.control({"do": "clear-faults"})
    one.login()
    one.password(WRONG_SECOND)
    assert one.submit("wrong")["reason_code"] == "SECOND_PASSWORD_INVALID"
    one.password()
    one.placed("first")
    for kind, send in ((NEW, lambda: one.submit("r", price="2700")), (CANCEL, lambda: one.cancel("first")),
                       (CORRECT, lambda: one.modify("first", new_price="2780"))):
        for fault in ({"name": "result", "value": 11249}, {"name": "errno", "value": -1}):
            one.fault(request=kind, times=1, **fault)
            send()
    one.orders()
    assert one.engine.end() == 0
    hold(one, go)


@pytest.mark.parametrize(
    "point", ["before_submit_line", "before_send", "sending", "answer_received", "accepted_broadcast"])
def test_an_engine_that_dies(between, point):
    """What it leaves behind, and what the next one makes of it."""
    one, go = between(SPEC)
    client = one.ready(KUMIKI_KILL_AT=point)
    client.send("SubmitOrder", venue="web_broker", order=one.order("dies"))
    client.to_the_end()
    assert one.engine.process.wait(30) == ABORTED
    hold(one, go)
    one.ready()
    one.submit("dies")
    one.orders()
    one.kill_engine()
    hold(one, go)


def test_wrong_words(between, tmp_path):
    """A wrong password of the login, and the other dialect than the broker's."""
    one, go = between(SPEC)
    one.start(DEV_WEBBROKER_PASSWORD=WRONG_PASSWORD)
    one.client.send("RequestVenueLogin", venue="web_broker")
    one.client.wait("VenueError")
    one.kill_engine()
    one.form = VENDOR
    one.start()
    one.client.send("RequestVenueLogin", venue="web_broker")
    one.client.wait("VenueError", "VenueReady")
    one.password()
    one.submit("strange")
    one.send("GetOrderList", filter={})()
    one.kill_engine()
    one.form = SPEC
    one.ready()
    one.placed("right")
    assert one.engine.end() == 0
    hold(one, go)
