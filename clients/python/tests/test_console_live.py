"""The engine's page in a browser on the live market: boards, orders, the second password, what is lost and what ends.
What counts is what the brokers saw, and the page's data, never its texts."""

import datetime
import json
import urllib.parse

import pytest
from console_pages import ANY_PORT, READY, RUNNING, TICKET, address, ready_page, stored_session
from live_world import CANCEL, CORRECT, JAPAN, LIST, NEW
from local_world import LocalWorld, venue_state
from market_world import MarketWorld
from page_client import PageClient
from test_live_paper import DAY
from web_broker import Trading

SEND, REVIEW = f"{TICKET} [data-action=send]", f"{TICKET} [data-action=review]"
ORDERS, STRATEGY = "[data-pane-kind=order_list]", "[data-pane-kind=strategy]"
START = f"{STRATEGY} [data-action=start]"
#: The best price to sell at.
BEST = "[data-pane-kind=board] tr[data-side=bid][data-level='1'] td[data-field=price]"
PASSWORD = "dialog[open][data-dialog=second-password]"
#: Whether an unknown order is asked about in the review.
ASKS = "[data-role=unknown-question]"
OF_ORDERS = (NEW, CORRECT, CANCEL, "CLMKabuCancelOrderAll")


class Desk(MarketWorld):
    """A market, an engine, and a page of it."""

    def open(self, browser, *logins, ticker=None, **how):
        """Starts the engine and opens its page, which logs in."""
        self.start()
        self.page = ready_page(browser, self.client, **how)
        for name in logins:
            log_in(self.page, name)
        if ticker:
            watch(self.page, ticker)
            self.until(lambda: self.streams(ticker), "boards stream")
        return self.page

    def seen(self):
        """How many requests about orders the broker has seen."""
        return sum(len(self.requests(kind)) for kind in OF_ORDERS)

    def listed(self):
        """The orders of the broker by their numbers: price, and shares that are left."""
        return {order["number"]: (order["content"]["price"], order["leaves"]) for order in self.broker.orders()}

    def accepted(self, since):
        """The id of the order that was accepted after a place of the client's events."""
        return self.client.wait("OrderAccepted", since=since)["client_order_id"]

    def place(self, **order):
        """Places an order by the page, and gives its id and the broker's number."""
        since = len(self.client.events)
        review(self.page, **order)
        self.page.click(SEND)
        name = self.accepted(since)
        self.page.until(is_row(name, "ACCEPTED"))
        return name, self.page.data(row(name), "venue-order-id")


@pytest.fixture
def desk(tmp_path):
    """Makes desks, which end with the test."""
    desks = []

    def desk(*engine, **how):
        desks.append(Desk(tmp_path / f"desk-{len(desks)}", *ANY_PORT, *engine, **how))
        return desks[-1]

    yield desk
    for one in desks:
        one.close()


# --- What a person does.


def venue(name):
    return f"[data-pane-kind=venues] [data-venue={name}]"


def is_venue(name, state):
    return f"document.querySelector('{venue(name)}').dataset.state === '{state}'"


def log_in(page, name):
    """Logs in by the button, which is there once the engine has told where the venue stands."""
    button = f"{venue(name)} [data-action=login]"
    page.until(f"!{page.one(button)}.disabled")
    page.click(button)
    page.until(is_venue(name, "Ready"))


def watch(page, ticker):
    """Subscribes a ticker by the watch list."""
    page.fill("[data-pane-kind=watch] [name=ticker]", ticker)
    page.click("[data-pane-kind=watch] [data-action=subscribe]")
    page.until(page.one(f"tr[data-ticker='{ticker}']"))


def review(page, price="2800", **order):
    """Fills the ticket, and reviews the order; after an answer the page rests for a moment."""
    order = {"instrument_id": "7203.TSE", "order_type": "LIMIT", "quantity": "100", "price": price, **order}
    page.until(f"!{page.one(REVIEW)}.disabled && !{page.one(f'{TICKET} [name=quantity]')}.disabled")
    for name, value in order.items():
        page.fill(f"{TICKET} [name={name}]", value)
    drawn(page)
    page.click(REVIEW)
    page.until(page.one(SEND))


