"""A simulated web broker, an engine that trades there, and a client of the engine that keeps every frame: what the
tests of faults, kills, reasons and secrets share. Written from the specification, without any code of ours."""

import datetime
import json
import pathlib
import re
import time

import jsonschema
import plain_client
from plain_client import Client
from web_broker import ORDER, SECOND_PASSWORD, Broker, Trading, dialect
from websockets.exceptions import ConnectionClosed

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: The two kinds of login: the first by a password, the second by a key.
SPEC, VENDOR = "web-broker-spec", "web-broker-v4r10"
#: The codes of specification 2, "Errors", and those that it has removed.
REASON_CODES = frozenset(
    "VALIDATION_ERROR UNSUPPORTED_IN_PHASE_O0 VENUE_UNSUPPORTED SECOND_PASSWORD_REQUIRED SECOND_PASSWORD_INVALID "
    "SECOND_PASSWORD_LOCKED SESSION_EXPIRED UNSUPPORTED_INSTRUMENT CONNECTION_ERROR MARKET_CLOSED INSUFFICIENT_FUNDS "
    "VENUE_REJECTED ORDER_STATUS_UNKNOWN INTERNAL_ERROR".split())
REMOVED_CODES = frozenset(
    "REPLAY_MODE_ACTIVE RATE_LIMITED ORDER_GUARD_NOT_CONFIGURED QTY_LIMIT_EXCEEDED YEN_LIMIT_EXCEEDED".split())
#: How an answer to an order command ends.
ENDS = ("SubmitOrderResult", "OrderRejected", "OrderUpdated", "CancelAllResult", "OrderListUpdated", "Error",
        "EngineBusy", "SecondPasswordRequired", "BuyingPowerUpdated", "PositionsUpdated")
NEW, CORRECT, CANCEL, LIST = "CLMKabuNewOrder", "CLMKabuCorrectOrder", "CLMKabuCancelOrder", "CLMOrderList"
JAPAN = datetime.timezone(datetime.timedelta(hours=9))
#: Lists are asked for after a second, and not after five.
QUICK = ("--web-broker", "unknown_settle_secs=1")


def check_reason(event):
    """The form of a refusal (specification 2, "Errors"; pin P31)."""
    code, text = event["reason_code"], event["reason_text"]
    assert code in REASON_CODES, event
    assert len(text) <= 512 and text.isprintable(), event
    assert re.match(r"[A-Z0-9_]+: \S", text), event
    # Names of fields may stand in words of the broker, with what is masked behind them; see `World.check`.
    assert "://" not in text and "e_api" not in text and not re.search(r"p_no\W{0,6}\d", text), event


class Seen(Client):
    """A connection that keeps all frames, and holds every refusal to its form."""

    def __init__(self, port, token):
        self.received, self.sent = [], []
        super().__init__(port, token, mode="live")

    def read(self, patience=plain_client.PATIENCE):
        text, event = self.socket.receive(patience)
        self.received.append(text)
        assert not any(code in text for code in REMOVED_CODES), text
        if event["event"] == "OrderRejected":
            check_reason(event)
        return event

    def raw(self, frame):
        self.sent.append(frame)
        super().raw(frame)

    def wrong(self, frame):
        self.sent.append(frame)
        super().wrong(frame)

    def to_the_end(self):
        """Takes all events up to the end of the connection."""
        try:
            while True:
                self.next()
        except ConnectionClosed:
            return self.events


