"""A simulated local gateway, and an engine that reads it: what the tests of the local broker share."""

import datetime
import json
import subprocess
import time
import urllib.request

from conftest import program
from engine_process import python_program
from plain_client import PATIENCE
from web_broker import Trading, dialect, first_line

PASSWORD = "canary-gateway-6174"
SPEC, VENDOR = "local-broker-spec", "local-broker-kabusapi"
#: Nothing is waited for five seconds.
QUICK = ("retry_wait_ms=50", "reconnect_base_ms=50", "request_timeout_ms=2000")


def logged_out(begins, ends):
    """The setting of a forced logout that begins and ends so many minutes from now."""
    now = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=9)))
    times = [now + datetime.timedelta(minutes=minutes) for minutes in (begins, ends)]
    return "forced_logout=" + "-".join(f"{time:%H:%M}" for time in times)


class GatewayControl:
    """The control endpoint of a simulated gateway at `address`."""

    address = None

    def control(self, *commands):
        """Does commands of its control endpoint, in their order."""
        body = json.dumps(list(commands)).encode()
        with urllib.request.urlopen(f"{self.address}/control", body, PATIENCE) as answer:
            return json.load(answer)

    def view(self):
        """Everything that it holds."""
        with urllib.request.urlopen(f"{self.address}/control", timeout=PATIENCE) as answer:
            return json.load(answer)

    def answers(self):
        """Whether it is there."""
        try:
            return bool(self.view())
        except OSError:
            return False

    def trade(self, price="2850", quantity=100, symbol="7203", **other):
        """A trade of the market."""
        self.control({"do": "trade", "symbol": symbol, "price": price, "quantity": quantity, **other})


class Gateway(GatewayControl):
    """`kumiki sim local-broker`; its market stands until trades are posted."""

    def __init__(self, folder, *arguments, form=SPEC, market=("--still",), port=0):
        folder.mkdir(parents=True, exist_ok=True)
        command = [program(), "sim", "local-broker", "--port", port, "--dialect", form, "--password", PASSWORD,
                   "--until-stdin-closes", *market, *arguments]
        self.stderr = folder / "gateway.err"
        with self.stderr.open("ab") as errors:
            self.process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=folder)
        listening = first_line(self.process)
        self.port = listening["listening"]
        self.address = f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class LocalWorld:
    """A gateway and an engine. `address` gives that of something between the two."""

    def __init__(self, folder, *settings, form=SPEC, gateway=(), market=("--still",), dev_login=True, environment=(),
                 address=None, terminal=()):
        dialect(form)
        self.folder = folder
        self._gateway = lambda port: Gateway(folder / "gateway", *gateway, form=form, market=market, port=port)
        self.gateway = self._gateway(0)
        try:
            base_url = address(self.gateway) if address else self.gateway.address
            # Nobody is logged out now, whatever the time is.
            given = (*QUICK, logged_out(720, 721), f"base_url={base_url}", f"dialect={form}", *settings)
            arguments = [word for setting in given for word in ("--local-broker", setting)]
            environment = {"DEV_LOCALBROKER_API_PASSWORD": PASSWORD, **dict(environment)}
            self._start = lambda: Trading(folder / "engine", None, *arguments, form=None,
                                          dev_login=dev_login, environment=environment, terminal=terminal)
            self.engine = self._start()
        except BaseException:
            self.gateway.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start_again(self):
        """Another engine in the folders of one that was killed."""
        self.engine.kill()
        self.engine = self._start()

    def gateway_again(self):
        """Another gateway at the address of one that was killed."""
        self.gateway = self._gateway(self.gateway.port)

    def client(self):
        """A connection to the engine."""
        return self.engine.client()

    @property
    def config(self):
        """The folder with the engine's session file."""
        return self.engine.config

    def log(self):
        """What the engine wrote on standard error."""
        return self.engine.stderr.read_text(encoding="utf-8")

    def until(self, holds, what):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"not so in time: {what}"
            time.sleep(0.03)

    def registered(self):
        """The symbols that the gateway pushes."""
        return sorted(entry["Symbol"] for entry in self.gateway.view()["registered"])

    def close(self):
        self.engine.kill()
        self.gateway.kill()


def venue_state(client):
    """Where the venue stands."""
    return client.ask("GetVenueState", "VenueState", venue="local_broker")


def subscribe(world, client):
    """Subscribes to a ticker, whose boards come from then on."""
    client.ask("Subscribe", "Subscribed", venue="local_broker", ticker="7203")
    # A login is told before the stream is open; what is traded until then is pushed to nobody.
    world.until(lambda: venue_state(client)["push"] == "Streaming", "it streams")
    world.until(lambda: world.registered() == ["7203"], "the symbol is registered")


def stream(world, client):
    """Logs in, and subscribes to a ticker."""
    client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
    subscribe(world, client)


def trades_of(client):
    """The trades that a client was told, in their order."""
    return [row for event in client.since(0, "Trades") for row in event["trades"]]


def all_trades(world, client, ticker="7203"):
    """The trades that a client was told, when they are all that the gateway has pushed: of the first frame comes none
    (P54)."""
    pushed = world.gateway.view()["symbols"][ticker]["pushed_volume"]
    told, seen = 0, 0
    while True:
        new = client.since(seen, "Trades")
        seen = len(client.events)
        told += sum(int(row["qty"]) for event in new for row in event["trades"])
        if told >= pushed:
            break
        client.next()
    assert told == pushed, "none is told twice"
    return trades_of(client)


#: A program that speaks the pinentry protocol.
PINENTRY = """
import os, sys, time
def say(*lines):
    for line in lines:
        print(line, flush=True)
sys.stdout.reconfigure(newline="\\n")
say("OK ready")
for line in sys.stdin:
    if line.strip() == "GETPIN":
        {getpin}
    else:
        say("OK")
    if line.strip() == "BYE":
        break
"""


def fake_pinentry(folder, getpin):
    """A program that speaks the pinentry protocol and does this Python at GETPIN."""
    path = python_program(folder / "fake-pinentry", PINENTRY.format(getpin=getpin))
    return {"KUMIKI_PINENTRY": path, "DEV_LOCALBROKER_API_PASSWORD": ""}