def drawn(page):
    """Waits until the page is drawn anew: buttons lie where they stay."""
    page.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def give(page, password):
    """Answers the question for the second password."""
    page.until(page.one(PASSWORD))
    page.fill(f"{PASSWORD} [name=second_password]", password)
    page.click(f"{PASSWORD} [data-action=confirm]")
    gone(page, PASSWORD)


def row(name):
    return f"{ORDERS} tr[data-client-order-id='{name}']"


def by_number(number):
    return f"{ORDERS} tr[data-venue-order-id='{number}']"


def is_row(name, status, selector=row):
    return f'document.querySelector("{selector(name)}").dataset.status === "{status}"'


def gone(page, selector):
    """Waits until there is no such element."""
    page.until(f"{page.one(selector)} === null")


def count(page, selector):
    return page.js(f"document.querySelectorAll({json.dumps(selector)}).length")


def values(page, selector):
    """The exact values of all elements of a kind, in their order."""
    return page.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.dataset.value)")


# --- Boards, and a run on paper.


def frame(last, volume, second, low="2840"):
    """A frame of the gateway with twenty prices from a lowest one up, a yen apart."""
    clock = f"{DAY}T09:31:{second:02}+09:00"
    prices = [int(low) + step for step in range(20)]
    sides = {"Buy": list(reversed(prices[:10])), "Sell": prices[10:]}
    levels = {
        f"{side}{level}": {"Price": price, "Qty": 100 * level, "Time": clock, "Sign": "0101"}
        for side, those in sides.items() for level, price in enumerate(those, 1)
    }
    return {
        "Symbol": "7203", "SymbolName": "Sample", "Exchange": 1, "CurrentPrice": int(last), "CurrentPriceTime": clock,
        "BidPrice": sides["Buy"][0], "BidQty": 100, "AskPrice": sides["Sell"][0], "AskQty": 100,
        "TradingVolume": volume, **levels,
    }


