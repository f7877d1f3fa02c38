"""The figures of the console: its page in a headless browser, with an engine and simulators beside it.

    cargo xtask bench console [--only boards,replay,hidden,assets] [--long]

prints a JSON line per figure, with its goal: `boards` frame times, age of the shown board, share of the main thread and
Send under 5,000 frames a second of 50 symbols; `replay` a million trades at the highest speed; `hidden` a page that
comes back into sight after a minute, with `--long` after ten; `assets` what a page loads. `--soak` is the part of
`cargo xtask soak`: eight market hours at sixty times the speed, which fail where memory or nodes grow.
"""

import argparse
import contextlib
import gzip
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "tests"))

from browser import Browser
from conftest import program
from console_pages import ANY_PORT, IDLE, READY, TICK, address, load, ready_page
from engine_process import CASH, Engine, Market
from live_world import World
from local_world import PASSWORD, QUICK, SPEC, Gateway, logged_out
from page_client import request
from test_console_live import REVIEW, SEND, log_in, review, watch
from websockets.sync.client import ClientConnection

SYMBOLS, FRAMES_PER_SECOND = 50, 100
#: The symbol that is shown, and those that are watched beside it.
SHOWN = "7203"
OTHERS = [str(code) for code in range(1301, 1301 + SYMBOLS - 1)]
#: Seconds that are measured, in windows of which the median counts.
WINDOW, WINDOWS = 10, 3
ORDERS = 30
REPLAYS = 3
#: A strategy that fills about 10,000 orders in about 1,000,000 trades: one day more than is replayed, its trades a day.
DAYS, TRADES_PER_DAY = 21, 50_000
PARAMETERS = {"fast": 39, "slow": 188}
#: Enough for all its losses.
RICH = CASH * 100
LOADS = 7
#: Market hours of the soak, when the first look is taken, and its speed.
HOURS, FIRST_LOOK_MINUTES, SPEED = 8, 30, 60
#: How many times the first look memory and nodes may be at the end, and by how many bytes collections differ.
GROWTH, SLACK = 1.1, 1_000_000
SOAK_SYMBOLS = 10
#: Runs before the page's own scripts: notes when boards come, each frame of the screen, and how orders leave.
PROBE = """(() => {
  const bench = globalThis.bench = { closed: [], received: new Map(), newest: 0, sends: [], measuring: false };
  const ids = /"sequence_id":(\\d+),"received_ms":(\\d+)/;
  const take = ({ data }) => {
    if (!data.startsWith('{"event":"DepthSnapshot"')) return;
    const head = data.slice(0, 260);
    const found = head.includes('"ticker":"SHOWN"') && ids.exec(head);
    if (!found) return;
    bench.newest = Number(found[1]);
    bench.received.set(bench.newest, Number(found[2]));
    bench.received.delete(bench.newest - 1000);
  };
  globalThis.WebSocket = class extends WebSocket {
    constructor(...how) {
      super(...how);
      this.addEventListener("close", ({ reason, code }) => bench.closed.push(reason || code));
    }
    set onmessage(work) {
      super.onmessage = (message) => {
        take(message);
        work(message);
      };
    }
    send(text) {
      if (text.includes('"op":"SubmitOrder"')) bench.sends.push(performance.now() - bench.clicked);
      super.send(text);
    }
  };
  addEventListener("click", (event) => {
    if (event.target.closest?.("[data-action=send]")) bench.clicked = event.timeStamp;
  }, true);
  bench.shown = () => Number(document.querySelector("[data-pane-kind=board]")?.dataset.sequenceId);
  bench.begin = () => Object.assign(bench, { frames: [], ages: [], before: undefined, measuring: true });
  bench.end = () => {
    bench.measuring = false;
    return { frames: bench.frames, ages: bench.ages };
  };
  const frame = (now) => {
    if (bench.measuring) {
      if (bench.before !== undefined) bench.frames.push(now - bench.before);
      bench.before = now;
      // What was on the screen up to now.
      const received = bench.received.get(bench.shown());
      if (received !== undefined) bench.ages.push(Date.now() - received);
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})()""".replace("SHOWN", SHOWN)


def figure(name, unit, values, goal=None, **more):
    """Prints a figure: the median and the best of its repetitions, and its goal."""
    values = values if isinstance(values, list) else [values]
    line = {"figure": name, "unit": unit, "median": statistics.median(values), "best": min(values)}
    line.update(more if goal is None else {"goal": goal, **more})
    print(json.dumps({key: short(value) for key, value in line.items()}), flush=True)


