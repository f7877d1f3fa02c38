// Positions, and the money of the account.

import { listen } from "./bus.js";
import { make, setNumber } from "./dom.js";
import { draw, drawing } from "./frames.js";
import { orderVenue } from "./orders.js";
import { smallTable } from "./order_table.js";
import { makePane } from "./panes.js";
import { ask, isReplay, isRunning, state } from "./state.js";
import { venueOf } from "./venues_state.js";

const FIELDS = ["qty", "avg_open_price", "market_value", "unrealized_pnl"];
/** Values move with the market; while a run goes on they are asked for this often. */
const EVERY_MS = 1_000;
const LIVE_EVERY_MS = 5_000;
/** Each question delays an order that comes at the same moment. */
const LIVE_RENEW_MS = 30_000;

/** Rows as the venue tells them. */
let rows = [];
const nodes = new Map();
let body = null;

export function makePositionsPane() {
  const pane = makePane("positions");
  const table = smallTable("positions", ["instrument", ...FIELDS]);
  body = table.body;
  pane.body.append(table.node);
  drawing(render);
  return pane;
}

const keyOf = (row) => [row.instrument_id, row.side, row.position_type, row.tategyoku_id].join(" ");

function render() {
  rows.sort((one, other) => keyOf(one).localeCompare(keyOf(other)));
  const wanted = new Set(rows.map(keyOf));
  for (const [key, node] of nodes) {
    if (wanted.has(key)) continue;
    node.remove();
    nodes.delete(key);
  }
  let place = 0;
  for (const row of rows) {
    const key = keyOf(row);
    if (!nodes.has(key)) {
      const cells = FIELDS.map((name) => make("td", { "data-field": name, class: "right" }));
      nodes.set(key, make("tr", { "data-instrument-id": row.instrument_id, "data-side": row.side },
        make("td", { translate: "no" }, row.instrument_id), ...cells));
    }
    if (body.children[place] !== nodes.get(key)) body.insertBefore(nodes.get(key), body.children[place] ?? null);
    place += 1;
    for (const name of FIELDS) setNumber(nodes.get(key).querySelector(`[data-field=${name}]`), row[name] ?? null);
  }
}

listen("PositionsUpdated", (event) => {
  if (event.venue !== orderVenue()) return;
  rows = event.positions.filter(({ qty }) => qty !== "0");
  draw(render);
});

listen("PositionOpened", (event) => {
  if (event.venue !== "replay" || !state.synced) return;
  const row = { instrument_id: event.instrument_id, qty: event.opened_qty, avg_open_price: event.avg_open_price, side: event.side, position_type: "cash" };
  rows = [...rows.filter((one) => one.instrument_id !== event.instrument_id), row];
  soon();
  draw(render);
});

listen("PositionClosed", (event) => {
  if (event.venue !== "replay" || !state.synced) return;
  rows = rows.filter((one) => one.instrument_id !== event.instrument_id);
  draw(render);
});

function takeSession(session) {
  rows = isReplay() ? session.positions.filter(({ qty }) => qty !== "0") : [];
  draw(render);
}

listen("synced", (session) => {
  takeSession(session);
  if (!isReplay()) askAccount();
});

for (const name of ["emptied", "run-began"]) {
  listen(name, () => {
    if (!isReplay()) return;
    rows = [];
    draw(render);
  });
}

let timer = null;

/** Asks for the values of positions soon. */
function soon() {
  if (timer !== null) return;
  timer = setTimeout(async () => {
    timer = null;
    await ask("GetPositions", { venue: orderVenue() }).catch(() => {});
    if (isReplay() && isRunning() && rows.length > 0) soon();
  }, EVERY_MS);
}

listen("synced", () => isReplay() && isRunning() && rows.length > 0 && soon());
listen("session-ended", (session) => isReplay() && takeSession(session));

let asking = null;

/** Asks the broker for buying power and positions, not too often. */
function askAccount() {
  if (asking !== null || venueOf("web_broker").state !== "Ready" || venueOf("web_broker").frozen) return;
  ask("GetBuyingPower", { venue: "web_broker" }).catch(() => {});
  ask("GetPositions", { venue: "web_broker" }).catch(() => {});
  asking = setTimeout(() => (asking = null), LIVE_EVERY_MS / 2);
}

// Values move with the market, and orders are placed elsewhere too.
setInterval(() => {
  if (!isReplay() && state.synced && rows.length > 0 && !document.hidden) askAccount();
}, LIVE_RENEW_MS);

let later = null;

function accountSoon() {
  if (isReplay() || later !== null) return;
  later = setTimeout(() => {
    later = null;
    asking = null;
    askAccount();
  }, EVERY_MS);
}

for (const name of ["OrderFilled", "OrderAccepted", "OrderCanceled", "VenueReady"]) listen(name, accountSoon);
listen("venue", (venue) => venue === "web_broker" && state.money.buying_power === null && askAccount());
