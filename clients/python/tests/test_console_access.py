"""The engine's page for everybody (scenario 22): its controls have names, its texts can be read in light and dark, the
focus is seen, and it speaks the reader's language in every state."""

import contextlib
import re

import pytest
from browser import Browser
from console_pages import ANY_PORT, READY, RUNNING, TICKET, load, ready_page
from live_world import REASON_CODES
from market_world import MarketWorld
from page_access import JAPANESE, check_contrast, check_focus, check_language, check_names, is_foreign, table_of


@pytest.fixture(scope="module", params=["en", "ja"])
def speaking(request, tmp_path_factory):
    """A browser whose user reads a language, and that language."""
    one = Browser(tmp_path_factory.mktemp("profile"), language={"en": "en-US", "ja": "ja"}[request.param])
    yield one, request.param
    one.close()


def replay_states(page, client, market):
    """A replay from its beginning to a fill by hand; it stops in each state that looks different."""
    yield "before data are loaded"
    load(page, "7203", market, last=2)
    yield "loaded"
    market.run(client, "sma-cross", last=2, multiplier=600, strategy_init_kwargs={"fast": 5})
    page.until(RUNNING)
    page.until("document.querySelectorAll('tr[data-client-order-id]').length > 3")
    for tab in ("signals", "narrative", "equity", "runs", "positions"):
        page.click(f"[data-tab={tab}]")
        yield tab
    page.js("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.fill(f"{TICKET} [name=quantity]", "none")
    page.click(f"{TICKET} [data-action=review]")
    page.until(f"!{page.one(f'{TICKET} [role=alert]')}.hidden")
    yield "a wrong order"
    page.fill(f"{TICKET} [name=quantity]", "100")
    page.click(f"{TICKET} [data-action=review]")
    page.until(page.one(f"{TICKET} [data-action=send]"))
    yield "review"
    page.click(f"{TICKET} [data-action=send]")
    page.until(page.one("[data-toast=fill]"))
    yield "filled"


def live_states(page, world):
    """A live page on simulators, from the first login to the loss of the engine."""
    yield "before the logins"
    world.login()
    world.password()
    world.boards()
    world.placed("one")
    world.gateway.trade("2840")
    page.fill("[data-pane-kind=watch] [name=ticker]", "7203")
    page.click("[data-action=subscribe]")
    page.until("document.querySelectorAll('tr[data-side=ask]').length >= 10")
    world.gateway.trade("2842")
    page.until(page.one("[data-pane-kind=tape] tr[data-sequence-id]"))
    page.until(page.one("tr[data-client-order-id=one] [data-action=modify]"))
    for tab in ("signals", "narrative", "equity", "runs", "strategy"):
        page.click(f"[data-tab={tab}]")
        yield tab
    page.js("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.click("[name=paper][value=false]")
    yield "real orders of a strategy"
    page.click("tr[data-client-order-id=one] [data-action=modify]")
    page.until(page.one("dialog[open][data-dialog=modify]"))
    yield "a change"
    page.key("Escape")
    page.click("[data-action=cancel-all]")
    page.until(page.one("dialog[open][data-dialog=cancel-all][data-count]"))
    yield "cancel all"
    page.key("Escape")
    world.client.send("ForgetSecondPassword")
    world.client.ask("Ping", "Pong")
    page.click("tr[data-client-order-id=one] [data-action=cancel]")
    page.until(page.one("dialog[open][data-dialog=second-password]"))
    yield "second password"
    page.key("Escape")
    page.until("document.querySelector('dialog') === null")
    world.broker.control({"do": "end-session"})
    page.until(page.one("[data-banner=session-frozen]"))
    yield "frozen"
    world.market.kill()
    page.until(page.one("[data-banner=venue-error]"))
    yield "a venue is down"
    world.kill_engine()
    page.until("document.documentElement.dataset.connection === 'lost'")
    yield "lost"


def check(page, language, states):
    for state in states:
        try:
            check_contrast(page)
            check_names(page)
            check_language(page, language)
        except AssertionError as error:
            raise AssertionError(f"{state}: {error}") from error


def check_both(page, language):
    """The other language, and back: what stands there is told anew."""
    other = {"en": "ja", "ja": "en"}[language]
    for wanted in (other, language):
        page.click("[data-action=language]")
        page.until(f"document.documentElement.lang === '{wanted}'")
        check_language(page, wanted)
        check_names(page)


def test_a_replay_can_be_read(start, market, speaking):
    browser, language = speaking
    with start(more=ANY_PORT).client() as client:
        page = ready_page(browser, client)
        check(page, language, replay_states(page, client, market))
        check_both(page, language)
        if language == "en":
            check_focus(page)
        page.close()


def test_a_live_page_can_be_read(tmp_path, speaking):
    browser, language = speaking
    with contextlib.closing(MarketWorld(tmp_path / "world", *ANY_PORT)) as world:
        page = ready_page(browser, world.start())
        if language == "en":
            check_focus(page)
        check(page, language, live_states(page, world))
        check_both(page, language)
        page.close()


def test_c8_c21_a_tab_may_have_another_language(start, speaking):
    """It is the browser's, until it is changed for the tab; nobody else has it then."""
    browser, language = speaking
    other = {"en": "ja", "ja": "en"}[language]
    with start(more=ANY_PORT).client() as client:
        page, second = ready_page(browser, client), ready_page(browser, client)
        assert page.js("document.documentElement.lang") == language
        page.click("[data-action=language]")
        page.until(f"document.documentElement.lang === '{other}'")
        for tab, wanted in ((page, other), (second, language)):
            tab.reload()
            tab.until(READY)
            assert tab.js("document.documentElement.lang") == wanted
            assert tab.js("JSON.stringify(localStorage)") == "{}"
            tab.close()


def test_a_page_that_may_not_come_in_says_so_in_its_language(start, speaking):
    browser, language = speaking
    with start(more=ANY_PORT).client() as client:
        page = ready_page(browser, client)
        origin = page.js("location.origin")
        page.close()
    refused = browser.page(origin + "/")
    refused.until("document.documentElement.dataset.connection === 'refused'")
    said = refused.js("document.body.innerText")
    assert bool(JAPANESE.search(said)) == (language == "ja") and "kumiki console" in said
    check_contrast(refused, texts=3)
    refused.close()


def test_every_text_is_there_in_both_languages(start, browser):
    with start(more=ANY_PORT).client() as client:
        page = ready_page(browser, client)
        page.until(READY)
        table = table_of(page)
        page.close()
    values = re.compile(r"\{(\w+)\}")
    for key, text in table.items():
        assert set(text) == {"en", "ja"} and all(one.strip() for one in text.values()), key
        assert set(values.findall(text["en"])) == set(values.findall(text["ja"])), key
        if key != "otherLanguage":
            assert not JAPANESE.search(text["en"]), key
            words = re.sub(r"\{[^}]*\}", "", text["ja"])
            assert JAPANESE.search(words) or not is_foreign(words, "ja"), (key, text["ja"])
    missing = {code for code in REASON_CODES if f"code.{code}" not in table}
    assert missing == set()