def test_c9_c13_boards_trades_and_a_strategy_on_paper(desk, browser):
    """Scenarios 13 and 13b: the board is that of the frame, a trade has its side, and a strategy that is started with
    the form's defaults trades on paper. C9, C13, and C11 of live candles."""
    one = desk(simulator=("--first-day", DAY))
    page = one.open(browser, "local_broker", ticker="7203")
    assert page.js(is_venue("web_broker", "Disconnected"))
    for told in (frame(2850, 1_000, 1), frame(2850, 1_300, 2), frame(2849, 1_400, 3)):
        one.gateway.control({"do": "frame", "json": told})
    page.until("document.querySelectorAll('[data-pane-kind=tape] tr[data-sequence-id]').length === 2")
    # The newest is the first: at the bid, then at the ask.
    tape = page.js("[...document.querySelectorAll('[data-pane-kind=tape] tr[data-side]')].map(row => [row.dataset.side,"
                   " row.querySelector('[data-field=price]').dataset.value, row.querySelector('[data-field=qty]')"
                   ".dataset.value])")
    assert tape == [["sell", "2849", "100"], ["buy", "2850", "300"]]
    for side, best in (("bid", 2849), ("ask", 2850)):
        for level in range(1, 11):
            price = best + (level - 1) * (1 if side == "ask" else -1)
            cell = f"[data-pane-kind=board] tr[data-side={side}][data-level='{level}'] td"
            assert values(page, f"{cell}[data-field=price]") + values(page, f"{cell}[data-field=qty]") == [
                str(price), str(100 * level)]

    panes = [f"[data-pane-kind={kind}]" for kind in ("board", "tape", "candles")]
    watch(page, "7261")
    for ticker in ("7261", "7203"):
        page.click(f"tr[data-ticker='{ticker}']")
        page.until(" && ".join(f"{page.one(pane)}.dataset.instrumentId === '{ticker}.TSE'" for pane in panes))
    page.click("tr[data-ticker='7261'] [data-action=unsubscribe]")
    gone(page, "tr[data-ticker='7261']")

    page.until(page.one(f"{STRATEGY} [name='param.fast']"))
    page.until(f"!{page.one(START)}.disabled")
    page.click(START)
    page.until(RUNNING)
    page.until(page.one(f"{STRATEGY}[data-run-kind=paper]"))
    assert count(page, "[data-banner=paper]") == 1
    one.client.ask("Subscribe", "Subscribed", venue="local_broker", ticker="7203")
    # Its averages of 20 and 100 trades cross when prices have fallen and rise again.
    prices = [3_000 - step for step in range(110)] + [2_891 + 2 * step for step in range(80)]
    one.gateway.control(*({
        "do": "trade", "symbol": "7203", "price": str(price), "quantity": 5_000,
        "time": f"10:{second // 60:02}:{second % 60:02}"} for second, price in enumerate(prices)))
    paper = f"{STRATEGY} tr[data-venue=paper][data-origin=strategy]"
    page.until(page.one(f"{paper}[data-status=FILLED]"), "an order on paper is filled")
    assert count(page, f"{ORDERS} tr[data-client-order-id]") == 0, "paper orders have a list of their own"
    assert one.broker.view()["requests"] == [] and one.broker.orders() == []
    # Those before 10:00, three minutes that are over, and the open one with its ten trades.
    chart, readout = (f"[data-pane-kind=candles] [data-role={role}]" for role in ("chart", "readout"))
    bar = [str(price) for price in (prices[180], prices[-1], prices[180], prices[-1])] + ["50000"]

    def is_drawn():
        one.client.take_all()
        ended = sum(len(event["klines"]) for event in one.client.since(0, "KlineUpdate"))
        is_drawn = page.js(f"{page.one(chart)}.dataset.points === '5'")
        assert is_drawn or ended < 5, "the open bar is drawn before its minute ends"
        return is_drawn and page.js(f"{page.one(chart)}.dataset.lastPrice === '{prices[-1]}'")

    one.until(is_drawn, "all bars are drawn")
    assert values(page, f"{readout} [data-value]")[-5:] == bar
    page.click(f"{STRATEGY} [data-action=stop]")
    one.client.wait("EngineStopped")
    gone(page, "[data-banner=paper]")
    page.reload()
    page.until(f"{page.one(BEST)}.dataset.value", "a page that comes when nothing moves has the board too")
    page.until(page.one("[data-pane-kind=tape] tr[data-sequence-id]"), "and what was traded before")
    one.until(is_drawn, "all bars are drawn again")
    assert values(page, f"{readout} [data-value]")[-5:] == bar
    assert page.problems() == []


def test_real_orders_of_a_strategy_are_a_second_choice(desk, browser):
    """Their form shows the limits, wants the id typed, and asks for the second password before anything starts."""
    one = desk()
    page = one.open(browser, "web_broker", "local_broker", ticker="7203")
    form = f"{STRATEGY} form"
    page.until(page.one(f"{form} [name='param.fast']"))
    page.click(f"{form} [name=paper][value=false]")
    for limit in "qty notional_jpy position_qty orders_per_minute open_orders daily_loss_jpy".split():
        page.until(f"{page.one(f'{form} [name=max_{limit}]')}.offsetParent")
    page.until(f"{page.one(f'{form} [name=initial_cash]')}.offsetParent === null")
    page.until(f"!{page.one(START)}.disabled")
    page.click(START)
    page.until("document.activeElement.name === 'strategy_id'")
    page.fill(f"{form} [name=strategy_id]", "mine")
    drawn(page)
    page.click(START)
    page.until(page.one(PASSWORD))
    page.click(f"{PASSWORD} [data-action=cancel]")
    gone(page, PASSWORD)
    page.until(f"!{page.one(START)}.disabled")
    page.click(START)
    give(page, one.secret)
    page.until(RUNNING)
    page.until(page.one(f"{STRATEGY}[data-run-kind=live]"))
    started, = one.client.since(0, "EngineStarted") or [one.client.wait("EngineStarted")]
    assert (started["strategy_id"], started["account_id"]) == ("mine", "LIVE")
    assert count(page, "[data-banner=paper]") == one.seen() == 0
    page.click(f"{STRATEGY} [data-action=stop]")
    one.client.wait("EngineStopped")
    page.until(f"{page.one(START)}.offsetParent")
    assert page.js(f"{page.one(f'{form} [name=paper][value=true]')}.checked"), "each start is decided anew"
    assert page.js(f"{page.one(f'{form} [name=strategy_id]')}.value") == ""
    assert page.problems() == []


