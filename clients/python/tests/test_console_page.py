"""The engine's page in a browser: what a person sees and does in a replay, and what becomes of their orders."""

import csv
import json
import urllib.parse

import pytest
from browser import Browser
from engine_process import wait_until

READY = "document.documentElement.dataset.connection === 'ready'"
IDLE = "document.documentElement.dataset.sessionState === 'Idle'"
TICK = "[data-pane-kind=tick][data-instrument-id='7203.TSE']"
CANDLES = "[data-pane-kind=candles][data-instrument-id='7203.TSE']"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture
def engine(start):
    return start(more=("--console-port", "0"))


@pytest.fixture
def opened(engine, browser):
    """A page of the engine, and a client beside it."""
    with engine.client() as client:
        page = browser.page(client.ask("OpenConsole", "ConsoleOpened")["url"])
        page.until(READY)
        yield page, client
        assert page.problems() == []


def split(page):
    """The tree of panes with charts."""
    return page.js(
        "(function tree(one) { const below = [...one.children].map(tree).join('');"
        " if (one.dataset.split) return one.dataset.split + '[' + below + ']';"
        " const {paneKind, instrumentId} = one.dataset;"
        " return paneKind ? paneKind + ':' + instrumentId.slice(0, 4) + ' ' : below; })"
        "(document.querySelector('.charts'))")


def load(page, code, market, first=1, last=1):
    # The form fills itself once the engine has told what there is.
    page.until(page.one("[data-pane-kind=load] [name=start_date]") + ".value", "the form knows the data")
    page.until("!" + page.one("[data-action=load]") + ".disabled")
    for name, value in market.span(first, last).items():
        page.fill(f"[data-pane-kind=load] [name={name}]", value)
    page.fill("[data-pane-kind=load] [name=instrument_id]", code)
    page.click("[data-action=load]")
    page.until(f"document.querySelector(\"[data-pane-kind=load]\").innerText.includes('{code}.TSE')")


def test_a_fresh_address_opens_the_page_and_leaves_no_trace(opened, browser):
    """Scenarios 1 and 2."""
    page, client = opened
    assert page.js("location.hash") == "" and page.js("JSON.stringify(localStorage)") == "{}"
    assert page.js("history.length") <= 2
    page.reload()
    page.until(READY, "a good tab is ready again")
    url = client.ask("OpenConsole", "ConsoleOpened")["url"]
    first = browser.page(url)
    first.until(READY)
    origin = urllib.parse.urlsplit(url)
    second = browser.page("about:blank")
    second.go(url)
    second.until("document.documentElement.dataset.connection === 'refused'")
    assert "kumiki console" in second.js("document.body.innerText")
    second.go(f"{origin.scheme}://{origin.netloc}/#junk")
    first.reload()
    first.until(READY, "junk ends no session")


def test_panes_of_a_replay(opened, market):
    """Scenarios 3 to 5."""
    page, _ = opened
    load(page, "7203", market)
    page.until(page.one(CANDLES))
    assert split(page) == "row[tick:7203 candles:7203 ]"
    assert page.js("document.querySelectorAll('[data-pane-kind=order_list] [data-banner=replay]').length") == 1
    page.click(f"{TICK} [data-action=close-pane]")
    load(page, "7203", market)
    assert page.js(f"{page.one(TICK)} === null"), "closed by hand, it stays closed"


def test_a_run_s_rows_equal_its_files(opened, engine, market):
    """Scenarios 7, 8 and 11."""
    page, client = opened
    load(page, "7203", market)
    page.until(page.one("[name='param.fast']"))
    assert page.js(page.one("[name='param.fast']") + ".value") == "20"
    page.fill("[name='param.fast']", "5")
    page.fill("[data-pane-kind=strategy] [name=multiplier]", "max")
    page.click("[data-pane-kind=strategy] [data-action=start]")
    client.wait("EngineStopped")
    wait_until(lambda: client.ask("GetRuns", "Runs")["runs"], "the run has its folder")
    page.until(IDLE)
    (run,) = client.ask("GetRuns", "Runs")["runs"]
    folder = engine.cache_dir / "runs" / run["run_id"]

    def rows(name):
        with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    chart = f"{TICK} [data-role=chart]"
    fills, orders = len(rows("fills")), len(rows("orders"))
    assert fills > 0
    page.until(f"{page.one(chart)}.dataset.executions === '{fills}'", f"{fills} fills")
    page.until(f"{page.one('[data-pane-kind=order_list]')}.dataset.total === '{orders}'", f"{orders} orders")
    assert page.data("[data-field=equity]", "value") == json.loads((folder / "summary.json").read_text())["equity_end"]
    points = page.data(chart, "points")
    page.click(f"{TICK} [data-layer=executions]")
    page.until(f"{page.one(chart)}.dataset.executions === '0'")
    page.click(f"{TICK} [data-layer=executions]")
    page.until(f"{page.one(chart)}.dataset.executions === '{fills}'")
    page.reload()
    page.until(READY)
    page.until(f"{page.one('[data-pane-kind=order_list]')}.dataset.total === '{orders}'", "the same rows")
    assert int(points) > 0


def test_five_enters_are_one_order(opened, market):
    """Scenario 10."""
    page, client = opened
    load(page, "7203", market, last=2)
    market.run(client, "empty", last=2, multiplier=1)
    page.until("document.documentElement.dataset.sessionState === 'Running'")
    since = len(client.events)
    ticket = "form[data-role=ticket]"
    page.fill(f"{ticket} [name=quantity]", "100")
    page.click(f"{ticket} [data-action=review]")
    page.until(page.one(f"{ticket} [data-action=send]"))
    page.js(page.one(f"{ticket} [data-action=send]") + ".focus()")
    for _ in range(5):
        page.key("Enter")
    accepted = client.wait("OrderAccepted", since=since)
    client.ask("Ping", "Pong")
    assert len(client.since(since, "OrderSubmitted")) == 1
    page.until(page.one(f"tr[data-client-order-id='{accepted['client_order_id']}']"))
    assert page.js("document.querySelector('dialog[open]') === null"), "a replay asks for no password"


def test_a_page_that_may_only_look(engine, browser):
    """Scenario 20."""
    with engine.client() as client:
        page = browser.page(client.ask("OpenConsole", "ConsoleOpened", read_only=True)["url"])
        page.until(READY)
        assert page.js("document.documentElement.dataset.scope") == "read_only"
        acting = "load start stop review cancel-all login".split()
        for action in acting:
            alive = page.js(
                f"[...document.querySelectorAll('[data-action={action}]')]"
                ".filter(one => !one.disabled && one.offsetParent).length")
            assert alive == 0, action


def test_an_engine_that_ends_is_told(start, browser):
    engine = start(more=("--console-port", "0"))
    with engine.client() as client:
        page = browser.page(client.ask("OpenConsole", "ConsoleOpened")["url"])
        page.until(READY)
    engine.kill()
    page.until("document.documentElement.dataset.connection === 'lost'")
    page.until(page.one("[data-banner=connection]"))
