"""A headless Chromium, driven by its debugging protocol: pages that tests open, click and read."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest
from plain_client import PATIENCE
from websockets.sync.client import connect

PROGRAMS = "chromium chromium-browser chromium-headless-shell google-chrome google-chrome-stable chrome".split()
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking "
    "--remote-debugging-port=0"
).split()
#: Keys that a test may press, with their codes.
KEYS = {"Enter": 13, "Tab": 9, "Escape": 27, "F6": 117, "ArrowLeft": 37, "ArrowRight": 39, " ": 32}


def found():
    """A browser of this machine; skips the test where there is none."""
    named = os.environ.get("KUMIKI_BROWSER")
    program = named or next(filter(None, map(shutil.which, PROGRAMS)), None)
    return program or pytest.skip("there is no Chromium; KUMIKI_BROWSER names one")


class Browser:
    """A running browser with a profile of its own; `more` are other flags of it."""

    def __init__(self, folder, language="en-US", more=()):
        self.folder = folder
        command = [found(), *FLAGS, f"--lang={language}", f"--accept-lang={language}", f"--user-data-dir={folder}"]
        command += more
        self.process = subprocess.Popen(
            [*command, "about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, start_new_session=True)
        found_in = (re.search(r"ws://\S+", line) for line in self.process.stderr)
        address = next(filter(None, found_in), None)
        assert address, f"the browser ended with {self.process.wait()}"
        self.reader = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.reader.start()
        self.socket = connect(address.group(0), max_size=None, open_timeout=PATIENCE, legacy=True)
        self.numbers = itertools.count(1)
        self.events = []

    def call(self, method, session=None, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv(timeout=PATIENCE))
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def page(self, url, width=1280, height=720):
        """A new tab."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        page = Page(self, target, width, height)
        page.go(url)
        return page

    def tabs(self):
        """The tabs, by their numbers: those of `page`, and those that pages have opened."""
        targets = self.call("Target.getTargets")["targetInfos"]
        return {target["targetId"] for target in targets if target["type"] == "page"}

    def opened_by(self, act, width=1280, height=720):
        """The tab that a page opens when `act` is called."""
        before = self.tabs()
        act()
        deadline = time.monotonic() + PATIENCE
        while not (new := self.tabs() - before):
            assert time.monotonic() < deadline, "no tab was opened"
            time.sleep(0.02)
        return Page(self, new.pop(), width, height)

    def close(self):
        # Its helpers too: they hold the pipe.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join(PATIENCE)
        self.process.stderr.close()


class Page:
    """A tab."""

    def __init__(self, browser, target, width, height):
        self.browser, self.target = browser, target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def go(self, url):
        self.call("Page.navigate", url=url)

    def reload(self):
        """Loads the page anew. What it was is gone when this returns."""
        self.js("void (globalThis.isOld = true)")
        self.call("Page.reload")
        self.until("globalThis.isOld === undefined")

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def js(self, code):
        """The value of an expression in the page, which takes it for the act of a person."""
        how = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        answer = self.call("Runtime.evaluate", expression=code, **how)
        assert "exceptionDetails" not in answer, (code, answer["exceptionDetails"])
        return answer["result"].get("value")

    def until(self, code, what=None):
        """Waits until an expression is true; a page that is being loaded has none."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.js(f"!!({code})"):
                    return
            except AssertionError:
                pass
            shown = "document.body.innerText.slice(0, 600)"
            assert time.monotonic() < deadline, (what or code, self.problems(), self.js(shown))
            time.sleep(0.05)

    def one(self, selector):
        return f"document.querySelector({json.dumps(selector)})"

    def data(self, selector, name):
        """An attribute `data-...` of an element, by its name in the document."""
        return self.js(f"{self.one(selector)}.getAttribute('data-{name}')")

    def place(self, selector):
        """The middle of an element, which is brought into sight."""
        return self.js(
            f"(() => {{ const one = {self.one(selector)}; one.scrollIntoView({{block: 'nearest'}});"
            " const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()")

    def click(self, selector):
        self.click_at(*self.place(selector))

    def click_at(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def fill(self, selector, value):
        self.js(
            f"(() => {{ const one = {self.one(selector)}; one.value = {json.dumps(value)};"
            " for (const kind of ['input', 'change']) one.dispatchEvent(new Event(kind, {bubbles: true})); })()")

    def key(self, key):
        more = {"text": "\r" if key == "Enter" else key} if key in ("Enter", " ") else {}
        code = "Space" if key == " " else key
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=KEYS[key], **more)
            more = {}

    def write(self, text):
        """Types a text where the focus is, in the place of what stands there."""
        how = {"key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", commands=["selectAll"], **how)
        self.call("Input.dispatchKeyEvent", type="keyUp", **how)
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def problems(self):
        """What scripts and the browser have complained of so far."""
        told = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                told.append(json.dumps(event["params"]["exceptionDetails"])[:600])
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                told.append(event["params"]["entry"]["text"])
        return told