def short(value):
    """Four digits are more than a measurement has."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def at(values, share):
    """The value below which a share of all lies."""
    return sorted(values)[min(len(values) - 1, math.floor(len(values) * share))]


# --- What a page takes.


def probed(browser, client):
    """A page that is connected, with the probe in it."""
    page = browser.page("about:blank")
    page.call("Page.addScriptToEvaluateOnNewDocument", source=PROBE)
    page.call("Performance.enable")
    page.go(address(client))
    page.until(READY)
    return page


def close(page):
    """Closes a page that must have had one connection, never `too_slow`, and nothing to complain of."""
    assert (page.js("bench.closed"), page.problems()) == ([], [])
    page.close()


def busy_seconds(page):
    """Seconds that the main thread was in tasks so far, and those of a processor that it had."""
    metrics = {one["name"]: one["value"] for one in page.call("Performance.getMetrics")["metrics"]}
    return metrics["TaskDuration"], metrics["ThreadTime"]


def memory(page):
    """What lives after a collection: bytes of the script's heap and of the arrays outside of it, and nodes."""
    page.call("Memory.simulatePressureNotification", level="critical")
    for _ in range(3):
        page.call("HeapProfiler.collectGarbage")
    usage = page.call("Runtime.getHeapUsage")
    nodes = page.call("Memory.getDOMCounters")["nodes"]
    return usage["usedSize"] + usage["backingStorageSize"], nodes


class Pace:
    """What windows of a page showed: frame times and ages in ms, shares of the main thread."""

    def __init__(self, page, seconds=WINDOW, windows=WINDOWS):
        self.p50, self.p99, self.ages, self.busy, self.worked = [], [], [], [], []
        for _ in range(windows):
            before, begun = busy_seconds(page), time.monotonic()
            seen = page.js(f"bench.begin(), new Promise(done => setTimeout(() => done(bench.end()), {seconds * 1000}))")
            took = time.monotonic() - begun
            for shares, earlier, later in zip((self.busy, self.worked), before, busy_seconds(page)):
                shares.append(100 * (later - earlier) / took)
            self.p50.append(at(seen["frames"], 0.5))
            self.p99.append(at(seen["frames"], 0.99))
            self.ages.append(at(seen["ages"], 0.99) if seen["ages"] else math.nan)


# --- The live market.


@contextlib.contextmanager
def live(folder, browser, symbols, *market):
    """A world whose gateway's market is held, and a page that watches symbols of it. The account pays all orders."""
    gateway = Gateway(folder / "gateway", market=("--market-begins", "held", *market))
    settings = (*QUICK, logged_out(720, 721), f"base_url={gateway.address}", f"dialect={SPEC}")
    flags = [word for setting in settings for word in ("--local-broker", setting)]
    world = World(folder, *ANY_PORT, *flags, broker=("--cash", str(RICH), "--instrument", f"{SHOWN}=2850"),
                  environment={"DEV_LOCALBROKER_API_PASSWORD": PASSWORD})
    try:
        client = world.start()
        page = probed(browser, client)
        for venue in ("web_broker", "local_broker"):
            log_in(page, venue)
        world.password()
        for code in reversed(symbols):
            watch(page, code)
        world.until(lambda: len(gateway.view()["registered"]) == len(symbols), "all are registered")
        # It reads nothing from now on, and takes no time of the processors.
        client.socket.close()
        yield world, gateway, page
        close(page)
    finally:
        world.close()
        gateway.kill()


def send_times(page, count):
    """Milliseconds from the click on Send to the socket of so many orders, as fast as the ticket takes them."""
    page.js("bench.sends.length = 0")
    for sent in range(1, count + 1):
        review(page, price=str(2700 + sent))
        page.click(SEND)
        # From now on it rests, until a second after the answer.
        page.until(f"bench.sends.length === {sent} && {page.one(REVIEW)}.disabled")
    return page.js("bench.sends")


def boards(folder, browser, hidden_seconds=None):
    """Frames, ages and the main thread under load, and Send; then, where seconds are given, a page out of sight."""
    gap = f"{1000 // FRAMES_PER_SECOND}ms"
    with live(folder, browser, [SHOWN, *OTHERS], "--mean-gap", gap) as (world, gateway, page):
        if hidden_seconds is None:
            quiet, quiet_sends = Pace(page, 5, 1), send_times(page, 5)
        gateway.control({"do": "market", "run": True})
        page.until(f"bench.shown() > {FRAMES_PER_SECOND}", "boards come")
        if hidden_seconds is not None:
            return hidden(world, page, hidden_seconds)
        loaded = Pace(page)
        load = f"{SYMBOLS} symbols x {FRAMES_PER_SECOND} frames/s"
        figure(f"{load}: frame time, p50", "ms", loaded.p50, 17, times_quiet=loaded.p50[0] / quiet.p50[0])
        figure(f"{load}: frame time, p99", "ms", loaded.p99, 50, times_quiet=loaded.p99[0] / quiet.p99[0])
        figure(f"{load}: age of the shown board, p99", "ms", loaded.ages, 100)
        figure(f"{load}: main thread", "%", loaded.busy, 60, quiet=quiet.busy[0],
               of_a_processor=statistics.median(loaded.worked))
        sends = send_times(page, ORDERS)
        more = {"p50": at(sends, 0.5), "orders": len(sends), "quiet": at(quiet_sends, 0.99)}
        figure(f"{load}: Send to socket, p99", "ms", at(sends, 0.99), 50, **more)


