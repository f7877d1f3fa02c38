// The board: ten prices to sell at, ten to buy at, the last price between them. A click fills the ticket's
// price and sends nothing.

import { listen } from "./bus.js";
import { make, preciseClockOf, setAttribute, setNumber, setText } from "./dom.js";
import { draw, drawing, slowly } from "./frames.js";
import { selectedTicker, tickerData } from "./market.js";
import { makePane, nameSubject } from "./panes.js";
import { fillTicket } from "./ticket.js";

const LEVELS_SHOWN = 10;
/** The board is drawn at most this often: more than anybody can read. */
const EVERY_MS = 40;

let pane = null;
let rows = [];
let last = null;
let when = null;

const soon = slowly(() => render(), EVERY_MS);

export function makeBoardPane(close) {
  pane = makePane("board", { instrumentId: "", close });
  const body = make("tbody", {});
  const side = (name, level) => {
    const cells = { price: make("td", { "data-field": "price" }), qty: make("td", { "data-field": "qty" }) };
    const bar = make("td", { class: "depth" }, make("i", {}));
    const order = name === "ask" ? [bar, cells.qty, cells.price, make("td", {}), make("td", {})] : [make("td", {}), make("td", {}), cells.price, cells.qty, bar];
    const node = make("tr", { "data-side": name, "data-level": String(level) }, ...order);
    node.addEventListener("click", () => take(cells.price));
    rows.push({ side: name, level, cells, bar: bar.firstChild, node });
    return node;
  };
  rows = [];
  for (let level = LEVELS_SHOWN; level >= 1; level--) body.append(side("ask", level));
  last = make("b", { "data-field": "last_price" });
  when = make("span", { class: "when" });
  body.append(make("tr", { class: "middle" }, make("td", { colspan: "5" }, last, " ", when)));
  for (let level = 1; level <= LEVELS_SHOWN; level++) body.append(side("bid", level));
  const head = make("thead", {}, make("tr", {}, make("td", {}), make("th", { scope: "col", text: "column.asks" }), make("th", { scope: "col", text: "column.price" }),
    make("th", { scope: "col", text: "column.bids" }), make("td", {})));
  pane.body.append(make("table", { class: "board" }, head, body));
  drawing(render);
  return pane;
}

function take(cell) {
  if (cell.dataset.value) fillTicket({ instrument_id: pane.dataset.instrumentId, price: cell.dataset.value });
}

function render() {
  const ticker = selectedTicker();
  const board = ticker === null ? null : tickerData(ticker).board;
  let most = 0;
  if (board !== null) for (const { qty } of [...board.asks, ...board.bids]) most = Math.max(most, Number(qty));
  for (const { side, level, cells, bar } of rows) {
    const found = board === null ? undefined : (side === "ask" ? board.asks : board.bids)[level - 1];
    setNumber(cells.price, found?.price ?? null);
    setNumber(cells.qty, found?.qty ?? null);
    const width = found === undefined || most === 0 ? 0 : Math.round((Number(found.qty) / most) * 100);
    if (bar.width !== width) {
      bar.width = width;
      bar.style.width = `${width}%`;
    }
  }
  setNumber(last, board?.last_price ?? null);
  setText(when, board === null ? "" : `${preciseClockOf(board.timestamp_ms)} JST`);
  setAttribute(when, "data-value", board?.timestamp_ms ?? "");
  setAttribute(pane, "data-sequence-id", board?.sequence_id);
}

listen("market-board", (data) => data.ticker === selectedTicker() && pane !== null && soon());
listen("selected", (ticker) => {
  if (pane === null) return;
  nameSubject(pane, ticker === null ? "" : `${ticker}.TSE`);
  draw(render);
});
