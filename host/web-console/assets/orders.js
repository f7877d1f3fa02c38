// The orders that the page knows: by lists of the venue, and by events in between.
// A row's key is its origin and its client order id, or the venue's number for orders placed elsewhere.

import { listen, tell } from "./bus.js";
import { draw } from "./frames.js";
import { ask, isReplay, state } from "./state.js";

/** Lists are asked for again after what an event does not tell in full, not more often than this. */
const LIST_EVERY_MS = 1_000;
/** A long list is asked for less often: so many times as long as it took. */
const LIST_SHARE = 10;

export const FINAL = new Set(["FILLED", "CANCELED", "EXPIRED", "REJECTED"]);
/** Ends that are told once; a rejection may be one of a change. */
const ENDED = new Set(["FILLED", "CANCELED", "EXPIRED"]);
const ORDER_EVENTS = ["OrderSubmitted", "OrderAccepted", "OrderRejected", "OrderPendingUpdate", "OrderUpdated",
  "OrderPendingCancel", "OrderCanceled", "OrderExpired", "OrderFilled"];

/** The rows of a venue, by their keys and by the venue's numbers. */
class Book {
  constructor() {
    this.rows = new Map();
    this.numbers = new Map();
    /** Those that work, or did when somebody last looked. */
    this.open = new Set();
  }

  working() {
    for (const row of this.open) if (!isWorking(row)) this.open.delete(row);
    return this.open;
  }

  /** The row of an event or of a row of a list. */
  find(of) {
    return this.rows.get(keyOf(of)) ?? (of.venue_order_id == null ? undefined : this.numbers.get(of.venue_order_id));
  }

  put(row) {
    const before = this.rows.get(keyOf(row));
    if (before !== undefined && before !== row) this.open.delete(before);
    this.rows.set(keyOf(row), row);
    if (isWorking(row)) this.open.add(row);
    this.number(row);
  }

  number(row) {
    if (row.venue_order_id != null) this.numbers.set(row.venue_order_id, row);
  }

  remove(row) {
    this.rows.delete(keyOf(row));
    this.open.delete(row);
  }

  clear() {
    this.rows.clear();
    this.numbers.clear();
    this.open.clear();
  }
}

/** Rows by venue (`replay`, `web_broker`, `paper`) and key, in their order. */
const books = new Map();
const ownOrders = new Map();
let tick = 0;

const bookOf = (venue) => {
  if (!books.has(venue)) books.set(venue, new Book());
  return books.get(venue);
};

/** The venue that this page's tickets send to. */
export const orderVenue = () => (isReplay() ? "replay" : "web_broker");

export const isWorking = (order) => !FINAL.has(order.status) && order.status !== "INITIALIZED";

const originOf = (row) => row.origin ?? (row.client_order_id === null ? "foreign" : "person");
const keyOf = (row) => (row.client_order_id != null ? `${originOf(row)} ${row.client_order_id}` : `number ${row.venue_order_id}`);

/** All rows of a venue in the order in which they came. */
export const ordersOf = (venue) => [...bookOf(venue).rows.values()];

/** What an order that this page sends looks like; events tell less. */
export function knowOwn(order) {
  ownOrders.set(order.client_order_id, order);
}

function changed() {
  draw(tellChanged);
}

function tellChanged() {
  tell("orders");
}

function fresh(event) {
  const own = ownOrders.get(event.client_order_id);
  return {
    client_order_id: event.client_order_id ?? null, venue_order_id: event.venue_order_id ?? null,
    instrument_id: event.instrument_id ?? own?.instrument_id ?? "", order_side: event.order_side ?? own?.order_side ?? null,
    order_type: own?.order_type ?? null, quantity: own?.quantity ?? null, filled_qty: "0", leaves_qty: own?.quantity ?? null,
    price: own?.price ?? null, trigger_price: own?.trigger_price ?? null, time_in_force: own?.time_in_force ?? null,
    expire_time_ns: own?.expire_time_ns ?? null, status: "SUBMITTED", ts_event_ms: event.ts_event_ms,
    origin: event.origin ?? null, strategy_id: event.strategy_id ?? null, partial: own === undefined,
  };
}

const STATUS = {
  OrderSubmitted: "SUBMITTED", OrderAccepted: "ACCEPTED", OrderPendingUpdate: "PENDING_UPDATE", OrderUpdated: "ACCEPTED",
  OrderPendingCancel: "PENDING_CANCEL", OrderCanceled: "CANCELED", OrderExpired: "EXPIRED",
};

/** Takes an event of an order into its row. */
function take(event) {
  const venue = event.venue ?? orderVenue();
  const book = bookOf(venue);
  let row = book.find(event);
  if (row === undefined) {
    if (event.event === "OrderRejected" || (event.client_order_id == null && event.venue_order_id == null)) return;
    row = fresh(event);
    book.put(row);
  }
  row.touched = ++tick;
  renewed(row);
  if (event.venue_order_id != null && row.venue_order_id !== event.venue_order_id) {
    row.venue_order_id = event.venue_order_id;
    book.number(row);
  }
  if (event.event === "OrderFilled") fill(row, event);
  else if (event.event === "OrderRejected") reject(row, event);
  else if (!FINAL.has(row.status)) row.status = STATUS[event.event];
  if (event.event === "OrderUpdated") update(row, event);
  row.ended = row.ended === true || ENDED.has(row.status);
  if (row.partial) askSoon(venue);
  changed();
}

function fill(row, event) {
  row.filled_qty = event.cumulative_qty;
  row.leaves_qty = event.leaves_qty;
  if (event.leaves_qty === "0") row.status = "FILLED";
  else if (row.status === "SUBMITTED") row.status = "ACCEPTED";
}

