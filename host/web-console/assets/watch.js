// The watch list of live mode: what is subscribed, and which ticker board, tape and candles show.

import { listen } from "./bus.js";
import { actionButton, make, setAttribute, setNumber, setText } from "./dom.js";
import { draw, drawing, slowly } from "./frames.js";
import { applyTexts } from "./language.js";
import { liveLayout } from "./live_store.js";
import { select, selectedTicker, subscribe, tickerData, unsubscribe } from "./market.js";
import { makePane } from "./panes.js";
import { refusalParts } from "./refusals.js";
import { isReady } from "./state.js";
import { suggestInstrument } from "./ticket.js";
import { toast } from "./toasts.js";

const FORM = /^[0-9A-Z]{4,9}$/;
/** Last prices of the list are drawn at most this often; the board that is shown has no such limit. */
const EVERY_MS = 200;

const rows = new Map();
let body = null;

export function makeWatchPane() {
  const pane = makePane("watch");
  const input = make("input", { name: "ticker", autocomplete: "off", list: "instruments", translate: "no", label: "ticker", placeholder: "tickerHint" });
  const add = make("button", { type: "submit", "data-action": "subscribe", text: "subscribe" });
  const form = make("form", { class: "line" }, input, add);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const ticker = input.value.trim().toUpperCase().split(".")[0];
    if (!FORM.test(ticker)) return;
    input.value = "";
    addTicker(ticker);
  });
  body = make("tbody", {});
  pane.body.append(form, make("div", { class: "scroll", tabindex: "0", role: "group", label: "pane.watch" }, make("table", { class: "watch" }, body)));
  drawing(render);
  return pane;
}

/** Subscribes a ticker and shows it. */
async function addTicker(ticker) {
  if (!isReady()) return;
  try {
    await subscribe(ticker);
  } catch (error) {
    toast("reject", refusalParts(error));
    return;
  }
  addRow(ticker);
  show(ticker);
  keep();
}

function addRow(ticker) {
  if (rows.has(ticker)) return;
  const cells = { price: make("td", { class: "right" }), name: make("td", { class: "name", translate: "no" }) };
  const choose = make("button", { type: "button", class: "link", translate: "no" }, ticker);
  choose.addEventListener("click", () => show(ticker));
  const remove = actionButton("unsubscribe", "remove", () => removeTicker(ticker), { class: "icon" });
  delete remove.dataset.text;
  remove.textContent = "\u00d7";
  Object.assign(remove.dataset, { label: "unsubscribe", of: ticker });
  applyTexts(remove);
  const node = make("tr", { "data-ticker": ticker }, make("td", {}, choose), cells.name, cells.price, make("td", {}, remove));
  node.addEventListener("click", (event) => {
    if (event.target.closest("button") === null) show(ticker);
  });
  rows.set(ticker, { node, cells });
  body.append(node);
  draw(render);
}

async function removeTicker(ticker) {
  try {
    await unsubscribe(ticker);
  } catch (error) {
    toast("reject", refusalParts(error));
    return;
  }
  drop(ticker);
}

function drop(ticker) {
  rows.get(ticker)?.node.remove();
  if (!rows.delete(ticker)) return;
  if (selectedTicker() === ticker) show([...rows.keys()].pop() ?? null);
  keep();
}

// What nobody pushes any more is not watched.
listen("SubscriptionEvicted", ({ symbol }) => drop(symbol));

function show(ticker) {
  select(ticker);
  if (ticker !== null) suggestInstrument(`${ticker}.TSE`);
  keep();
  draw(render);
}

function keep() {
  liveLayout.change({ tickers: [...rows.keys()], ticker: selectedTicker() });
}

function render() {
  for (const [ticker, { node, cells }] of rows) {
    const data = tickerData(ticker);
    setAttribute(node, "aria-current", ticker === selectedTicker() ? "true" : null);
    setText(cells.name, data.name ?? "");
    setNumber(cells.price, data.lastPrice);
  }
}

listen("market", slowly(() => render(), EVERY_MS));
listen("ticker", () => draw(render));

// A new connection has no subscriptions.
listen("synced", async () => {
  if (body === null) return;
  const kept = liveLayout.read();
  const tickers = rows.size > 0 ? [...rows.keys()] : kept.tickers ?? [];
  const shown = selectedTicker() ?? kept.ticker ?? null;
  for (const ticker of tickers.filter((one) => FORM.test(one))) {
    try {
      await subscribe(ticker);
      addRow(ticker);
    } catch (error) {
      toast("reject", refusalParts(error));
    }
  }
  if (shown !== null && rows.has(shown)) show(shown);
});

// Names come with the login.
listen("VenueReady", ({ venue }) => {
  if (venue !== "local_broker") return;
  for (const ticker of rows.keys()) if (tickerData(ticker).name === null) subscribe(ticker).catch(() => {});
});
