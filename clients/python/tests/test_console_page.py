"""The engine's page in a browser: what a person sees and does in a replay, and what becomes of their orders."""

import csv
import json
import shutil
import time
import urllib.parse

import kumiki
import pytest
from console_pages import ANY_PORT, CANDLES, IDLE, READY, RUNNING, TICK, TICKET, form_is_ready, load, ready_page, split
from engine_process import component, wait_until
from plain_client import PATIENCE
from web_broker import Trading


@pytest.fixture
def engine(start):
    return start(more=ANY_PORT)


@pytest.fixture
def opened(engine, browser):
    """A page of the engine, and a client beside it."""
    with engine.client() as client:
        page = ready_page(browser, client)
        yield page, client
        assert page.problems() == []
        page.close()


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
    """Scenarios 3 and 5."""
    page, _ = opened
    load(page, "7203", market)
    page.until(page.one(CANDLES))
    assert split(page) == "row[tick:7203 candles:7203 ]"
    assert page.js("document.querySelectorAll('[data-pane-kind=order_list] [data-banner=replay]').length") == 1
    page.click(f"{TICK} [data-action=close-pane]")
    load(page, "7203", market)
    assert page.js(f"{page.one(TICK)} === null"), "closed by hand, it stays closed"


def test_c10_a_second_pair_goes_below_the_focused_pane(opened, market):
    """Scenario 4. The form that loads it takes no focus of panes."""
    page, _ = opened
    load(page, "7203", market)
    page.until(page.one(CANDLES))
    page.click(f"{CANDLES} h2")
    both = "row[tick:7203 column[candles:7203 row[tick:9984 candles:9984 ]]]"
    for _ in range(2):
        load(page, "9984", market)
        page.until(page.one(CANDLES.replace("7203", "9984")))
        assert split(page) == both
        assert page.js("[...document.querySelectorAll('[data-focused=true]')].map((one) => one.dataset.paneKind)"
                       ".join()") == "candles" and page.data(CANDLES, "focused") == "true"


def test_c21_a_replay_leaves_the_live_layout_alone(start, browser, tmp_path, market):
    """Scenario 6. Nor does it store anything else."""
    stored = "JSON.stringify(Object.entries(localStorage))"
    live = Trading(tmp_path / "live", None, *ANY_PORT, form=None)
    try:
        with live.client() as client:
            page = ready_page(browser, client)
            for kind in ("candles", "tape"):
                page.click(f"[data-pane-kind={kind}] [data-action=close-pane]")
            layout, origin = page.js(stored), page.js("location.origin")
            page.close()
    finally:
        live.kill()
    assert "candles" in layout and "tape" in layout
    engine = start(more=("--console-port", origin.rpartition(":")[2]))
    with engine.client() as client:
        page = ready_page(browser, client)
        assert page.js("location.origin") == origin and page.js(stored) == layout
        load(page, "7203", market)
        page.until(page.one(CANDLES))
        assert page.js(f"{page.one(CANDLES)}.offsetParent !== null"), "the live layout has it closed"
        page.click(f"{TICK} [data-action=close-pane]")
        page.click("[data-action=language]")
        page.click("[data-tab=equity]")
        market.run(client, "empty", multiplier="max")
        client.wait("EngineStopped")
        page.until(IDLE)
        assert page.js(stored) == layout
        page.reload()
        page.until(READY)
        page.click("[data-action=sign-out]")
        page.until("document.documentElement.dataset.connection === 'ended'")
        page.close()
        after = browser.page(origin + "/")
        after.until("document.documentElement.dataset.connection === 'refused'")
        assert after.js(stored) == layout
        after.close()