def test_a_symbol_that_another_client_takes_away(tmp_path, browser):
    """Its row is gone, and nothing of it is shown."""
    with LocalWorld(tmp_path, environment={"KUMIKI_CONSOLE_PORT": "0"}) as world, world.client() as client:
        page = ready_page(browser, client)
        log_in(page, "local_broker")
        watch(page, "7203")
        world.until(lambda: venue_state(client)["push"] == "Streaming" and world.registered() == ["7203"], "it streams")
        for price in ("2850", "2851"):
            world.gateway.trade(price)
        page.until(page.one("[data-pane-kind=tape] tr[data-sequence-id]"))
        page.until(f"{page.one(BEST)}.dataset.value")
        page.until(f"{page.one('[data-pane-kind=candles] [data-role=chart]')}.dataset.points === '1'")
        client.ask("EvictLru", "SubscriptionEvicted", venue="local_broker")
        gone(page, "tr[data-ticker]")
        for kind in ("board", "tape", "candles"):
            page.until(f"{page.one(f'[data-pane-kind={kind}]')}.dataset.instrumentId === ''")
        page.until(f"{page.one('[data-pane-kind=candles] [data-role=chart]')}.dataset.points === '0'")
        gone(page, "[data-pane-kind=tape] tr[data-sequence-id]")
        page.until("[...document.querySelectorAll('[data-pane-kind=board] [data-field]')]"
                   ".every(one => !one.dataset.value && !one.innerText.trim())")
        assert page.problems() == []


# --- Orders.


