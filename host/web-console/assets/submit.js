// Sending an order: it is written down first, and leaves once for each click on Send.

import { listen, tell } from "./bus.js";
import { askList, askSoon, knowOwn } from "./orders.js";
import { onResend } from "./password.js";
import { drop, pendingOf, remember, setStage, unknownOrders } from "./pending.js";
import { NoAnswer } from "./socket.js";
import { ask, isReady, requestId } from "./state.js";

/** While an answer is missing the list is asked for this often. */
const LIST_EVERY_MS = 5_000;

/** Sends a reviewed order. Its answer is told as `order-answered`. */
export function submit(venue, order) {
  const id = requestId();
  knowOwn(order);
  remember(venue, id, order);
  return leave(venue, order, id);
}

/** Orders that wait for the second password; they have not left. */
const asked = new Map();

onResend(({ venue, order, request_id }) => {
  asked.delete(order.client_order_id);
  leave(venue, order, request_id);
});

// Whoever cancels the question gets the rejection as an event.
listen("OrderRejected", (event) => {
  const order = asked.get(event.client_order_id);
  if (order === undefined) return;
  asked.delete(event.client_order_id);
  tell("order-answered", { order, error: new NoAnswer("refused", event) });
});

listen("connection", (connection) => {
  if (connection === "ready") return;
  for (const order of asked.values()) tell("order-answered", { order, error: new NoAnswer("not_sent") });
  asked.clear();
});

async function leave(venue, order, id) {
  let error = null;
  try {
    const result = await ask("SubmitOrder", { venue, order }, id);
    // Another order has this id, or the same one is on its way: the list tells.
    if (result.outcome !== "Created") setStage(order.client_order_id, "unknown");
  } catch (refused) {
    error = refused;
    const event = refused.event?.event;
    if (event === "SecondPasswordRequired" && pendingOf(order.client_order_id)?.stage === "asked") {
      asked.set(order.client_order_id, order);
      return;
    }
    // The engine says that it did not take the command.
    if (event === "EngineBusy") drop(order.client_order_id);
    else if (event !== "OrderRejected") setStage(order.client_order_id, "unknown");
  }
  if (pendingOf(order.client_order_id)?.stage === "unknown") askSoon(venue);
  else if (error !== null) askList(venue).catch(() => {});
  tell("order-answered", { order, error });
}

setInterval(() => {
  if (!isReady()) return;
  for (const venue of new Set(unknownOrders().map((one) => one.venue))) askSoon(venue);
}, LIST_EVERY_MS);
