// Orders of this tab whose answer is not known. They lie in sessionStorage before they leave, and go only by
// OrderAccepted, OrderRejected, or a list that shows the order.

import { listen, tell } from "./bus.js";
import { isReplay, state } from "./state.js";

const KEY = "kumiki.pending";

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

/** `{venue, request_id, order, stage, run_id}`; stage is sent, asked (for the second password) or unknown. */
let pending = read();

function keep() {
  sessionStorage.setItem(KEY, JSON.stringify(pending));
  tell("pending");
}

// A reload ends every wait for an answer. An order that waited for the password has not left.
pending = pending.filter(({ stage }) => stage !== "asked").map((one) => ({ ...one, stage: "unknown" }));
sessionStorage.setItem(KEY, JSON.stringify(pending));

export const pendingOrders = () => pending;

export const pendingOf = (id) => pending.find(({ order }) => order.client_order_id === id);

/** Those whose answer is missing. */
export const unknownOrders = () => pending.filter(({ stage }) => stage === "unknown");

/** Those that may be at the broker already while an equal side of the same instrument is to be sent. */
export const mayBeThere = (venue, { instrument_id, order_side }) => pending.filter((one) =>
  one.venue === venue && one.stage !== "asked" && one.order.instrument_id === instrument_id && one.order.order_side === order_side);

/** Writes an order down; it leaves after that. */
export function remember(venue, requestId, order) {
  pending.push({ venue, request_id: requestId, order, stage: "sent", run_id: state.run?.run_id ?? null, mode: state.mode });
  keep();
}

export function setStage(id, stage) {
  const one = pendingOf(id);
  if (one === undefined || one.stage === stage) return;
  one.stage = stage;
  keep();
}

/** The venue knows the order, or has refused it. */
export function drop(id) {
  const before = pending.length;
  pending = pending.filter(({ order }) => order.client_order_id !== id);
  if (pending.length !== before) keep();
}

const isPersons = (event) => event.origin !== "strategy";

for (const name of ["OrderAccepted", "OrderRejected"]) {
  listen(name, (event) => isPersons(event) && event.client_order_id != null && ends(event) && drop(event.client_order_id));
}

/** A refusal of a change is none of the order. */
function ends(event) {
  const one = pendingOf(event.client_order_id);
  return one !== undefined && (event.event === "OrderAccepted" || event.request_id == null || event.request_id === one.request_id);
}

listen("order-list", ({ orders }) => {
  if (pending.length === 0) return;
  for (const row of orders) if (row.client_order_id !== null && isPersons(row)) drop(row.client_order_id);
});

// An order of a replay ends with its run: no other run has it.
function dropOldRuns(runId) {
  if (!isReplay()) return;
  const left = pending.filter((one) => one.mode !== "replay" || one.run_id === runId);
  if (left.length === pending.length) return;
  pending = left;
  keep();
}

listen("emptied", () => dropOldRuns(null));
listen("run-began", (run) => dropOldRuns(run.run_id));
listen("synced", (session) => dropOldRuns(session.run_id ?? null));

listen("connection", (connection) => {
  if (connection === "ready") return;
  const before = JSON.stringify(pending);
  pending = pending.filter(({ stage }) => stage !== "asked").map((one) => ({ ...one, stage: "unknown" }));
  if (JSON.stringify(pending) !== before) keep();
});