def test_c15_c16_c17_an_order_and_its_second_password(desk, browser):
    """Scenario 14: cancel sends nothing; the right password sends the order of the review once, with its id; the
    third wrong one locks. C15, C16, C17."""
    one = desk()
    page = one.open(browser, "web_broker", "local_broker", ticker="7203")
    one.gateway.trade("2850")

    page.until(f"{page.one(BEST)}.dataset.value")
    page.click(BEST)
    assert page.js(f"{page.one(f'{TICKET} [name=price]')}.value") == values(page, BEST)[0], "a click fills the price in"

    since = len(one.client.events)
    review(page)
    assert page.js("document.querySelector('dialog[open]') === null"), "the review is a step of the ticket"
    page.click(SEND)
    page.until(page.one(PASSWORD))
    page.click(f"{PASSWORD} [data-action=cancel]")
    refused = one.client.wait("OrderRejected", since=since)
    assert refused["reason_code"] == "SECOND_PASSWORD_REQUIRED"
    page.until(page.one(f"[data-toast=reject][data-client-order-id='{refused['client_order_id']}']"))
    assert one.seen() == 0

    review(page)
    page.click(SEND)
    page.until(page.one(PASSWORD))
    before = page.js("JSON.stringify(sessionStorage)")
    since = len(one.client.events)
    give(page, one.secret)
    name = one.accepted(since)
    page.until(is_row(name, "ACCEPTED"))
    assert name in before, "it was written down before it left"
    page.until(f"!JSON.stringify(sessionStorage).includes('{name}')", "the answer is known")
    assert one.secret not in page.js("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    assert not page.js("document.activeElement.matches('button, input, select')"), "nothing that acts has the focus"
    for _ in range(5):
        page.key("Enter")

    # What is no order of this tab opens the dialog too, and nothing is sent after it.
    one.client.send("ForgetSecondPassword")
    page.click(f"{row(name)} [data-action=cancel]")
    give(page, one.secret)
    last, number = one.place(price="2795")
    assert [order["content"]["price"] for order in one.broker.orders()] == ["2800", "2795"]
    assert number == one.broker.orders()[1]["number"] and last != name
    assert len(one.requests(NEW)) == one.seen() == 2 and page.js(is_row(name, "ACCEPTED"))

    for tries in range(1, 4):
        one.client.send("ForgetSecondPassword")
        since = len(one.client.events)
        review(page)
        page.click(SEND)
        give(page, "canary-wrong")
        refused = one.client.wait("OrderRejected", since=since)
        assert refused["reason_code"] == "SECOND_PASSWORD_INVALID"
        page.until(f"!JSON.stringify(sessionStorage).includes('{refused['client_order_id']}')", tries)
    page.until(page.one(f"{TICKET}[data-locked-until-ms]"), "told without a further try")
    until = int(page.data(TICKET, "locked-until-ms"))
    # The engine counts from now each time that it is asked.
    assert abs(one.client.ask("GetVenueState", "VenueState", venue="web_broker")["locked_until_ms"] - until) < 1_000
    clock = datetime.datetime.fromtimestamp(until / 1000, JAPAN)
    assert f"{clock:%H:%M:%S} JST" in page.js(f"{page.one(TICKET)}.innerText")
    assert page.js(f"{page.one(REVIEW)}.disabled") and len(one.broker.orders()) == 2
    assert page.problems() == []
    one.check()


def sent_away(one, page):
    """Sends an order whose answer has not come: its id, once the broker has it."""
    since = len(one.client.events)
    review(page)
    page.click(SEND)
    one.until_seen(NEW)
    return one.client.wait("OrderSubmitted", since=since)["client_order_id"]


def test_an_answer_that_is_lost_is_asked_about(desk, browser):
    """Scenario 14b: the order stays unknown over a reload, and the same order again asks whether it is there."""
    one = desk()
    page = one.open(browser, "web_broker")
    one.password()
    one.fault("drop-answer", request=NEW, times=1)
    # Lists wait, so that nobody knows meanwhile.
    one.fault("delay-request", value=2_000, request=LIST)
    name = sent_away(one, page)
    page.reload()
    unknown = f"[data-pane-kind=ticket] [data-client-order-id='{name}'][data-status=unknown]"
    page.until(page.one(unknown))
    review(page)
    page.until(page.one(f"{ASKS} [data-client-order-id='{name}']"))
    assert page.js(f"{page.one(SEND)}.disabled"), "it is not sent by a click more"
    page.click(SEND)
    page.key("Enter")
    one.broker.control({"do": "clear-faults"})
    page.until(is_row(name, "ACCEPTED"))
    gone(page, unknown)
    assert len(one.requests(NEW)) == len(one.broker.orders()) == 1
    page.reload()
    page.until(READY)
    review(page)
    assert count(page, ASKS) == 0 and not page.js(f"{page.one(SEND)}.disabled")
    assert page.problems() == []
    one.check()


def test_c15_c18_changes_and_cancels(desk, browser):
    """Scenario 15: rows follow the broker, also where it refuses; what is worth more than three million yen is typed
    again; the question before all are cancelled counts what was placed elsewhere. C15, C18."""
    one = desk()
    page = one.open(browser, "web_broker")
    one.password()
    kept, number = one.place(price="2900", quantity="1000")
    other, _ = one.place()

    def change(name, **fields):
        page.click(f"{row(name)} [data-action=modify]")
        page.until(page.one("dialog[open][data-dialog=modify]"))
        for field, value in fields.items():
            page.fill(f"dialog[open] [name={field}]", value)
        page.click("dialog[open] [data-action=confirm]")

    def price_of(name):
        return f'[...document.querySelectorAll("{row(name)} [data-value]")].map(one => one.dataset.value)'

    change(kept, new_price="2890")
    page.until(f"{price_of(kept)}.includes('2890')")
    assert page.js(is_row(kept, "ACCEPTED")) and one.listed()[number] == ("2890", 1000)
    change(kept, new_price="3010")
    page.until(page.one("dialog[open][data-dialog=retype]"))
    assert page.js(f"{page.one('dialog[open] [data-action=confirm]')}.disabled")
    page.fill("dialog[open] [name=quantity]", "1000")
    one.fault("result", value=13249, request=CORRECT, times=1)
    page.click("dialog[open] [data-action=confirm]")
    page.until(page.one(f"[data-toast=reject][data-client-order-id='{kept}']"))
    page.until(f"{is_row(kept, 'ACCEPTED')} && {price_of(kept)}.includes('2890')", "as the list says")
    assert one.listed()[number] == ("2890", 1000) and len(one.requests(CORRECT)) == 2

    page.click(f"{row(other)} [data-action=cancel]")
    page.until(is_row(other, "CANCELED"))
    assert count(page, "dialog[open]") == 0 and len(one.requests(CANCEL)) == 1

    elsewhere = one.broker.control({"do": "order", "issue": "7203", "side": "buy", "quantity": 100, "price": "2700"})
    elsewhere = elsewhere["number"]
    page.click(f"{ORDERS} [data-action=cancel-all]")
    page.until(f"{page.one('dialog[open][data-dialog=cancel-all]')}.dataset.count === '2'")
    page.click("dialog[open] [data-action=cancel]")
    gone(page, "dialog[open]")
    assert len(one.requests(CANCEL)) == 1 and one.requests("CLMKabuCancelOrderAll") == []
    page.until(page.one(f"{by_number(elsewhere)}[data-client-order-id=''][data-origin=foreign]"))
    page.click(f"{ORDERS} [data-action=cancel-all]")
    page.until("!document.querySelector('dialog[open] [data-action=confirm]').disabled")
    page.click("dialog[open] [data-action=confirm]")
    page.until(f"{is_row(kept, 'CANCELED')} && {is_row(elsewhere, 'CANCELED', by_number)}")
    assert {leaves for _, leaves in one.listed().values()} == {0}
    assert page.problems() == []
    one.check()


def test_c12_a_fill_is_told_in_every_tab(desk, browser):
    """Five Enters are one order, whose fill, position and money stand in each tab as the broker has them. C12."""
    one = desk()
    page = one.open(browser, "web_broker", "local_broker", ticker="7203")
    one.password()
    other = ready_page(browser, one.client)
    power = "[data-field=buying_power]"
    page.until(f"{page.one(power)}.dataset.value")
    cash = int(values(page, power)[0])
    review(page, price="2840")
    drawn(page)
    assert values(page, f"{TICKET} [data-role=estimate] [data-value]") == ["284000", str(cash - 284_000)]
    since = len(one.client.events)
    page.js(f"{page.one(SEND)}.focus()")
    for _ in range(5):
        page.key("Enter")
    name = one.accepted(since)
    page.until(is_row(name, "ACCEPTED"))
    one.gateway.trade("2840")
    one.client.wait("OrderFilled", client_order_id=name)
    for tab in (page, other):
        tab.until(is_row(name, "FILLED"))
        tab.until(page.one(f"[role=status] [data-toast=fill][data-client-order-id='{name}']"))
        cell = "[data-pane-kind=positions] tr[data-instrument-id='7203.TSE'] td[data-field={}]"
        tab.until(f"{tab.one(cell.format('qty'))}.dataset.value === '{one.held()}'")
        held, = one.client.ask("GetPositions", "PositionsUpdated", venue="web_broker")["positions"]
        for field in ("avg_open_price", "market_value", "unrealized_pnl"):
            assert values(tab, cell.format(field)) == [held[field]], field
        money = one.client.ask("GetBuyingPower", "BuyingPowerUpdated", venue="web_broker")["cash_available"]
        tab.until(f"{tab.one(power)}.dataset.value === '{money}'")
        assert tab.problems() == []
    assert len(one.requests(NEW)) == len(one.broker.orders()) == 1
    one.check()


def test_more_clicks_on_review_send_nothing(desk, browser):
    """Wherever the button to send comes to lie, a click at the place of the one before it is none on it."""
    one = desk()
    small = one.open(browser, "web_broker")
    one.password()
    large = browser.page(address(one.client), 1920, 1080)
    stop, day = {"order_type": "STOP_LIMIT", "trigger_price": "2900"}, f"{datetime.date.today():%Y-%m-%d}"
    for page in (small, large):
        page.until(READY)
        for order in ({"order_type": "MARKET"}, {}, stop, {**stop, "time_in_force": "GTD", "expire_time_ns": day}):
            review(page, **order)
            page.click(f"{TICKET} [data-action=back]")
            drawn(page)
            place = page.place(REVIEW)
            for _ in range(3):
                page.click_at(*place)
            assert page.js(f"{page.one(SEND)} !== null"), "it is reviewed"
            page.click(f"{TICKET} [data-action=back]")
    one.client.ask("Ping", "Pong")
    assert one.seen() == 0


def test_an_order_worth_millions_is_typed_again(desk, browser):
    """C15: the dialog wants the quantity, and nothing leaves before it stands there."""
    one = desk()
    page = one.open(browser, "web_broker")
    one.password()
    review(page, quantity="1100")
    page.click(SEND)
    page.until(page.one("dialog[open][data-dialog=retype]"))
    page.fill("dialog[open] [name=quantity]", "110")
    assert page.js(f"{page.one('dialog[open] [data-action=confirm]')}.disabled")
    page.key("Enter")
    page.click("dialog[open] [data-action=cancel]")
    gone(page, "dialog[open]")
    since = len(one.client.events)
    page.click(SEND)
    page.until(page.one("dialog[open][data-dialog=retype]"))
    page.fill("dialog[open] [name=quantity]", "1100")
    page.click("dialog[open] [data-action=confirm]")
    page.until(is_row(one.accepted(since), "ACCEPTED"))
    assert len(one.requests(NEW)) == len(one.broker.orders()) == 1
    assert page.problems() == []


# --- What ends.


def test_a_session_that_the_broker_ends(desk, browser):
    """Scenario 16: orders are off until somebody logs in."""
    one = desk()
    page = one.open(browser, "web_broker")
    one.password()
    name, _ = one.place()
    review(page)
    one.broker.control({"do": "end-session"})
    frozen = "[data-banner=session-frozen][data-venue=web_broker]"
    page.until(page.one(frozen))
    page.until(f"{page.one(SEND)}.disabled")
    for action in (f"{row(name)} [data-action=modify]", f"{row(name)} [data-action=cancel]",
                   f"{ORDERS} [data-action=cancel-all]"):
        page.until(f"{page.one(action)}.disabled")
    page.reload()
    page.until(page.one(frozen))
    assert page.js(f"{page.one(REVIEW)}.disabled")
    log_in(page, "web_broker")
    gone(page, frozen)
    one.password()
    one.place(price="2790")
    assert len(one.requests(NEW)) == len(one.broker.orders()) == 2
    assert page.problems() == []


def test_c24_a_gateway_of_the_real_market_that_is_killed(tmp_path, browser):
    """Scenarios 17 and 18: the page says that it is the real market's, and whose fault it is that nothing comes.
    C24."""
    environment = {"LOCALBROKER_ENV": "prod", "LOCALBROKER_ALLOW_PROD": "1", "KUMIKI_CONSOLE_PORT": "0"}
    with LocalWorld(tmp_path, environment=environment) as world, world.client() as client:
        page = ready_page(browser, client)
        page.until("document.documentElement.dataset.production === 'true'")
        page.until("document.title.startsWith('【本番】')")
        banner = page.one("[data-banner=production][data-venue=local_broker]")
        page.until(banner)
        named = page.js(f"[...{banner}.querySelectorAll('code')].map(one => one.textContent)")
        assert named == ["local_broker", "web_broker"], "and that the broker is in its demo"
        assert count(page, "[data-banner=production]") == 1

        log_in(page, "local_broker")
        watch(page, "7203")
        world.until(lambda: world.registered() == ["7203"], "it is registered")
        world.gateway.kill()
        told = client.wait("VenueError")
        down = "[data-banner=venue-error][data-venue=local_broker][data-code=local_app_down]"
        page.until(page.one(down))
        assert told["code"] == "local_app_down" and told["message"] in page.js(f"{page.one(down)}.innerText")
        page.reload()
        page.until(page.one(down), "a page that comes later has it too")
        world.gateway_again()
        page.until(is_venue("local_broker", "Ready"), "it comes back by itself")
        gone(page, down)
        assert page.problems() == []


def test_c5_c22_an_engine_that_is_killed_between_send_and_answer(desk, browser):
    """Scenario 19: the page is lost, and ended once another is opened; that one shows the order, which is there once.
    C5, C22."""
    one = desk()
    page = one.open(browser, "web_broker")
    one.password()
    console = urllib.parse.urlsplit(page.js("location.origin")).port
    one.fault("delay-answer", value=1_500, request=NEW, times=1)
    name = sent_away(one, page)
    one.kill_engine()
    page.until("document.documentElement.dataset.connection === 'lost'")
    page.until(page.one("[data-banner=connection]"))
    page.until(f"{page.one(REVIEW)}.disabled")
    assert name in page.js("sessionStorage.getItem('kumiki.pending')")

    environment = {**one.environment, "KUMIKI_CONSOLE_PORT": str(console)}
    arguments = [word for word in one.arguments if word not in ANY_PORT]
    one.engine = Trading(one.folder / "engine", one.address, *arguments, form=one.form, environment=environment,
                         port=one.engine.port)
    one.engines.append(one.engine)
    client = one.connect()
    other = browser.page(address(client))
    other.until(READY)
    page.until("document.documentElement.dataset.connection === 'ended'")
    log_in(other, "web_broker")
    other.until(is_row(name, "ACCEPTED"))
    assert count(other, f"{ORDERS} tr[data-client-order-id]") == 1
    assert len(one.requests(NEW)) == len(one.broker.orders()) == 1


def test_a_page_that_may_only_look_at_the_live_market(desk, browser):
    """Scenario 20: nothing on it acts, and what its session sends by other means is refused."""
    one = desk()
    one.ready()
    one.placed("kept")
    page = ready_page(browser, one.client, read_only=True)
    page.until(is_row("kept", "ACCEPTED"))
    assert page.js("document.documentElement.dataset.scope") == "read_only"
    acting = "review send modify cancel cancel-all login start stop confirm".split()
    alive = [action for action in acting if page.js(
        f"[...document.querySelectorAll('[data-action={action}]')].some(one => !one.disabled && one.offsetParent)")]
    assert alive == []
    watch(page, "7203")
    seen = one.seen()
    with PageClient(stored_session(page), page.js("location.origin")) as forged:
        order = one.order("forged")
        for op, fields in {
            "SubmitOrder": {"venue": "web_broker", "order": order}, "CancelAllOrders": {"venue": "web_broker"},
            "CancelOrder": {"venue": "web_broker", "client_order_id": "kept"}, "SetSecondPassword": {"value": "x"},
            "ModifyOrder": {"venue": "web_broker", "client_order_id": "kept", "change": {"new_price": "2700"}},
            "RequestVenueLogin": {"venue": "web_broker"}, "Shutdown": {},
        }.items():
            assert forged.wait("Error", request_id=forged.send(op, **fields))["code"] == "forbidden", op
    # A person's question goes to who may answer it.
    one.client.send("ForgetSecondPassword")
    one.client.wait("SecondPasswordRequired", request_id=one.client.send(
        "SubmitOrder", venue="web_broker", order=one.order("another")))
    assert page.js("document.querySelector('dialog[open]') === null")
    assert one.seen() == seen == 1 and page.problems() == []
