// A table of orders, the newest first. Rows that did not change are left alone.

import { actionButton, clockOf, dateOf, make, shortMomentOf, setAttribute, setNumber, setText, tickerOf } from "./dom.js";
import { noLongerDrawing, draw, drawing } from "./frames.js";
import { known, t } from "./language.js";
import { isWorking, ordersOf } from "./orders.js";
import { listen } from "./bus.js";
import { isReplay, state } from "./state.js";

const ROWS_MOST = 500;
/** A table is drawn at most this often, and less where many rows are new: so many times as long as it took. */
const EVERY_MS = 150;
const SHARE = 30;
const COLUMNS = ["time", "status", "instrument", "side", "quantity", "price", "filled", "type", "trigger", "tif", "origin", ""];
const RIGHT = new Set(["quantity", "filled", "price", "trigger"]);

export class OrderTable {
  /** `actions(order)` gives the buttons of a row, by name and work. */
  constructor(venue, actions = () => []) {
    this.venue = venue;
    this.actions = actions;
    this.rows = new Map();
    this.body = make("tbody", {});
    const heads = COLUMNS.map((name) => (name === "" ? make("td", {}) : make("th", { scope: "col", text: `column.${name}`, class: RIGHT.has(name) ? "right" : null })));
    this.node = make("div", { class: "scroll", tabindex: "0", role: "group", label: "pane.order_list" },
      make("table", { class: "orders" }, make("thead", {}, make("tr", {}, ...heads)), this.body));
    this.job = drawing(() => this.render());
    this.drawn = 0;
    this.took = 0;
    this.timer = null;
    listen("orders", () => this.soon());
  }

  soon() {
    if (this.closed || this.timer !== null) return;
    const wait = Math.max(EVERY_MS, this.took * SHARE) - (performance.now() - this.drawn);
    if (wait <= 0) {
      draw(this.job);
      return;
    }
    this.timer = setTimeout(() => {
      this.timer = null;
      draw(this.job);
    }, wait);
  }

  close() {
    this.closed = true;
    noLongerDrawing(this.job);
  }

  render() {
    if (this.closed) return;
    this.drawn = performance.now();
    const orders = ordersOf(this.venue);
    // Lists come in any order; rows of one moment stay as they came.
    orders.sort((one, other) => one.ts_event_ms - other.ts_event_ms);
    const newest = orders.slice(-ROWS_MOST).reverse();
    this.told?.(orders.length);
    const there = new Set(newest);
    for (const [order, row] of this.rows) {
      if (there.has(order)) continue;
      row.node.remove();
      this.rows.delete(order);
    }
    let next = this.body.firstElementChild;
    for (const order of newest) {
      const row = this.row(order);
      if (row.node === next) next = next.nextElementSibling;
      else this.body.insertBefore(row.node, next);
    }
    this.took = performance.now() - this.drawn;
  }

  row(order) {
    if (!this.rows.has(order)) {
      const cells = COLUMNS.map((name) => make("td", { class: RIGHT.has(name) ? "right" : null }));
      this.rows.set(order, { cells, node: make("tr", {}, ...cells), shown: null, buttons: null });
    }
    const row = this.rows.get(order);
    const version = `${order.version} ${globalThis.language} ${order.status} ${this.actions(order).map(({ name, off }) => name + Boolean(off)).join()}`;
    if (row.shown !== version) {
      row.shown = version;
      this.fill(row, order);
    }
    return row;
  }

  /** Buttons stay the same elements while a row lives: a click may be under way. */
  fillActions(cell, order) {
    const actions = this.actions(order);
    const names = actions.map(({ name }) => name).join();
    if (cell.dataset.names !== names) {
      cell.dataset.names = names;
      cell.replaceChildren(...actions.map(({ name }) => {
        const press = () => this.actions(order).find((one) => one.name === name)?.work();
        return actionButton(name, `action.${name}`, press, { class: "small" });
      }));
    }
    actions.forEach(({ off }, place) => (cell.children[place].disabled = off === true));
  }

  fill({ node, cells }, order) {
    setAttribute(node, "data-client-order-id", order.client_order_id ?? "");
    setAttribute(node, "data-venue-order-id", order.venue_order_id ?? "");
    setAttribute(node, "data-status", order.status);
    setAttribute(node, "data-origin", order.origin ?? (order.client_order_id === null ? "foreign" : "person"));
    setAttribute(node, "data-venue", this.venue);
    setAttribute(node, "class", isWorking(order) ? "working" : "final");
    const origin = node.dataset.origin;
    const texts = [
      null, known("status", order.status), tickerOf(order.instrument_id), order.order_side === null ? "" : known("side", order.order_side),
      null, null, null, order.order_type === null ? "" : known("type", order.order_type), null,
      order.time_in_force === null ? "" : known("tif", order.time_in_force),
      origin === "strategy" && order.strategy_id ? order.strategy_id : t(`origin.${origin}`),
    ];
    setNumber(cells[0], order.ts_event_ms, timeOf(order.ts_event_ms));
    const numbers = { 4: order.quantity, 5: order.price, 6: order.filled_qty, 8: order.trigger_price };
    for (const [place, wire] of Object.entries(numbers)) setNumber(cells[place], wire);
    texts.forEach((text, place) => text !== null && setText(cells[place], text));
    cells[2].translate = cells[10].translate = false;
    cells[3].className = order.order_side ?? "";
    const said = order.client_order_id ?? order.venue_order_id;
    cells[1].title = said ?? "";
    this.fillActions(cells[11], order);
  }
}

/** The clock of a moment, with its date where that is another day. */
function timeOf(ms) {
  if (ms == null) return "";
  return dateOf(ms) === dateOf(isReplay() ? state.clock ?? ms : Date.now()) ? clockOf(ms) : shortMomentOf(ms);
}

/** The columns of a small table. */
export function smallTable(className, columns) {
  const body = make("tbody", {});
  const heads = columns.map((name) => make("th", { scope: "col", text: `column.${name}` }));
  const node = make("div", { class: "scroll", tabindex: "0", role: "group", label: "table" },
    make("table", { class: className }, make("thead", {}, make("tr", {}, ...heads)), body));
  return { node, body };
}

