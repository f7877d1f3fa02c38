// The pane with the orders of the venue: change, cancel, cancel all.

import { listen, tell } from "./bus.js";
import { openDialog, retype } from "./dialogs.js";
import { actionButton, dateOf, field, make, number } from "./dom.js";
import { units, worth } from "./decimal.js";
import { draw, drawing, noLongerDrawing } from "./frames.js";
import { instrument } from "./instrument.js";
import { OrderTable } from "./order_table.js";
import { askList, FINAL, isWorking, orderVenue } from "./orders.js";
import { makePane } from "./panes.js";
import { refusalParts } from "./refusals.js";
import { ask, isReplay } from "./state.js";
import { mustRetype, whyNot, wordsOf } from "./ticket.js";
import { part, toast } from "./toasts.js";
import { t } from "./language.js";

const PENDING = new Set(["SUBMITTED", "PENDING_UPDATE", "PENDING_CANCEL"]);

/** Orders with a command of this page on its way. */
const busy = new Set();

export function makeOrderListPane(close) {
  const venue = orderVenue();
  const pane = makePane("order_list", { title: isReplay() ? "pane.replayOrders" : "pane.order_list", close });
  if (isReplay()) pane.body.append(make("p", { "data-banner": "replay", class: "banner", text: "banner.replayOrders" }));
  const table = new OrderTable(venue, (order) => actionsOf(venue, order));
  const all = actionButton("cancel-all", "action.cancel-all", () => cancelAll(venue));
  pane.tools.append(all);
  pane.body.append(table.node);
  table.told = (count) => (pane.dataset.total = String(count));
  const job = drawing(() => (all.disabled = whyNot() !== null));
  pane.close = () => {
    table.close();
    noLongerDrawing(job);
  };
  const again = () => {
    draw(job);
    table.soon();
  };
  for (const name of ["busy", "venue", "session-state", "connection"]) listen(name, again);
  return Object.assign(pane, { table });
}

/** People reach the orders of strategies at the broker by number, those of a replay not at all. */
function actionsOf(venue, order) {
  if (!isWorking(order) || (venue === "replay" && order.origin === "strategy")) return [];
  const off = whyNot() !== null || PENDING.has(order.status) || busy.has(order);
  return [{ name: "modify", work: () => modify(venue, order), off }, { name: "cancel", work: () => cancel(venue, order), off }];
}

/** How a command names an order: strategies' and foreign ones by the venue's number. */
function nameOf(order) {
  const person = order.client_order_id !== null && order.origin !== "strategy";
  return person ? { client_order_id: order.client_order_id } : { client_order_id: null, venue_order_id: order.venue_order_id };
}

/** Sends a command about an order; the list says how the order stands after a refusal. */
async function command(op, venue, order, fields) {
  if (busy.has(order) || whyNot() !== null) return;
  busy.add(order);
  tell("busy");
  document.activeElement?.blur();
  try {
    await ask(op, { venue, ...nameOf(order), ...fields });
  } catch (error) {
    const event = error.event?.event;
    // Rejections of known orders are told by their events, and the question for the password by its dialog.
    const isTold = event === "SecondPasswordRequired" || (event === "OrderRejected" && error.event.client_order_id != null);
    if (!isTold) toast("reject", refusalParts(error), order.client_order_id ?? undefined);
  }
  busy.delete(order);
  tell("busy");
  askList(venue).catch(() => {});
}

const cancel = (venue, order) => command("CancelOrder", venue, order, {});

/** What changes an order: only fields that are other than before. */
async function modify(venue, order) {
  const input = (name, value, more) => make("input", { name, value: value ?? "", autocomplete: "off", inputmode: "decimal", ...more });
  const controls = { new_quantity: input("new_quantity", order.quantity) };
  if (order.price != null) controls.new_price = input("new_price", order.price);
  if (order.trigger_price != null) controls.new_trigger_price = input("new_trigger_price", order.trigger_price);
  const day = order.expire_time_ns == null ? null : dateOf(order.expire_time_ns / 1_000_000);
  if (day !== null) controls.new_expire_time_ns = input("new_expire_time_ns", day, { type: "date" });
  const before = { new_quantity: order.quantity, new_price: order.price, new_trigger_price: order.trigger_price, new_expire_time_ns: day };
  const read = () => {
    const change = {};
    for (const [name, control] of Object.entries(controls)) {
      const value = control.value.trim();
      if (value === "" || value === before[name]) continue;
      change[name] = name === "new_expire_time_ns" ? Date.parse(`${value}T23:59:59+09:00`) * 1_000_000 : value;
    }
    return change;
  };
  const right = (change) => Object.entries(change).every(([name, value]) =>
    name === "new_quantity" ? /^[1-9]\d*$/.test(value) : name === "new_expire_time_ns" || units(value) > 0n);
  const confirmed = await openDialog("modify", {
    title: "dialog.modify",
    content: [make("p", {}, wordsOf(order)), ...Object.entries(controls).map(([name, control]) => field(name, control))],
    ready: () => Object.keys(read()).length > 0 && right(read()),
    first: controls.new_quantity,
  });
  if (!confirmed) return;
  const change = read();
  const quantity = change.new_quantity ?? order.quantity;
  if (mustRetype(worthAfter(order, change, quantity)) && !(await retype(quantity, make("p", {}, wordsOf({ ...order, quantity, price: change.new_price ?? order.price }))))) return;
  command("ModifyOrder", venue, order, { change });
}

/** What an order is worth after a change; null where nobody knows. */
function worthAfter(order, change, quantity) {
  const price = change.new_price ?? order.price ?? instrument(orderVenue(), order.instrument_id)?.upper_limit;
  const at = units(price ?? "");
  return at === null ? null : worth(quantity, at);
}

/** Cancels what a list that was asked for at this moment shows, after a question that counts it. */
async function cancelAll(venue) {
  const says = make("p", { text: "dialog.asking" });
  let count = null;
  const dialog = openDialog("cancel-all", { title: "dialog.cancelAll", content: [says], confirm: "action.cancel-all", ready: () => count !== null && count > 0 });
  const node = document.querySelector("dialog[data-dialog=cancel-all]");
  askList(venue).then((orders) => {
    const open = orders.filter((order) => !FINAL.has(order.status) && !(venue === "replay" && order.origin === "strategy"));
    count = open.length;
    delete says.dataset.text;
    says.replaceChildren(number("b", count), " ", t("dialog.cancelAllCount", { count }));
    node.dataset.count = String(count);
    if (!isReplay()) says.after(make("p", { class: "hint", text: "dialog.cancelAllForeign" }));
    node.recheck();
  }, (error) => {
    delete says.dataset.text;
    says.replaceChildren(...refusalParts(error));
  });
  if (!(await dialog) || whyNot() !== null) return;
  try {
    const result = await ask("CancelAllOrders", { venue });
    toast("info", [t("canceledAll"), " ", part(result.canceled_count), " ", t("canceledFailed"), " ", part(result.failed_count)]);
  } catch (error) {
    if (error.event?.event !== "SecondPasswordRequired") toast("reject", refusalParts(error));
  }
  askList(venue).catch(() => {});
}

