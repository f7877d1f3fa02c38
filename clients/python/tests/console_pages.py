"""The engine's pages in a browser: what the tests of several files do with them."""

import json

READY = "document.documentElement.dataset.connection === 'ready'"
IDLE = "document.documentElement.dataset.sessionState === 'Idle'"
RUNNING = "document.documentElement.dataset.sessionState === 'Running'"
TICK = "[data-pane-kind=tick][data-instrument-id='7203.TSE']"
CANDLES = "[data-pane-kind=candles][data-instrument-id='7203.TSE']"
TICKET = "form[data-role=ticket]"
#: An engine whose pages have any free port.
ANY_PORT = ("--console-port", "0")


def address(client, **how):
    """An address that opens a page, once."""
    return client.ask("OpenConsole", "ConsoleOpened", **how)["url"]


def ready_page(browser, client, **how):
    """A page that is connected."""
    page = browser.page(address(client, **how))
    page.until(READY)
    return page


def split(page):
    """The tree of panes with charts."""
    return page.js(
        "(function tree(one) { const below = [...one.children].map(tree).join('');"
        " if (one.dataset.split) return one.dataset.split + '[' + below + ']';"
        " const {paneKind, instrumentId} = one.dataset;"
        " return paneKind ? paneKind + ':' + instrumentId.slice(0, 4) + ' ' : below; })"
        "(document.querySelector('.charts'))")


def form_is_ready(page):
    """Whether data can be loaded. The form fills itself once the engine has told what there is."""
    form = "[data-pane-kind=load]"
    return f"{page.one(f'{form} [name=start_date]')}.value && !{page.one(f'{form} [data-action=load]')}.disabled"


def load(page, code, market, first=1, last=1):
    """Loads days by the page's form."""
    page.until(form_is_ready(page), "the form knows the data")
    for name, value in market.span(first, last).items():
        page.fill(f"[data-pane-kind=load] [name={name}]", value)
    page.fill("[data-pane-kind=load] [name=instrument_id]", code)
    page.click("[data-action=load]")
    page.until(f"document.querySelector(\"[data-pane-kind=load]\").innerText.includes('{code}.TSE')")


def stored_session(page):
    """The session of a tab."""
    return json.loads(page.js("sessionStorage.getItem('kumiki.session')"))
