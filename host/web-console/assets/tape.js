// Time and sales of the ticker that is shown, the newest first.

import { listen } from "./bus.js";
import { make, preciseClockOf, setAttribute, setNumber, setText } from "./dom.js";
import { draw, drawing, slowly } from "./frames.js";
import { known } from "./language.js";
import { selectedTicker, tickerData } from "./market.js";
import { makePane, nameSubject } from "./panes.js";

const ROWS_SHOWN = 100;
/** The tape is drawn at most this often. */
const EVERY_MS = 50;
/** A mark beside the side, so that colour alone says nothing. */
const MARKS = { buy: "\u25b2", sell: "\u25bc", unknown: "" };

let pane = null;
let body = null;
const rows = [];

const soon = slowly(() => render(), EVERY_MS);

export function makeTapePane(close) {
  pane = makePane("tape", { instrumentId: "", close });
  body = make("tbody", {});
  const heads = ["time", "price", "quantity", "taker"].map((name) => make("th", { scope: "col", text: `column.${name}`, class: name === "time" ? null : "right" }));
  pane.body.append(make("div", { class: "scroll", tabindex: "0", role: "group", label: "pane.tape" },
    make("table", { class: "tape" }, make("thead", {}, make("tr", {}, ...heads)), body)));
  drawing(render);
  return pane;
}

function makeRow() {
  const cells = [make("td", {}), make("td", { "data-field": "price", class: "right" }), make("td", { "data-field": "qty", class: "right" }), make("td", { class: "right" })];
  const row = { cells, node: make("tr", {}, ...cells) };
  body.append(row.node);
  return row;
}

function render() {
  const ticker = selectedTicker();
  const trades = ticker === null ? [] : tickerData(ticker).tape;
  const count = Math.min(trades.length, ROWS_SHOWN);
  while (rows.length < count) rows.push(makeRow());
  while (rows.length > count) rows.pop().node.remove();
  // The oldest rows become those of the new trades; all others stay as they are.
  const fresh = newerThan(trades, rows[0]?.trade, count);
  for (const row of rows.splice(count - fresh, fresh).reverse()) {
    body.prepend(row.node);
    rows.unshift(row);
  }
  for (let place = 0; place < count; place++) show(rows[place], trades[place]);
}

/** How many trades are newer than the one that is shown first; none where that is there no more: all rows change. */
function newerThan(trades, shown, count) {
  for (let place = 0; place < count; place++) if (trades[place] === shown) return place;
  return 0;
}

function show(row, trade) {
  if (row.trade === trade && row.language === globalThis.language) return;
  Object.assign(row, { trade, language: globalThis.language });
  const { node, cells } = row;
  setAttribute(node, "data-sequence-id", trade.sequence_id);
  setAttribute(node, "data-side", trade.side);
  setAttribute(node, "data-side-rule", trade.side_rule);
  setNumber(cells[0], trade.ts_ms, preciseClockOf(trade.ts_ms));
  setNumber(cells[1], trade.price);
  setNumber(cells[2], trade.qty);
  const rule = trade.side_rule === null ? "" : known("sideRule", trade.side_rule);
  setText(cells[3], `${MARKS[trade.side] ?? ""} ${known("taker", trade.side)}`);
  setAttribute(cells[3], "title", rule);
}

listen("market-trades", (data) => data.ticker === selectedTicker() && pane !== null && soon());
listen("selected", (ticker) => {
  if (pane === null) return;
  nameSubject(pane, ticker === null ? "" : `${ticker}.TSE`);
  draw(render);
});