def hidden(world, page, seconds):
    """How long a page that comes back into sight takes until it shows what the engine had before."""
    browser = page.browser
    window = browser.call("Browser.getWindowForTarget", targetId=page.target)["windowId"]

    def state(name, sight):
        browser.call("Browser.setWindowBounds", windowId=window, bounds={"windowState": name})
        page.until(f"document.visibilityState === '{sight}'")

    state("minimized", "hidden")
    time.sleep(seconds)
    client = world.connect()
    board = client.ask("GetBoard", "DepthSnapshot", venue="local_broker", ticker=SHOWN)
    client.socket.close()
    wanted = board["sequence_id"]
    page.js("void (bench.current = new Promise(done => addEventListener('visibilitychange', function look() { "
            f"bench.shown() >= {wanted} ? done(Date.now()) : requestAnimationFrame(look); }})))")
    begun = time.time()
    state("normal", "visible")
    took = page.js("bench.current") - 1000 * begun
    figure(f"hidden for {seconds} s: current again", "ms", took, 200)


# --- A replay.


def replay(folder, browser):
    """A million trades at the highest speed with the page open, and to a client that only reads them."""
    sample = ["data", "sample", "--out", folder / "data", "--instrument", f"{SHOWN}.TSE", "--days", DAYS,
              "--trades-per-day", TRADES_PER_DAY, "--quiet"]
    subprocess.run(list(map(str, [program(), *sample])), check=True, stdout=subprocess.DEVNULL)
    market = Market(folder / "data", [f"{SHOWN}.TSE"])
    days = market.days[1:]
    trades = sum(row["Date"] in days for row in market.vendor_rows())
    engine = Engine(folder / "engine", market.folder, more=ANY_PORT)
    try:
        shown, sizes, fills = [], [], 0
        alone = [run_to_a_reader(engine, market) for _ in range(REPLAYS)]
        for _ in range(REPLAYS):
            took, size, fills = run_to_a_page(engine, market, browser, trades)
            shown.append(took)
            sizes.append(size)
    finally:
        engine.kill()
    ratio = statistics.median(shown) / statistics.median(alone)
    more = {"trades": trades, "fills": fills, "times_reader": ratio}
    figure("a replay at max with the page open", "s", shown, 10, **more)
    figure("its memory after a collection", "MB", [size / 1e6 for size in sizes], 200)


def run_to_a_page(engine, market, browser, trades):
    """Seconds from the start until the page shows the end and all points; bytes of its memory; fills."""
    with engine.client() as client:
        page = probed(browser, client)
    load(page, SHOWN, market, last=len(market.days) - 1)
    page.until(page.one("[name='param.fast']"))
    form = "[data-pane-kind=strategy]"
    values = {**{f"param.{name}": value for name, value in PARAMETERS.items()}, "multiplier": "max",
              "initial_cash": RICH}
    for name, value in values.items():
        page.fill(f"{form} [name='{name}']", str(value))
    page.until(f"!{page.one(f'{form} [data-action=start]')}.disabled")
    chart = page.one(f"{TICK} [data-role=chart]")
    page.js(f"void (bench.took = new Promise(done => {{ const begun = performance.now(); const look = () => {IDLE} && "
            f"{chart}.dataset.points === '{trades}' ? done(performance.now() - begun) : requestAnimationFrame(look);"
            f" look(); {page.one(f'{form} [data-action=start]')}.click(); }}))")
    took = page.js("bench.took") / 1000
    fills = int(page.js(f"{chart}.dataset.executions"))
    size, _ = memory(page)
    close(page)
    return took, size, fills


