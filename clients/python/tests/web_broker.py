"""The simulated web broker and an engine that trades there, each as a process of its own."""

import json
import os
import signal
import subprocess
import urllib.request

import pytest
from conftest import program
from plain_client import PATIENCE, Client

USER, PASSWORD, SECOND_PASSWORD = "canary-user-8417", "canary-password-5520", "canary-second-3906"
ORDER = {"instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "LIMIT", "quantity": "100",
         "price": "2850", "time_in_force": "DAY", "post_only": False, "reduce_only": False}
#: Nothing of this machine's own keys.
CLEAN = {"KUMIKI_KEY_STORE": "off", "DEV_WEBBROKER_USER_ID": USER, "DEV_WEBBROKER_PASSWORD": PASSWORD}


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


class Broker:
    """`kumiki sim web-broker`."""

    def __init__(self, folder, *arguments, form="web-broker-spec"):
        folder.mkdir(parents=True)
        command = [program(), "sim", "web-broker", "--port", "0", "--dialect", form, "--user", USER,
                   "--password", PASSWORD, "--second-password", SECOND_PASSWORD, *arguments]
        self.stderr = folder / "broker.err"
        with self.stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, cwd=folder)
        listening = first_line(self.process)
        self.port, self.url = listening["listening"], listening["base_url"]

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

    def trade(self, price="2850", quantity=100, issue="7203"):
        """A trade of the market."""
        self.control({"do": "trade", "issue": issue, "price": price, "quantity": quantity})

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Trading:
    """`kumiki serve --mode live --standalone` that trades at an address."""

    def __init__(self, folder, url, *arguments, form="web-broker-spec", dev_login=True, environment=()):
        self.folder, self.config, self.cache = folder, folder / "config", folder / "cache"
        folder.mkdir(parents=True, exist_ok=True)
        command = [program(), "serve", "--mode", "live", "--standalone", "--port", "0", "--config-dir", self.config,
                   "--cache-dir", self.cache, *(["--dev-login"] if dev_login else []), *arguments]
        for name, value in (("base_url", url), ("dialect", form)):
            if value is not None:
                command += ["--web-broker", f"{name}={value}"]
        self.stderr = folder / "engine.err"
        with self.stderr.open("ab") as errors:
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.PIPE, stderr=errors,
                env={**os.environ, **CLEAN, **dict(environment)}, cwd=folder)
        self.port = first_line(self.process)["listening"]
        self.token = json.loads((self.config / "engine-session.json").read_text())["token"]

    def client(self):
        """A connection."""
        return Client(self.port, self.token, mode="live")

    def end(self):
        """Ends it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def log(self):
        """The lines of the audit log."""
        path = self.config / "web_broker_orders.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def refused_start(folder, *arguments, environment=()):
    """How an engine ends that does not start: its exit code, and what it says."""
    command = [program(), "serve", "--mode", "live", "--standalone", "--port", "0", "--config-dir", folder / "config",
               "--cache-dir", folder / "cache", *arguments]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE, cwd=folder,
                           env={**os.environ, **CLEAN, **dict(environment)})
    told = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert ended.stdout == "" and len(told) == 1, ended
    return ended.returncode, told[0]