class World:
    """A broker, an engine, and a client."""

    def __init__(self, folder, *engine, form=SPEC, broker=(), environment=(), secret=SECOND_PASSWORD, address=None):
        dialect(form)
        self.folder, self.form, self.secret = folder, form, secret
        self.arguments, self.environment = (*QUICK, *engine), dict(environment)
        self.engine = self.client = None
        self.clients, self.engines = [], []
        self.broker = Broker(folder / "broker", *broker, form=form)
        self.address = address(self.broker) if address else self.broker.url

    # --- Processes.

    def start(self, **environment):
        """Starts the engine, or another one after it, and connects."""
        self.engine = Trading(self.folder / "engine", self.address, *self.arguments, form=self.form,
                              environment={**self.environment, **environment})
        self.engines.append(self.engine)
        return self.connect()

    def connect(self):
        self.client = Seen(self.engine.port, self.engine.token)
        self.clients.append(self.client)
        return self.client

    def ready(self, **environment):
        """As `start`, and logs in, and gives the second password."""
        client = self.start(**environment)
        self.login()
        self.password()
        return client

    def login(self):
        return self.client.ask("RequestVenueLogin", "VenueReady", venue="web_broker")

    def password(self, value=None):
        return self.client.ask("SetSecondPassword", "SecondPasswordSet", value=value or self.secret)

    def kill_engine(self):
        """Ends it at once, as a crash does."""
        self.engine.process.kill()
        self.engine.process.wait(plain_client.PATIENCE)

    def close(self):
        for client in self.clients:
            client.socket.close()
        for process in [*self.engines, self.broker]:
            process.process.kill()
            process.process.wait()
            process.process.stdout.close()

    # --- Commands.

    def order(self, name, **other):
        order = {"client_order_id": name, **ORDER, "price": "2800", **other}
        return {field: value for field, value in order.items() if value is not None}

    def send(self, op, **fields):
        """Sends a command and gives what waits for its answer."""
        client, since = self.client, len(self.client.events)
        request_id = client.send(op, venue="web_broker", **fields)
        return lambda *names: client.wait(*(names or ENDS), since=since, request_id=request_id)

    def submit(self, name, **other):
        """How an order ends: its result or its refusal."""
        return self.send("SubmitOrder", order=self.order(name, **other))()

    def placed(self, name, **other):
        """The number of an order that is accepted."""
        result = self.submit(name, **other)
        assert result["event"] == "SubmitOrderResult" and result["venue_order_id"], result
        return result["venue_order_id"]

    def modify(self, name, number=None, **change):
        ids = {"client_order_id": name} if number is None else {"venue_order_id": number}
        return self.send("ModifyOrder", **ids, change=change)()

    def cancel(self, name, number=None):
        """How a cancel ends; its confirmation comes by a notice, which has no request_id."""
        ids = {"client_order_id": name} if number is None else {"venue_order_id": number}
        client, since = self.client, len(self.client.events)
        request_id = client.send("CancelOrder", venue="web_broker", **ids)

        def is_end(event):
            if event["event"] == "OrderCanceled":
                return event["client_order_id"] == name if number is None else event["venue_order_id"] == number
            return event.get("request_id") == request_id

        return client.wait("OrderCanceled", "OrderRejected", "Error", "SecondPasswordRequired", since=since,
                           where=is_end)

    def cancel_all(self, **filters):
        return self.send("CancelAllOrders", **filters)("CancelAllResult", "OrderRejected", "Error",
                                                       "SecondPasswordRequired")

    def orders(self):
        """The rows of the order list."""
        listed = self.send("GetOrderList", filter={})()
        assert listed["event"] == "OrderListUpdated", listed
        return listed["orders"]

    def known(self, name, since=0):
        """What becomes of an order of which it is not known whether the broker has it."""
        return self.client.wait("OrderAccepted", "OrderRejected", client_order_id=name, since=since,
                                where=lambda event: event.get("reason_code") != "ORDER_STATUS_UNKNOWN")

    # --- The broker.

    def fault(self, name, **how):
        self.broker.control({"do": "fault", "name": name, **how})

    def requests(self, kind):
        """The requests of a kind that the broker has seen."""
        return [seen for seen in self.broker.view()["requests"] if seen["fields"].get("sCLMID") == kind]

    def until_seen(self, kind, count=1):
        """Waits until the broker has seen so many requests of a kind."""
        self.until(lambda: len(self.requests(kind)) >= count, f"{count} {kind}")

    def until(self, holds, what):
        deadline = time.monotonic() + plain_client.PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"not so in time: {what}"
            time.sleep(0.03)

    def p_nos(self):
        """The numbers of all requests that the broker has seen."""
        numbers = [seen["fields"].get("p_no") for seen in self.broker.view()["requests"]]
        return [number for number in numbers if number]

    # --- What holds at the end of every test.

    def check(self, alone=True):
        """One request at a time, each with a higher number; no refusal with one of them; a log that is in order. Not
        `alone`: the broker held a request of an engine that was killed."""
        counts = self.broker.view()["counts"]
        assert counts["client_pings"] == 0, counts
        assert not alone or (counts["overlaps"], counts["p_no_refused"]) == (0, 0), counts
        numbers = [int(number) for number in self.p_nos()]
        assert numbers == sorted(set(numbers)), "request numbers rise"
        texts = [event["reason_text"] for client in self.clients for event in client.events
                 if event["event"] == "OrderRejected"]
        told = [text for text in texts for number in numbers if re.search(rf"(?<!\d){number}(?!\d)", text)]
        assert told == [], "a refusal with a request's number"
        check_log(self.folder / "engine" / "config" / "web_broker_orders.jsonl", numbers)


def check_log(path, numbers=None):
    """A log in the form of the schema whose lines follow one another; gives its lines."""
    text = path.read_bytes()
    assert text == b"" or text.endswith(b"\n"), "the log ends within a line"
    schema = json.loads((ROOT / "schemas" / "audit-log.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    lines, open_ids = [], set()
    for line in text.splitlines():
        assert not any(byte < 0x20 or byte == 0x7F for byte in line), line
        line = plain_client.parse(line.decode("utf-8"))
        validator.validate(line)
        lines.append(line)
        phase, name = line["phase"], line.get("client_order_id")
        if phase == "submit":
            assert name not in open_ids, f"{name}: a submit line of an order that is there already"
            open_ids.add(name)
        elif phase == "accepted":
            assert name in open_ids, f"{name}: accepted and never submitted"
            assert numbers is None or line["p_no"] in numbers, line
        elif phase == "rejected":
            assert name in open_ids, f"{name}: rejected and never submitted"
            assert line["reason_code"] in REASON_CODES, line
            open_ids.remove(name)
    return lines


def days_ahead(one, count):
    """The end of the broker's business day that lies so many ahead, in nanoseconds, and its date."""
    day = datetime.datetime.strptime(one.broker.view()["day"].replace("-", ""), "%Y%m%d").date()
    while count:
        day += datetime.timedelta(days=1)
        count -= day.weekday() < 5
    end = datetime.datetime.combine(day, datetime.time(23, 59, 59), JAPAN)
    return int(end.timestamp()) * 10**9, day