def run_to_a_reader(engine, market):
    """Seconds of the same run to a client that subscribes, and looks at nothing."""
    with engine.client() as client:
        client.ask("Subscribe", "Subscribed", venue="replay", ticker=SHOWN)
        market.load(client, last=len(market.days) - 1)
        config = market.config("sma-cross", last=len(market.days) - 1, initial_cash=str(RICH),
                               execution={"model": "realistic"}, strategy_init_kwargs=PARAMETERS, multiplier="max")
        begun = time.monotonic()
        client.send("StartEngine", engine="Backtest", strategy_id="sma-cross", config=config)
        while not ClientConnection.recv(client.socket, timeout=60).startswith('{"event":"EngineStopped"'):
            pass
        return time.monotonic() - begun


# --- What a page loads.


def assets(folder, browser):
    """The bytes of all files of a page, and when it is painted first."""
    engine = Engine(folder / "engine", folder, more=ANY_PORT)
    try:
        with engine.client() as client:
            paints = [painted(browser, client) for _ in range(LOADS)]
            page = ready_page(browser, client)
            asked = page.js("performance.getEntriesByType('resource').map(one => new URL(one.name).pathname)")
            origin = page.js("location.origin")
            page.close()
        paths = {"/", *asked} - {"/session"}
        texts = [request(f"{origin}{path}")[2].encode() for path in sorted(paths)]
    finally:
        engine.kill()
    figure("files of the page", "kB", sum(map(len, texts)) / 1000, 400, files=len(texts))
    figure("the same, gzip", "kB", sum(len(gzip.compress(text)) for text in texts) / 1000, 120)
    figure("first paint", "ms", paints, 300)


def painted(browser, client):
    """Milliseconds from the navigation to the first paint."""
    page = ready_page(browser, client)
    page.until("performance.getEntriesByName('first-contentful-paint').length")
    at = page.js("performance.getEntriesByName('first-paint')[0].startTime")
    page.close()
    return at


# --- The soak.


def soak(folder, browser):
    """Eight market hours: what the page keeps at the end, to what it kept after half an hour."""
    symbols = [SHOWN, *OTHERS[:SOAK_SYMBOLS - 1]]
    with live(folder, browser, symbols, "--speed", str(SPEED), "--days", "3") as (world, gateway, page):
        gateway.control({"do": "market", "run": True})
        begun = time.monotonic()

        def until(minutes):
            time.sleep(max(0, begun + minutes * 60 / SPEED - time.monotonic()))

        def show(code):
            page.click(f"tr[data-ticker='{code}']")
            page.until(f"{page.one('[data-pane-kind=board]')}.dataset.instrumentId === '{code}.TSE'")

        # As a person would, it looks at another symbol now and then; at all of them once before the first look.
        sizes = []
        for number, minutes in enumerate(range(2, HOURS * 60, 2)):
            until(minutes)
            if minutes % FIRST_LOOK_MINUTES == 0:
                show(SHOWN)
                sizes.append(memory(page))
            elif minutes < FIRST_LOOK_MINUTES or minutes % 10 == 0:
                show(symbols[number % len(symbols)])
        show(SHOWN)
        until(HOURS * 60)
        assert page.js("bench.newest") > page.js("bench.received.size") > 0, "boards have come"
        sizes.append(memory(page))
    first, last = sizes[0], sizes[-1]
    grown = [one / other for one, other in zip(last, first)]
    name = f"{HOURS} market hours at x{SPEED}"
    each = [round(size / 1e6, 2) for size, _ in sizes]
    figure(f"{name}: heap after GC, to {FIRST_LOOK_MINUTES} min", "times", grown[0], GROWTH, each_half_hour_mb=each)
    figure(f"{name}: DOM nodes, to {FIRST_LOOK_MINUTES} min", "times", grown[1], GROWTH, nodes=last[1])
    return last[0] <= first[0] * GROWTH + SLACK and grown[1] <= GROWTH


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="boards,replay,hidden,assets", help="parts, with commas between")
    parser.add_argument("--long", action="store_true", help="hide the page for ten minutes")
    parser.add_argument("--soak", action="store_true", help="eight market hours, and nothing else")
    arguments = parser.parse_args()
    parts = {
        "boards": boards, "replay": replay, "assets": assets,
        "hidden": lambda folder, browser: boards(folder, browser, 600 if arguments.long else 60),
    }
    with tempfile.TemporaryDirectory(prefix="kumiki-bench-") as name:
        folder = pathlib.Path(name)
        for part in ["soak"] if arguments.soak else arguments.only.split(","):
            browser = Browser(folder / f"profile-{part}")
            try:
                if part == "soak" and not soak(folder / part, browser):
                    sys.exit("the page keeps more and more")
                elif part != "soak":
                    (folder / part).mkdir()
                    parts[part](folder / part, browser)
            finally:
                browser.close()


if __name__ == "__main__":
    main()