def test_a_run_s_rows_equal_its_files(opened, engine, market):
    """Scenarios 7 and 8, and after a reload the same."""
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
    fills, orders = len(rows("fills")), rows("orders")
    assert fills > 0 and json.loads((folder / "manifest.json").read_text())["parameters"] == {"fast": 5}
    for pane in (TICK, CANDLES):
        page.until(f"{page.one(f'{pane} [data-role=chart]')}.dataset.executions === '{fills}'", f"{fills} fills")
    page.until(f"{page.one('[data-pane-kind=order_list]')}.dataset.total === '{len(orders)}'", f"{len(orders)} orders")
    listed = {row["client_order_id"]: [row["venue_order_id"], row["status"], row["origin"], row["quantity"],
                                       row["price"], row["filled_quantity"]] for row in orders}
    # Events tell less than a list, which the page asks for after them.
    wait_until(lambda: order_rows(page) == listed, "rows as in the file")
    equity = json.loads((folder / "summary.json").read_text())["equity_end"]
    assert page.data("[data-field=equity]", "value") == equity == rows("equity")[-1]["equity"]
    points = page.data(chart, "points")
    trades = market.trades("7203.TSE", [market.days[1]])
    assert int(points) == len(trades)
    page.click(f"{TICK} [data-layer=executions]")
    page.until(f"{page.one(chart)}.dataset.executions === '0'")
    page.click(f"{TICK} [data-layer=executions]")
    page.until(f"{page.one(chart)}.dataset.executions === '{fills}'")
    page.js(page.one(chart) + ".focus()")
    readout = page.one(f"{TICK} [data-role=readout]")
    for back in (1, 2, 3):
        page.key("ArrowLeft")
        price, _, nanos = trades[-back]
        page.until(f"{readout}.querySelector('b').dataset.value === '{price}'", f"{back} trades back")
        assert page.js(readout + ".querySelector('.when').dataset.value") == str(nanos // 10**6)
        assert " JST" in page.js(readout + ".innerText")
    page.reload()
    page.until(READY)
    page.until(f"{page.one('[data-pane-kind=order_list]')}.dataset.total === '{len(orders)}'", "the same rows")
    page.until(f"{page.one(chart)}?.dataset.points === '{points}'", "the same points")
    wait_until(lambda: order_rows(page) == listed, "the same rows as before")
    assert page.data("[data-field=equity]", "value") == equity


def shown_of_a_run(page):
    """What a page shows of a run."""
    said = page.js("""(() => {
      const all = (selector, of, within = document) => [...within.querySelectorAll(selector)].map(of);
      const charts = all('[data-role=chart]', (chart) => {
        const { points, lastPrice, executions, signals } = chart.dataset;
        return [chart.closest('section').dataset.paneKind, { points, lastPrice, executions, signals }];
      });
      const positions = all('[data-pane-kind=positions] tr[data-instrument-id]', (row) =>
        all('[data-field]', (cell) => [cell.dataset.field, cell.dataset.value], row));
      const [equity] = all('[data-field=equity]', (one) => one.dataset.value);
      return { equity, charts: Object.fromEntries(charts), positions };
    })()""")
    return {**said, "orders": order_rows(page)}


HOLDS = "[data-pane-kind=positions] tr[data-instrument-id='7203.TSE']"


def test_c19_a_page_that_is_reloaded_is_as_one_that_was_left_alone(opened, browser, market):
    """Scenario 11: while a replay goes on, and after its end."""
    reloaded, client = opened
    alone = ready_page(browser, client)
    load(reloaded, "7203", market, last=2)
    market.run(client, "sma-cross", last=2, multiplier=600, strategy_init_kwargs={"fast": 5, "slow": 20})
    for page in (reloaded, alone):
        page.until(RUNNING)
        page.until(f"document.querySelectorAll('tr[data-status=FILLED]').length >= 3 && {page.one(HOLDS)}")
    # Slow enough for both to show the same.
    client.ask("SetReplaySpeed", "ReplaySpeedChanged", multiplier=60)
    reloaded.reload()
    reloaded.until(READY)
    until_equal(reloaded, alone)
    assert reloaded.js(RUNNING) and alone.js(RUNNING)
    client.send("StopEngine", strategy_id="one")
    client.wait("EngineStopped")
    for page in (reloaded, alone):
        page.until(IDLE)
    until_equal(reloaded, alone)
    reloaded.reload()
    reloaded.until(READY)
    until_equal(reloaded, alone)
    alone.close()


def until_equal(page, other):
    """Waits until two pages show the same of a run."""
    def differ():
        seen = shown_of_a_run(page), shown_of_a_run(other)
        return [[one[name] for one in seen] for name in seen[0] if seen[0][name] != seen[1][name]]

    deadline = time.monotonic() + PATIENCE
    while different := differ():
        assert time.monotonic() < deadline, different
    shown = shown_of_a_run(page)
    assert set(shown["charts"]) == {"tick", "candles", "equity"} and shown["orders"] and shown["equity"]
    assert all(int(chart["points"]) > 1 for chart in shown["charts"].values()), shown["charts"]


def order_rows(page):
    """The rows of the order list by their ids: number at the venue, status, origin, shares, price, filled shares."""
    return page.js(
        "Object.fromEntries([...document.querySelectorAll('tr[data-client-order-id]')].map((row) => {"
        " const {clientOrderId, venueOrderId, status, origin} = row.dataset;"
        " const values = [4, 5, 6].map((place) => row.cells[place].dataset.value);"
        " return [clientOrderId, [venueOrderId, status, origin, ...values]]; }))")


#: Texts that would run, hide or forge something where they are taken for more than texts. The first is a valid id.
HOSTILE = ["<img src=x onerror=ran=1>&lt;'\"", "\u202eton<script>ran=1</script>{{7*7}}\r\n<b>BUY</b>\u0007"]


@pytest.mark.parametrize("says", HOSTILE, ids=["markup", "marks"])
def test_hostile_texts_are_shown_as_they_are(opened, engine, market, tmp_path, says):
    """Scenario 21 and C23: of a strategy, of its file and its id, of another client, of the engine."""
    page, client = opened
    file = tmp_path / "<img src=x onerror=ran=1>.wasm"
    shutil.copy(component("steers-terminal"), file)
    load(page, "7203", market)
    page.until(page.one(CANDLES))
    market.run(client, strategy_id=HOSTILE[0], multiplier="max", strategy_file=str(file),
               strategy_init_kwargs={"says": says, "at": 50})
    client.wait("EngineStopped")
    page.until(IDLE)

    def shown(selector):
        return page.js(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")

    words = f"{page.one('[data-role=log]')}?.textContent.includes({json.dumps(says)})"
    page.until(words, "the log has it")
    assert shown("[data-pane-kind=signals] .foreign") == [says, says]
    assert shown("[data-role=narratives] li > :is(b, p)") == [says, says]
    assert says in shown("[data-role=log] .foreign")
    # The engine escapes what steers in a fault.
    assert any("panicked" in text and "ran=1" in text for text in shown("[data-pane-kind=strategy] .problem"))
    page.js("document.querySelectorAll('[data-toast] button').forEach((one) => one.click())")
    for tab, selector in (("signals", "[data-pane-kind=signals] .foreign"), ("narrative", "[data-role=log] .foreign")):
        page.click(f"[data-tab={tab}]")
        assert page.js(f"{page.one(selector)}.getBoundingClientRect().height") > 0
        assert page.js(f"getComputedStyle({page.one(selector)}).unicodeBidi") == "isolate"
    page.click("[data-tab=runs]")
    page.click("[data-pane-kind=runs] [data-action=refresh]")
    page.until(f"{page.one('[data-pane-kind=runs]')}.textContent.includes('onerror=ran=1')", "the run's strategy")
    page.fill("[data-pane-kind=load] [name=instrument_id]", says.upper().replace(",", ""))
    page.click("[data-action=load]")
    page.until(f"!{page.one('[data-pane-kind=load] [role=alert]')}.hidden")
    nothing_runs(page)


def nothing_runs(page):
    """No text has become more than a text."""
    assert page.js("typeof ran") == "undefined"
    assert page.js("document.querySelector('img, iframe, object, #page script, #page b b')") is None


def test_a_hostile_id_of_another_client_is_shown_as_it_is(opened, market):
    """Scenario 21: an order of somebody else."""
    page, client = opened
    load(page, "7203", market, last=2)
    market.run(client, last=2, multiplier=600)
    order = {"client_order_id": HOSTILE[0], "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "MARKET",
             "quantity": "100", "time_in_force": "DAY", "post_only": False, "reduce_only": False}
    client.ask("SubmitOrder", "SubmitOrderResult", venue="replay", order=order)
    page.until(page.one("[data-toast=fill]"))
    for selector in ("[data-toast=fill]", "[data-pane-kind=order_list] tr[data-status=FILLED]"):
        page.until(f"{page.one(selector)}?.dataset.clientOrderId === {json.dumps(HOSTILE[0])}")
    nothing_runs(page)


def test_c14_a_speed_is_shown_in_every_tab(opened, browser, market):
    """Scenario 9. The input itself has the speed that holds; controls of the form are named as on the wire."""
    page, client = opened
    for name in ("multiplier", "initial_cash", "execution.model", "strategy_id"):
        assert page.js(f"{page.one('[data-pane-kind=strategy] form')}.elements['{name}'] !== undefined"), name
    market.load(client, last=2)
    market.run(client, "empty", last=2, multiplier=1)
    other = ready_page(browser, client)
    speed = "[data-role=speed]"
    for tab in (page, other):
        tab.until(f"{tab.one(speed)}.dataset.value === '1' && {RUNNING}")
    page.fill(speed, "600")
    assert client.wait("ReplaySpeedChanged")["multiplier"] == 600
    for tab in (page, other):
        tab.until(f"{tab.one(speed)}.dataset.value === '600' && {tab.one(speed)}.value === '600'")
    page.fill(speed, "none")
    page.until(f"{page.one('[data-toast=reject]')} && {page.one(speed)}.value === '600'")
    assert page.data(speed, "value") == "600"
    other.close()


def test_what_python_does_is_shown_without_a_click(start, browser, market):
    """Scenario 12."""
    engine = start(standalone=True, more=ANY_PORT)
    with engine.client() as client:
        page = ready_page(browser, client)
        with kumiki.ReplaySession(attach=engine.session_file) as session:
            session.load("7203.TSE", market.days[1], market.days[1])
            page.until(page.one(CANDLES), "it shows what is loaded")
            assert split(page) == "row[tick:7203 candles:7203 ]"
            result = session.run(strategy_file=component("sma-cross"), strategy_init_kwargs={"fast": 5})
            fills = len(result.fills())
            assert fills > 0
            page.until(f"{page.one(f'{TICK} [data-role=chart]')}.dataset.executions === '{fills}'", f"{fills} fills")
            page.until(f"{page.one('[data-pane-kind=order_list]')}.dataset.total === '{len(result.orders())}'")
            page.until(IDLE)
        assert page.problems() == []
        page.close()


def test_five_enters_are_one_order(opened, market):
    """Scenario 10."""
    page, client = opened
    load(page, "7203", market, last=2)
    market.run(client, "empty", last=2, multiplier=1)
    page.until(RUNNING)
    since = len(client.events)
    page.fill(f"{TICKET} [name=quantity]", "100")
    page.click(f"{TICKET} [data-action=review]")
    page.until(page.one(f"{TICKET} [data-action=send]"))
    page.js(page.one(f"{TICKET} [data-action=send]") + ".focus()")
    for _ in range(5):
        page.key("Enter")
    accepted = client.wait("OrderAccepted", since=since)
    client.ask("Ping", "Pong")
    assert len(client.since(since, "OrderSubmitted")) == 1
    page.until(page.one(f"tr[data-client-order-id='{accepted['client_order_id']}']"))
    assert page.js("document.querySelector('dialog[open]') === null"), "a replay asks for no password"


def test_c16_after_an_answer_the_ticket_rests(opened, market):
    """At the moment of the answer nothing begins a new review; a moment later the button does."""
    page, client = opened
    load(page, "7203", market, last=2)
    market.run(client, "empty", last=2, multiplier=1)
    page.until(RUNNING)
    review, send = (f"{TICKET} [data-action={action}]" for action in ("review", "send"))
    page.until(f"!{page.one(review)}.disabled && {page.one(f'{TICKET} [name=instrument_id]')}.value")
    page.js(f"{page.one(review)}.click()")
    page.until(page.one(send))
    # It asks for a review as soon as the answer is shown, before anything is drawn anew.
    is_reviewed = page.js(f"""new Promise((tell) => {{
      new MutationObserver((_, observer) => {{
        if (document.querySelector('[data-role=outcome] [data-client-order-id]') === null) return;
        observer.disconnect();
        {page.one(TICKET)}.requestSubmit();
        tell({page.one(send)} !== null);
      }}).observe({page.one('[data-role=outcome]')}, {{ childList: true }});
      {page.one(send)}.click();
    }})""")
    assert not is_reviewed
    page.until(f"({page.one(review)}.click(), {page.one(send)})")
    client.ask("Ping", "Pong")
    assert len(client.since(0, "OrderSubmitted")) == 1


FOCUSED = "document.activeElement"


def press(page, key, until, what):
    """Presses a key until something holds."""
    for _ in range(80):
        if page.js(f"!!({until})"):
            return
        page.key(key)
    raise AssertionError(f"{key} never leads to {what}; the focus is on {page.js(FOCUSED + '.outerHTML')[:300]}")


def to_pane(page, kind):
    press(page, "F6", f"{FOCUSED}.closest('section')?.dataset.paneKind === '{kind}'", f"the pane {kind}")


def to_control(page, kind, name):
    """To a control of a pane."""
    to_pane(page, kind)
    press(page, "Tab", f"{FOCUSED}.name === '{name}' && {FOCUSED}.closest('[data-pane-kind={kind}]')", name)


def load_by_keyboard(page, code):
    page.until(form_is_ready(page), "the form knows the data")
    to_control(page, "load", "instrument_id")
    page.write(code)
    page.key("Enter")


def test_all_by_keyboard(opened, engine, market):
    """Scenario 22: scenarios 3, 7 and 10 without a mouse."""
    page, client = opened
    load_by_keyboard(page, "7203")
    page.until(page.one(CANDLES))
    assert split(page) == "row[tick:7203 candles:7203 ]"
    for name, value in (("param.fast", "5"), ("multiplier", "max")):
        page.until(page.one(f"[name='{name}']"))
        to_control(page, "strategy", name)
        page.write(value)
        assert page.js(f"{FOCUSED}.value") == value
    page.key("Enter")
    client.wait("EngineStopped")
    wait_until(lambda: client.ask("GetRuns", "Runs")["runs"], "the run has its folder")
    (run,) = client.ask("GetRuns", "Runs")["runs"]
    manifest = json.loads((engine.cache_dir / "runs" / run["run_id"] / "manifest.json").read_text())
    assert manifest["parameters"] == {"fast": 5} and manifest["component"]["name"] == "sma-cross"

    page.until(IDLE)
    load_by_keyboard(page, "7203")
    page.until("document.documentElement.dataset.sessionState === 'Loaded'")
    to_control(page, "strategy", "strategy_file")
    page.write(component("empty"))
    to_control(page, "strategy", "multiplier")
    page.until("!" + page.one("[name='param.fast']"), "it shows the parameters of this one")
    page.write("60")
    page.key("Enter")
    page.until(RUNNING)
    since = len(client.events)
    to_control(page, "ticket", "quantity")
    page.write("100")
    page.key("Enter")
    page.until(f"{FOCUSED}.dataset.action === 'send'")
    for _ in range(5):
        page.key("Enter")
    accepted = client.wait("OrderAccepted", since=since)
    page.until(page.one(f"tr[data-client-order-id='{accepted['client_order_id']}'][data-status=FILLED]"))
    page.until(page.one(f"[data-toast=fill][data-client-order-id='{accepted['client_order_id']}']"))
    client.ask("Ping", "Pong")
    assert len(client.since(since, "OrderSubmitted")) == 1
    assert page.js("document.querySelector('dialog[open]') === null"), "a replay asks for no password"


def test_a_page_that_may_only_look(engine, browser):
    """Scenario 20."""
    with engine.client() as client:
        page = ready_page(browser, client, read_only=True)
        assert page.js("document.documentElement.dataset.scope") == "read_only"
        acting = "load start stop review cancel-all login".split()
        for action in acting:
            alive = page.js(
                f"[...document.querySelectorAll('[data-action={action}]')]"
                ".filter(one => !one.disabled && one.offsetParent).length")
            assert alive == 0, action


def test_an_engine_that_ends_is_told(start, browser):
    engine = start(more=ANY_PORT)
    with engine.client() as client:
        page = ready_page(browser, client)
    engine.kill()
    page.until("document.documentElement.dataset.connection === 'lost'")
    page.until(page.one("[data-banner=connection]"))
