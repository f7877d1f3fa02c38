"""The simulated web broker and an engine that trades there, each as a process of its own."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import urllib.request

import pytest
from conftest import program
from engine_process import OWN_CONSOLE, interrupt
from plain_client import PATIENCE, Client

USER, PASSWORD, SECOND_PASSWORD = "canary-user-8417", "canary-password-5520", "canary-second-3906"
AUTH_ID = "canary-authid-7062"
#: The private key of all brokers of these tests that want one; the first makes it.
PRIVATE_KEY = pathlib.Path(tempfile.mkdtemp(prefix="kumiki-test-"), "private_key.pem")
ORDER = {"instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "LIMIT", "quantity": "100",
         "price": "2850", "time_in_force": "DAY", "post_only": False, "reduce_only": False}
#: Nothing of this machine's own keys.
CLEAN = {"KUMIKI_KEY_STORE": "off", "DEV_WEBBROKER_USER_ID": USER, "DEV_WEBBROKER_PASSWORD": PASSWORD,
         "DEV_WEBBROKER_AUTH_ID": AUTH_ID, "DEV_WEBBROKER_PRIVATE_KEY_FILE": str(PRIVATE_KEY)}
#: How a line of a log begins.
NOTE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ JST ")


def dialect(name):
    """The file of a dialect beside the program."""
    path = program().parent / "dialects" / f"{name}.wasm"
    if not path.is_file():
        pytest.skip(f"{path} is not built; `cargo xtask guests` builds it")
    return path


def first_line(process):
    """The line that a server prints when it listens."""
    line = process.stdout.readline()
    assert line, f"it ended with {process.wait(PATIENCE)}"
    return json.loads(line)


class BrokerControl:
    """The control endpoint of a simulated web broker at `port`."""

    port = None

    def control(self, *commands):
        """Does commands of its control endpoint, in their order."""
        body = json.dumps(list(commands)).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/control", body, PATIENCE) as answer:
            return json.load(answer)

    def view(self):
        """Everything that it holds."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/control", timeout=PATIENCE) as answer:
            return json.load(answer)

    def orders(self):
        """The orders that it holds, in the order in which they came."""
        return self.view()["orders"]


class Broker(BrokerControl):
    """`kumiki sim web-broker`."""

    def __init__(self, folder, *arguments, form="web-broker-spec"):
        folder.mkdir(parents=True)
        command = [program(), "sim", "web-broker", "--port", "0", "--dialect", form, "--user", USER,
                   "--password", PASSWORD, "--second-password", SECOND_PASSWORD, *arguments]
        if form == "web-broker-v4r10":
            command += ["--auth-id", AUTH_ID, "--private-key", PRIVATE_KEY]
        self.stderr = folder / "broker.err"
        with self.stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, cwd=folder)
        listening = first_line(self.process)
        self.port, self.url = listening["listening"], listening["base_url"]

    def trade(self, price="2850", quantity=100, issue="7203"):
        """A trade of the market."""
        self.control({"do": "trade", "issue": issue, "price": price, "quantity": quantity})

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Trading:
    """`kumiki serve --mode live` that trades at an address: by itself, or started by a line on standard input.
    `terminal`: how it is started at one, for `subprocess.Popen`; what it says is there then."""

    def __init__(self, folder, url, *arguments, form="web-broker-spec", dev_login=True, environment=(),
                 start_line=None, terminal=(), port=0):
        self.folder, self.config, self.cache = folder, folder / "config", folder / "cache"
        folder.mkdir(parents=True, exist_ok=True)
        command = [program(), "serve", "--mode", "live", "--port", port, *arguments]
        if start_line is None:
            command += ["--standalone", "--config-dir", self.config, "--cache-dir", self.cache]
            command += ["--dev-login"] if dev_login else []
        for name, value in (("base_url", url), ("dialect", form)):
            if value is not None:
                command += ["--web-broker", f"{name}={value}"]
        self.stderr = folder / "engine.err"
        with self.stderr.open("ab") as errors:
            how = {"stdin": subprocess.PIPE, "stderr": errors, **OWN_CONSOLE, **dict(terminal)}
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.PIPE, env={**os.environ, **CLEAN, **dict(environment)},
                cwd=folder, **how)
        if start_line is not None:
            self.process.stdin.write(line_for(self.config, self.cache, **start_line).encode())
            self.process.stdin.flush()
        self.port = first_line(self.process)["listening"]
        self.token = json.loads((self.config / "engine-session.json").read_text())["token"]

    def client(self):
        """A connection."""
        return Client(self.port, self.token, mode="live")

    def end(self):
        """Ends it by Ctrl-C."""
        interrupt(self.process)
        return self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        self.process.stdout.close()

    def log(self):
        """The lines of the audit log."""
        path = self.config / "web_broker_orders.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def line_for(config, cache, **other):
    """The line of standard input by which another program starts an engine."""
    line = {"token": "a token of sixteen", "config_dir": str(config), "cache_dir": str(cache)}
    return json.dumps({**line, **other}) + "\n"


def refused_start(folder, *arguments, environment=()):
    """How an engine ends that does not start: its exit code, and what it says, which is one line besides its log."""
    command = [program(), "serve", "--mode", "live", "--port", "0", *arguments]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE, cwd=folder,
                           input=line_for(folder / "config", folder / "cache"),
                           env={**os.environ, **CLEAN, **dict(environment)})
    # To wrong arguments belongs the usage.
    said = ended.stderr.partition("\n\nUsage: ")[0] if ended.returncode == 2 else ended.stderr
    told = [line for line in said.splitlines() if not NOTE.match(line)]
    assert ended.stdout == "" and len(told) == 1 and told[0].startswith("error: "), ended
    return ended.returncode, told[0]