/** A refused order has ended; a refused change or cancel has not, and the list says how it stands. */
function reject(row, event) {
  if (row.status === "SUBMITTED" || row.status === "INITIALIZED") row.status = "REJECTED";
  askSoon(event.venue ?? orderVenue());
}

function update(row, { quantity, price, trigger_price, expire_time_ns }) {
  Object.assign(row, { quantity, price, trigger_price, expire_time_ns });
  row.leaves_qty = String(BigInt(quantity) - BigInt(row.filled_qty));
}

const isSame = (one, other) => one === other || JSON.stringify(one) === JSON.stringify(other);

let versions = 0;

/** Marks a row as changed, so that tables draw it anew. */
export function renewed(row) {
  row.version = ++versions;
  return row;
}

/** Takes a venue's list. What an event has told since the question is newer. */
function takeList(venue, orders, asked) {
  const book = bookOf(venue);
  for (const listed of orders) {
    const known = book.find(listed);
    if (known !== undefined && known.touched > asked) {
      fillIn(known, listed);
      continue;
    }
    // A list may be older than what an event has told: an order that has ended does not work again.
    if (known?.ended === true && !FINAL.has(listed.status)) continue;
    if (known === undefined) {
      book.put(renewed({ ...listed, touched: asked, partial: false }));
      continue;
    }
    if (!known.partial && Object.entries(listed).every(([name, value]) => isSame(known[name], value))) continue;
    // The row stays the same one. A number that was known before its id is the same order.
    book.remove(known);
    Object.assign(known, listed, { touched: asked, partial: false });
    book.put(renewed(known));
  }
  changed();
}

/** What does not change while an order lives. */
function fillIn(known, { order_type, quantity, price, trigger_price, time_in_force, expire_time_ns, venue_order_id, ts_event_ms }) {
  if (!known.partial) return;
  Object.assign(known, { order_type, quantity, price, trigger_price, time_in_force, expire_time_ns, venue_order_id, ts_event_ms, partial: false });
  renewed(known);
}

/** Asks for a venue's list now; gives its orders. Throws `NoAnswer`. */
export async function askList(venue = orderVenue()) {
  const asked = tick;
  const answer = await ask("GetOrderList", { venue });
  takeList(venue, answer.orders, asked);
  tell("order-list", { venue, orders: answer.orders });
  return answer.orders;
}

const plans = new Map();

/** Asks for a venue's list soon: what an event told is not all. */
export function askSoon(venue) {
  if (venue === "paper") return askSessionSoon();
  const plan = plans.get(venue) ?? { timer: null, pause: LIST_EVERY_MS };
  plans.set(venue, plan);
  if (plan.timer !== null) return;
  plan.timer = setTimeout(async () => {
    const begun = performance.now();
    await askList(venue).catch(() => {});
    plan.pause = Math.max(LIST_EVERY_MS, (performance.now() - begun) * LIST_SHARE);
    plan.timer = null;
  }, plan.pause);
}

/** Orders on paper have no list of their own: the session has them. */
let sessionTimer = null;

function askSessionSoon() {
  if (sessionTimer !== null) return;
  sessionTimer = setTimeout(async () => {
    sessionTimer = null;
    const asked = tick;
    const session = await ask("GetSession").catch(() => null);
    if (session !== null && state.run?.kind === "paper") takeSession(session, "paper", asked);
  }, LIST_EVERY_MS);
}

function takeSession(session, venue, asked = 0) {
  takeList(venue, session.orders ?? [], asked);
  for (const order of session.orders_submitted ?? []) {
    if (bookOf(venue).find(order) !== undefined) continue;
    const row = { venue_order_id: null, filled_qty: "0", leaves_qty: order.quantity, ...order, touched: asked, partial: false };
    bookOf(venue).put(renewed(row));
  }
  changed();
}

for (const name of ORDER_EVENTS) listen(name, (event) => (state.synced || !isReplay()) && take(event));

listen("emptied", () => {
  books.clear();
  changed();
});

listen("run-began", (run) => {
  if (run.kind === "live") return;
  bookOf(run.kind).clear();
  changed();
});

/** Whether the orders of a live session are those of a run on paper; a run that has ended names no account. */
const isOnPaper = ({ account_id, execution }) =>
  account_id === "PAPER" || (account_id == null && execution != null && execution.model !== "live");

listen("run-ended", () => {
  if (isReplay() && ordersOf("replay").some((row) => row.partial)) askList().catch(() => {});
});

listen("synced", (session) => {
  // An answer to a question about paper orders is no new connection.
  books.clear();
  ownOrders.clear();
  if (isReplay()) takeSession(session, "replay");
  else if (isOnPaper(session)) takeSession(session, "paper");
  if (session.run_id != null || session.last_run != null || !isReplay()) askList().catch(() => {});
});

// The list of a broker can be read from the login on.
listen("VenueReady", ({ venue }) => venue === "web_broker" && askList(venue).catch(() => {}));

/** Lines of a chart: an instrument's orders that work, at their limit or trigger. */
export function workingLines(instrumentId) {
  const lines = [];
  for (const venue of isReplay() ? ["replay"] : ["web_broker", "paper"]) {
    for (const row of bookOf(venue).working()) {
      if (row.instrument_id !== instrumentId) continue;
      const price = row.price ?? row.trigger_price;
      if (price == null) continue;
      lines.push({ price: Number(price), side: row.order_side, label: `${row.order_side} ${row.leaves_qty ?? row.quantity ?? ""}` });
    }
  }
  return lines;
}

