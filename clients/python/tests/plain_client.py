"""A client of `kumiki serve`, written from the specification alone: one WebSocket, text frames of JSON.

Every frame is held against the committed schemas, both ways, and what comes in also against what a schema
cannot say: no field twice, no number of binary floating point, amounts in their shortest form.
"""

import functools
import hashlib
import hmac
import json
import pathlib
import re
import secrets
import time

import jsonschema
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "schemas"
SCHEMA_MAJOR, SCHEMA_MINOR = 1, 4
#: Seconds after which something that must come is missing: generous, because nothing here measures time.
PATIENCE = 90.0
#: Answers that refuse a command.
REFUSALS = ("Error", "EngineError", "EngineBusy", "OrderRejected")
#: Fields with an exact decimal number as text, in its shortest form.
DECIMALS = frozenset(
    "price trigger_price last_price qty last_qty quantity filled_qty leaves_qty cumulative_qty opened_qty cash "
    "buying_power equity final_equity market_value unrealized_pnl realized_pnl avg_open_price avg_close_price "
    "open high low close volume turnover initial_cash cash_available cash_shortfall credit_available "
    "average_price margin_quantity up_to tick base_price lower_limit upper_limit".split()
)
#: Fields with a text that somebody chose, of which a schema knows the length at most.
IDS = frozenset("request_id client_order_id venue_order_id trade_id".split())
SHORTEST = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]{0,3}[1-9])?")


def proof(token, side, first_nonce, second_nonce, mode):
    """What shows that a side knows the token: of the client over the server's nonce and its own, and of the
    server the other way round."""
    message = f"{side}:{first_nonce}:{second_nonce}:{mode}"
    return hmac.new(token.encode(), message.encode(), hashlib.sha256).hexdigest()


@functools.cache
def validators(root, tag):
    """A validator for each kind of message, by its tag: of a client, `Command`, or of the engine, `Event`. The
    forms of events take fields that they do not name; here these would be faults of the forms."""
    schema = json.loads((SCHEMAS / "ipc.schema.json").read_text(encoding="utf-8"))
    forms = {name: closed(form) for name, form in schema["$defs"].items()}
    kinds = {kind["properties"][tag]["const"]: kind for kind in forms[root]["oneOf"]}
    return {name: jsonschema.Draft202012Validator({**kind, "$defs": forms}) for name, kind in kinds.items()}


def closed(form):
    """A form that takes no fields but those that it names."""
    if isinstance(form, list):
        return [closed(inner) for inner in form]
    if not isinstance(form, dict):
        return form
    form = {name: closed(inner) for name, inner in form.items()}
    if isinstance(form.get("properties"), dict):
        form.setdefault("additionalProperties", False)
    return form


def check_command(command):
    """Fails where a command breaks its schema."""
    validators("Command", "op")[command["op"]].validate(command)


def check_event(event):
    """Fails where an event breaks its schema, or has an amount that is not in its shortest form."""
    known = validators("Event", "event")
    assert event.get("event") in known, f"no event of the schema: {event}"
    known[event["event"]].validate(event)
    check_decimals(event)


def check_decimals(value, name=None):
    """Fails where an amount is not in its shortest form."""
    if isinstance(value, dict):
        for key, inner in value.items():
            check_decimals(inner, key)
    elif isinstance(value, list):
        for inner in value:
            check_decimals(inner, name)
    elif name in DECIMALS and isinstance(value, str):
        assert SHORTEST.fullmatch(value) and value != "-0", f"{name}: {value!r} is not the shortest form"


#: What was held against its schema already, by what the schema looks at.
_CHECKED = set()


def check_many(message):
    """As `check_command` and `check_event`, for the many of a test that are alike: what differs only in what no schema
    looks at is held against it once."""
    key = likeness(message)
    if key not in _CHECKED:
        (check_command if "op" in message else check_event)(fewer(message))
        _CHECKED.add(key)


def likeness(value, name=None):
    """What a schema can look at. Of an amount in its shortest form that is its sign and its point, of a whole number
    above 0 nothing but that, of an id its length; only a multiplier has a highest value."""
    kind = type(value)
    if kind is str:
        if name in DECIMALS and SHORTEST.fullmatch(value) and value != "-0":
            return "-" in value, "." in value
        return ("id", len(value)) if name in IDS else value
    if kind is int and value > 0 and name != "multiplier":
        return int
    if kind is dict:
        return tuple([(key, likeness(inner, key)) for key, inner in value.items()])
    if kind is list:
        return frozenset([likeness(inner, name) for inner in value])
    return kind, value


def fewer(value):
    """A message whose lists have one item of each likeness."""
    if isinstance(value, dict):
        return {key: fewer(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [fewer(inner) for inner in {likeness(inner): inner for inner in value}.values()]
    return value


def parse(text):
    """The JSON object of a frame."""
    assert isinstance(text, str), f"a frame that is no text: {text[:80]!r}"
    message = json.loads(text, object_pairs_hook=_once, parse_float=_no_float, parse_constant=_no_float)
    assert isinstance(message, dict), f"no JSON object: {text[:80]}"
    return message


def _once(pairs):
    fields = dict(pairs)
    assert len(fields) == len(pairs), f"a field stands twice: {[name for name, _ in pairs]}"
    return fields


def _no_float(text):
    raise AssertionError(f"{text} is a number of binary floating point")


class Checked(ClientConnection):
    """A connection whose frames are held against the schemas, both ways."""

    def send(self, frame, *, text=None):
        """Sends a command, as text. What is wrong on purpose is sent by `send_wrong`."""
        check_many(parse(frame))
        super().send(frame, text=text)

    def send_wrong(self, frame, *, text=None):
        """Sends what is no right command: text as text, bytes as a binary frame unless they are said to be text."""
        super().send(frame, text=text)

    def recv(self, timeout=None, decode=None):
        """The text of the next event."""
        return self.receive(timeout)[0]

    def receive(self, timeout=None):
        """The next event: its text, and its fields."""
        text = super().recv(timeout)
        event = parse(text)
        check_many(event)
        return text, event


class Refused(AssertionError):
    """The engine refused a command; `event` is its answer."""

    def __init__(self, event):
        super().__init__(json.dumps(event))
        self.event = event


class Client:
    """A connection. `events` is everything that came in, in its order, from the challenge on."""

    count = 0

    def __init__(self, port, token, mode="replay", origin=None, greet=True, max_queue=None):
        Client.count += 1
        self.name = f"c{Client.count}"
        self.events = []
        self.requests = 0
        self.token, self.mode = token, mode
        self.socket = connect(
            f"ws://127.0.0.1:{port}/", origin=origin, compression=None, proxy=None, max_size=None, max_queue=max_queue,
            ping_interval=None, open_timeout=PATIENCE, close_timeout=PATIENCE, legacy=True, create_connection=Checked,
        )
        self.challenge = self.ready = None
        if greet:
            try:
                self.greet()
            except BaseException:
                self.socket.close()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # --- The handshake.

    def take_challenge(self):
        """The first frame: the server's nonce."""
        challenge = self.challenge = self.next()
        assert challenge["event"] == "Challenge", challenge
        assert re.fullmatch("[0-9a-f]{64}", challenge["server_nonce"]), challenge
        assert (challenge["schema_major"], challenge["schema_minor"]) == (SCHEMA_MAJOR, SCHEMA_MINOR)
        return challenge

    def hello(self, **other):
        """A greeting that fits the challenge, with other fields in place of right ones."""
        nonce = secrets.token_hex(32)
        mode = other.get("mode", self.mode)
        greeting = {
            "op": "Hello", "schema_major": SCHEMA_MAJOR, "schema_minor": SCHEMA_MINOR, "client_version": "plain",
            "mode": mode, "client_nonce": nonce,
            "proof": proof(self.token, "client", self.challenge["server_nonce"], nonce, mode),
        }
        return {**greeting, **other}

    def greet(self):
        """Takes the challenge, shows the proof, and checks that of the server."""
        self.take_challenge()
        greeting = self.hello()
        self.raw(json.dumps(greeting))
        ready = self.ready = self.next()
        assert ready["event"] == "Ready", ready
        expected = proof(
            self.token, "server", greeting["client_nonce"], self.challenge["server_nonce"], self.mode
        )
        assert hmac.compare_digest(ready["proof"], expected), "the server does not know the token"
        assert (ready["schema_major"], ready["schema_minor"]) == (SCHEMA_MAJOR, SCHEMA_MINOR)

    # --- Frames.

    def raw(self, frame):
        """Sends the text of a command as it is. It is held against its schema."""
        self.socket.send(frame)

    def wrong(self, frame):
        """Sends what is no right command on purpose: text as text, bytes as a binary frame."""
        self.socket.send_wrong(frame)

    def send(self, op, **fields):
        """Sends a command and gives its id. It is held against its schema."""
        request_id, command = self.command(op, fields)
        self.raw(json.dumps(command))
        return request_id

    def command(self, op, fields):
        """A command, and its id."""
        self.requests += 1
        request_id = fields.setdefault("request_id", f"{self.name}-{self.requests}")
        return request_id, {"op": op, **fields}

    def read(self, patience=PATIENCE):
        """The next event, which is not kept. Raises ConnectionClosed where there is none any more."""
        return self.socket.receive(patience)[1]

    def next(self, patience=PATIENCE):
        """The next event. Raises ConnectionClosed where there is none any more."""
        event = self.read(patience)
        self.events.append(event)
        return event

    def wait(self, *names, since=0, where=None, **fields):
        """The first event at or after the place `since` of `events` that has one of the names and these fields."""
        at, deadline = since, time.monotonic() + PATIENCE
        while True:
            while at < len(self.events):
                event = self.events[at]
                at += 1
                if event["event"] not in names or any(event.get(key) != value for key, value in fields.items()):
                    continue
                if where is None or where(event):
                    return event
            try:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                self.next(left)
            except (TimeoutError, ConnectionClosed) as error:
                last = [event["event"] for event in self.events[-20:]]
                raise AssertionError(f"no {names} with {fields} ({error!r}); the last events: {last}") from error

    def ask(self, op, answer, **fields):
        """Sends a command and gives its answer. Raises Refused where it is refused."""
        since = len(self.events)
        request_id = self.send(op, **fields)
        event = self.wait(answer, *REFUSALS, since=since, request_id=request_id)
        if event["event"] != answer:
            raise Refused(event)
        return event

    def refusal(self, op, **fields):
        """Sends a command that is to be refused and gives the refusal."""
        since = len(self.events)
        request_id, command = self.command(op, fields)
        self.wrong(json.dumps(command))
        done = (
            "OrderAccepted SubmitOrderResult OrderUpdated OrderCanceled CancelAllResult OrderListUpdated "
            "ReplayDataLoaded EngineStarted ReplayStopped ReplaySpeedChanged Session Subscribed ReplayBuyingPower "
            "PositionsUpdated"
        ).split()
        event = self.wait(*REFUSALS, *done, since=since, request_id=request_id)
        assert event["event"] in REFUSALS, f"{op} {fields} was taken: {event}"
        if event["event"] == "EngineBusy" or event.get("code", event.get("reason_code")).lower() != "validation_error":
            # It was wrong at that moment only, or for that engine.
            check_command(command)
        return event

    def take_all(self):
        """Takes the events that are there already."""
        try:
            while True:
                self.next(0)
        except TimeoutError:
            pass

    def is_alive(self):
        """Whether the server answers a ping."""
        return self.socket.ping().wait(PATIENCE)

    def closed(self):
        """Takes all events up to the end of the connection and gives the code of its close."""
        try:
            while True:
                self.next()
        except ConnectionClosed:
            return self.socket.close_code

    def since(self, place, *names):
        """The events at or after a place, those of some names only where any are given."""
        return [event for event in self.events[place:] if not names or event["event"] in names]
