// The order ticket. Review shows an order, Send sends exactly that; a change of a field ends the review.

import { listen } from "./bus.js";
import { units, decimal, stepped, steppedLots, worth } from "./decimal.js";
import { openedDialog, retype } from "./dialogs.js";
import { actionButton, choice, clockOf, field, foreign, instrumentOf, make, number, setAttribute, setText } from "./dom.js";
import { draw, drawing } from "./frames.js";
import { instrument } from "./instrument.js";
import { applyTexts, t } from "./language.js";
import { orderVenue } from "./orders.js";
import { makePane } from "./panes.js";
import { mayBeThere, pendingOf, unknownOrders } from "./pending.js";
import { refusalParts } from "./refusals.js";
import { isProduction, isReplay, isRunning, mayAct, state } from "./state.js";
import { submit } from "./submit.js";
import { venueOf } from "./venues_state.js";

/** After an answer a review is taken only when this has passed. */
const REST_MS = 1_000;
/** A click so near to that on Review is none on Send, wherever that lies now. */
const SAME_PLACE_PX = 8;
const TYPES = ["MARKET", "LIMIT", "STOP_MARKET", "STOP_LIMIT"];
const TIMES = ["DAY", "GTD", "AT_THE_OPEN", "AT_THE_CLOSE"];
const MARGIN_TAGS = {
  cash_margin: ["cash", "margin_credit_new", "margin_credit_repay", "margin_general_new", "margin_general_repay"],
  close_action: ["physical_settle_buy", "physical_settle_sell"],
};
const CASH_TAGS = { account_type: ["specific", "general", "nisa", "nisa_growth"], close_strategy: ["funari"] };

const hasPrice = (type) => type === "LIMIT" || type === "STOP_LIMIT";
const hasTrigger = (type) => type === "STOP_MARKET" || type === "STOP_LIMIT";

/** The last moment of a day in Japan, in ns; whole seconds, so that a number has it exactly. */
const endOfDayNs = (date) => Date.parse(`${date}T23:59:59+09:00`) * 1_000_000;

let form = null;
let parts = null;
/** What was reviewed: `{order, worth}`; null while fields are edited. */
let review = null;
/** The order that is on its way: its answer is waited for. */
let leaving = null;
let restsUntil = 0;
/** The click on Review; null where a key did it. */
let reviewClick = null;

/** The ticket's pane. */
export function makeTicketPane() {
  const pane = makePane("ticket");
  if (isReplay()) pane.body.append(make("p", { "data-banner": "replay", class: "banner", text: "banner.replayOrders" }));
  pane.body.append(makeForm());
  pane.body.append(parts.outcome, parts.unknown);
  drawing(render);
  for (const name of ["instrument", "money", "pending", "venue", "session-state"]) listen(name, () => draw(render));
  listen("order-answered", answered);
  listen("connection", () => endReview());
  return pane;
}

function makeForm() {
  const input = (name, more = {}) => make("input", { name, autocomplete: "off", ...more });
  const fields = {
    instrument_id: input("instrument_id", { spellcheck: "false", translate: "no", list: "instruments" }),
    order_side: choice("order_side", ["BUY", "SELL"], (word) => `side.${word}`),
    order_type: choice("order_type", TYPES, (word) => `type.${word}`),
    quantity: input("quantity", { inputmode: "numeric", value: "100" }),
    price: input("price", { inputmode: "decimal" }),
    trigger_price: input("trigger_price", { inputmode: "decimal" }),
    time_in_force: choice("time_in_force", TIMES, (word) => `tif.${word}`),
    expire_time_ns: input("expire_time_ns", { type: "date" }),
    trigger_type: choice("trigger_type", ["", "LAST"]),
    post_only: input("post_only", { type: "checkbox" }),
    reduce_only: input("reduce_only", { type: "checkbox" }),
    tags: input("tags", { placeholder: "tagsHint", translate: "no" }),
  };
  const tags = { ...(isReplay() ? {} : MARGIN_TAGS), ...CASH_TAGS };
  for (const [name, words] of Object.entries(tags)) fields[name] = choice(name, ["", ...words]);
  if (!isReplay()) fields.tategyoku = input("tategyoku", { translate: "no" });
  parts = {
    fields,
    name: foreign("span", "", { class: "name" }),
    problem: make("p", { class: "problem", role: "alert", hidden: true }),
    estimate: make("p", { "data-role": "estimate", class: "estimate" }),
    locked: make("p", { class: "problem", hidden: true }),
    state: make("p", { class: "hint", tabindex: "-1", "data-role": "ticket-state" }),
    summary: make("div", { class: "review", hidden: true }),
    outcome: make("div", { class: "outcome", "data-role": "outcome" }),
    unknown: make("ul", { class: "unknown", "data-role": "unknown", label: "unknownOrders", hidden: true }),
  };
  form = make("form", { "data-role": "ticket", "data-venue": orderVenue(), class: "fields", novalidate: true });
  form.append(editing(), parts.summary, parts.estimate, parts.locked, parts.state);
  form.addEventListener("input", () => changedByHand());
  form.addEventListener("change", () => changedByHand());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (review === null) beginReview();
  });
  return form;
}

function editing() {
  const { fields } = parts;
  const more = make("details", { class: "wide" }, make("summary", { text: "moreFields" }));
  const box = (name) => make("label", { class: "check" }, fields[name], make("span", { text: name }));
  const rest = make("div", { class: "fields" }, field("trigger_type", fields.trigger_type));
  for (const name of ["cash_margin", "account_type", "close_action", "close_strategy", "tategyoku"]) {
    if (fields[name] !== undefined) rest.append(field(name, fields[name]));
  }
  rest.append(field("tags", fields.tags), box("post_only"), box("reduce_only"));
  more.append(rest);
  const step = (name, key) => field(key, fields[name], { "data-steps": name });
  fields.quantity.addEventListener("keydown", (event) => stepByKey(event, "quantity"));
  for (const name of ["price", "trigger_price"]) fields[name].addEventListener("keydown", (event) => stepByKey(event, name));
  parts.review = make("button", { type: "submit", "data-action": "review", text: "review", class: "main" });
  parts.review.addEventListener("click", (event) => (reviewClick = event.detail > 0 ? event : null));
  parts.edit = make("div", { class: "fields edit" },
    make("div", { class: "wide named" }, field("instrument", fields.instrument_id), parts.name),
    field("side", fields.order_side), field("type", fields.order_type), step("quantity", "quantity"),
    step("price", "price"), step("trigger_price", "trigger_price"), field("tif", fields.time_in_force),
    field("expires", fields.expire_time_ns), more, parts.problem, make("div", { class: "actions wide" }, parts.review));
  return parts.edit;
}

/** Up and down move a price by its step, shares by a lot. */
function stepByKey(event, name) {
  const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  const control = parts.fields[name];
  const about = instrument(orderVenue(), id());
  if (name === "quantity") control.value = steppedLots(about?.lot ?? 1, control.value, by);
  else {
    const price = units(control.value) ?? units(about?.base_price ?? "");
    if (price === null) return;
    control.value = decimal(stepped(about?.ticks, price, by));
  }
  changedByHand();
}

const id = () => instrumentOf(parts.fields.instrument_id.value);

function changedByHand() {
  parts.problem.hidden = true;
  if (review !== null) endReview();
  draw(render);
}

/** Fills fields in from elsewhere, like a click on a board; that sends nothing. A price makes a limit order. */
export function fillTicket(values) {
  if (form === null || leaving !== null) return;
  const type = parts.fields.order_type;
  if (values.price !== undefined && !hasPrice(type.value)) type.value = type.value === "STOP_MARKET" ? "STOP_LIMIT" : "LIMIT";
  for (const [name, value] of Object.entries(values)) parts.fields[name].value = value;
  changedByHand();
}

/** The instrument that the ticket is about, where it has none yet. */
export function suggestInstrument(instrumentId) {
  if (form === null || parts.fields.instrument_id.value !== "") return;
  parts.fields.instrument_id.value = instrumentId;
  draw(render);
}

/** Tags as the wire wants them. */
function tagsOf() {
  const { fields } = parts;
  const tags = [];
  for (const name of ["cash_margin", "account_type", "close_action", "close_strategy"]) {
    if (fields[name] !== undefined && fields[name].value !== "") tags.push(`${name}=${fields[name].value}`);
  }
  for (const number of (fields.tategyoku?.value ?? "").split(/[\s,]+/)) if (number !== "") tags.push(`tategyoku=${number}`);
  tags.push(...fields.tags.value.split(/[\s,]+/).filter((tag) => tag !== ""));
  return tags;
}

/** The order that the fields say, without its id; or the field that is wrong. */
function readFields() {
  const { fields } = parts;
  const type = fields.order_type.value;
  const price = (name) => fields[name].value.trim();
  const wrong = (name, key) => ({ wrong: name, key });
  if (id() === "") return wrong("instrument_id", "problem.instrument");
  if (!/^[1-9]\d*$/.test(fields.quantity.value.trim())) return wrong("quantity", "problem.quantity");
  for (const [name, wanted] of [["price", hasPrice(type)], ["trigger_price", hasTrigger(type)]]) {
    if (wanted && !(units(price(name)) > 0n)) return wrong(name, "problem.price");
  }
  if (fields.time_in_force.value === "GTD" && fields.expire_time_ns.value === "") return wrong("expire_time_ns", "problem.expires");
  const tags = tagsOf();
  const order = {
    instrument_id: id(), order_side: fields.order_side.value, order_type: type, quantity: fields.quantity.value.trim(),
    time_in_force: fields.time_in_force.value, post_only: fields.post_only.checked, reduce_only: fields.reduce_only.checked,
  };
  if (hasPrice(type)) order.price = price("price");
  if (hasTrigger(type)) order.trigger_price = price("trigger_price");
  if (hasTrigger(type) && fields.trigger_type.value !== "") order.trigger_type = fields.trigger_type.value;
  if (order.time_in_force === "GTD") order.expire_time_ns = endOfDayNs(fields.expire_time_ns.value);
  if (tags.length > 0) order.tags = tags;
  return { order };
}

/** What an order is worth in units: at its limit, a market order at the day's upper limit. Null: unknown. */
export function worthOf({ instrument_id, order_type, quantity, price }) {
  const limit = hasPrice(order_type) ? price : instrument(orderVenue(), instrument_id)?.upper_limit;
  const at = units(limit ?? "");
  return at === null || !/^\d+$/.test(quantity) ? null : worth(quantity, at);
}

/** Whether the quantity must be typed again. What is worth an unknown amount of real money must, too. */
export function mustRetype(amount) {
  return amount === null ? !isReplay() : amount > BigInt(state.confirmAboveJpy) * 10_000n;
}

/** Why no order can be sent now: the key of the reason, or null. */
export function whyNot() {
  if (state.connection !== "ready" || !state.synced) return "why.notConnected";
  if (!mayAct()) return "why.readOnly";
  if (isReplay()) return isRunning() ? null : "why.notRunning";
  const venue = venueOf("web_broker");
  if (venue.frozen) return "why.frozen";
  if (venue.state !== "Ready") return "why.notReady";
  return null;
}

/** Whether the second password is locked now. */
const isLocked = () => !isReplay() && venueOf("web_broker").second_password === "locked";

function beginReview() {
  if (leaving !== null || performance.now() < restsUntil || whyNot() !== null || isLocked()) return;
  const read = readFields();
  if (read.wrong !== undefined) {
    parts.problem.dataset.text = read.key;
    applyTexts(parts.problem);
    parts.problem.hidden = false;
    parts.fields[read.wrong].focus();
    return;
  }
  const order = Object.freeze({ client_order_id: crypto.randomUUID(), ...read.order });
  review = { venue: orderVenue(), order, worth: worthOf(order) };
  parts.outcome.replaceChildren();
  showReview();
}

function showReview() {
  const { venue, order } = review;
  const back = actionButton("back", "back", () => {
    endReview();
    parts.fields.quantity.focus();
  });
  const sending = actionButton("send", order.order_side === "BUY" ? "sendBuy" : "sendSell", sendReviewed, { class: `main ${order.order_side}` });
  // A key that is held down has asked for the review, not for this.
  sending.addEventListener("keydown", (event) => event.repeat && event.preventDefault());
  const may = mayBeThere(venue, order);
  const content = [make("h3", { text: "reviewTitle" })];
  if (isProduction(venue)) content.push(make("p", { class: "production", text: "banner.realMoney" }));
  content.push(summaryOf(venue, order));
  if (may.length > 0) {
    const sure = make("input", { type: "checkbox", name: "not_there" });
    sending.disabled = true;
    // The form's own listener would take it for a change of the order.
    for (const name of ["input", "change"]) sure.addEventListener(name, (event) => event.stopPropagation());
    sure.addEventListener("change", () => (sending.disabled = !sure.checked));
    content.push(make("div", { class: "ask", role: "alert", "data-role": "unknown-question" },
      make("p", { text: "ask.mayBeThere" }),
      make("ul", {}, ...may.map((one) => make("li", { "data-client-order-id": one.order.client_order_id }, wordsOf(one.order)))),
      make("label", { class: "check" }, sure, make("span", { text: "ask.notThere" }))));
  }
  parts.summary.replaceChildren(...content, make("div", { class: "actions" }, sending, back));
  parts.summary.hidden = false;
  parts.edit.hidden = true;
  (isProduction(venue) || sending.disabled ? back : sending).focus();
  draw(render);
}

const line = (key, ...values) => [make("dt", { text: key }), make("dd", {}, ...values)];

/** All fields of an order as a list. */
function summaryOf(venue, order) {
  const list = make("dl", {});
  list.append(...line("venue", make("span", { translate: "no" }, venue)),
    ...line("instrument", make("span", { translate: "no" }, order.instrument_id)),
    ...line("side", make("b", { class: order.order_side, text: `side.${order.order_side}` })),
    ...line("quantity", number("b", order.quantity)),
    ...line("type", make("span", { text: `type.${order.order_type}` })));
  if (order.price !== undefined) list.append(...line("price", number("b", order.price)));
  if (order.trigger_price !== undefined) list.append(...line("trigger_price", number("b", order.trigger_price)));
  list.append(...line("tif", make("span", { text: `tif.${order.time_in_force}` })));
  if (order.expire_time_ns !== undefined) list.append(...line("expires", number("span", order.expire_time_ns, {}, parts.fields.expire_time_ns.value)));
  if (order.tags !== undefined) list.append(...line("tags", foreign("span", order.tags.join(" "))));
  if (order.trigger_type !== undefined) list.append(...line("trigger_type", make("span", { translate: "no" }, order.trigger_type)));
  for (const name of ["post_only", "reduce_only"]) if (order[name]) list.append(...line(name, make("span", { text: "yes" })));
  return list;
}

/** An order in one line. */
export function wordsOf(order) {
  const node = make("span", {}, make("span", { translate: "no" }, order.instrument_id), " ",
    make("b", { class: order.order_side, text: `side.${order.order_side}` }), " ", number("b", order.quantity));
  // An event of another client's order does not tell its type; the list does.
  if (order.order_type != null) node.append(" ", make("span", { text: `type.${order.order_type}` }));
  if (order.price != null) node.append(" ", number("b", order.price));
  return node;
}

/** Whether a click is one more at the place of Review. */
const isOnReview = ({ detail, clientX, clientY }) => detail > 0 && reviewClick !== null
  && Math.hypot(clientX - reviewClick.clientX, clientY - reviewClick.clientY) < SAME_PLACE_PX;

/** Sends what the review shows, once. A second click on Review is none on Send. */
async function sendReviewed(event) {
  if (review === null || event.detail > 1 || isOnReview(event) || openedDialog() !== null || whyNot() !== null || isLocked()) return;
  const reviewed = review;
  if (mustRetype(reviewed.worth)) {
    const typed = await retype(reviewed.order.quantity, summaryOf(reviewed.venue, reviewed.order));
    if (!typed || review !== reviewed || whyNot() !== null) return;
  }
  leaving = reviewed.order;
  endReview();
  parts.state.focus();
  submit(reviewed.venue, reviewed.order);
}

function endReview() {
  review = null;
  if (form === null) return;
  parts.summary.hidden = true;
  parts.summary.replaceChildren();
  parts.edit.hidden = false;
  draw(render);
}

/** The answer to the order that was on its way. */
function answered({ order, error }) {
  if (leaving?.client_order_id !== order.client_order_id) return;
  leaving = null;
  restsUntil = performance.now() + REST_MS;
  setTimeout(() => draw(render), REST_MS + 20);
  const inTicket = form.contains(document.activeElement);
  // Nothing that acts has the focus now.
  if (inTicket) parts.state.focus();
  const said = error === null ? [make("span", { text: "outcome.accepted" }), " ", wordsOf(order)] : refusalParts(error);
  parts.outcome.replaceChildren(make("p", { "data-client-order-id": order.client_order_id }, ...said));
  draw(render);
}

/** How far an order on its way is: one that waits for the second password has not left. */
const stateOf = (order) => (pendingOf(order.client_order_id)?.stage === "asked" ? "state.asked" : "state.sending");

/** Amounts, limits and what is not possible now. */
function render() {
  const why = whyNot();
  const locked = isLocked();
  const rests = performance.now() < restsUntil;
  for (const control of Object.values(parts.fields)) control.disabled = leaving !== null;
  const type = parts.fields.order_type.value;
  parts.fields.price.disabled ||= !hasPrice(type);
  parts.fields.trigger_price.disabled ||= !hasTrigger(type);
  parts.fields.trigger_type.disabled ||= !hasTrigger(type);
  parts.fields.expire_time_ns.disabled ||= parts.fields.time_in_force.value !== "GTD";
  parts.fields.trigger_price.parentElement.hidden = !hasTrigger(type);
  parts.fields.expire_time_ns.parentElement.hidden = parts.fields.time_in_force.value !== "GTD";
  parts.review.disabled = why !== null || locked || leaving !== null || rests;
  const send = form.querySelector("[data-action=send]");
  if (send !== null && (why !== null || locked)) send.disabled = true;
  setText(parts.state, leaving !== null ? t(stateOf(leaving)) : why !== null ? t(why) : "");
  renderLock(locked);
  renderEstimate();
  renderUnknown();
  const about = instrument(orderVenue(), id());
  setText(parts.name, about?.name ?? "");
  setAttribute(parts.fields.quantity, "data-lot", about?.lot);
}

function renderLock(locked) {
  const until = venueOf("web_broker").locked_until_ms;
  setAttribute(form, "data-locked-until-ms", locked && until != null ? until : null);
  parts.locked.hidden = !locked;
  if (!locked) return;
  const time = until == null ? "" : number("b", until, {}, `${clockOf(until)} JST`);
  parts.locked.replaceChildren(t("locked"), " ", time);
}

/** What the order may cost, and what is left. */
function renderEstimate() {
  const read = readFields();
  const order = review?.order ?? read.order;
  const amount = order === undefined ? null : review?.worth ?? worthOf(order);
  const power = units(state.money.buying_power ?? "");
  const nodes = [make("span", {}, `${t("estimate")} `, amount === null ? "\u2013" : number("b", decimal(amount)))];
  if (amount !== null && power !== null && order.order_side === "BUY") {
    const left = power - amount;
    nodes.push(make("span", { class: left < 0n ? "loss" : "" }, `${t("powerAfter")} `, number("b", decimal(left))));
  }
  parts.estimate.replaceChildren(...nodes);
}

/** Orders whose answer is missing. */
function renderUnknown() {
  const unknown = unknownOrders();
  parts.unknown.hidden = unknown.length === 0;
  const ids = unknown.map((one) => one.order.client_order_id).join(" ");
  if (parts.unknown.dataset.ids === ids && parts.unknown.lang === globalThis.language) return;
  parts.unknown.dataset.ids = ids;
  parts.unknown.lang = globalThis.language;
  parts.unknown.replaceChildren(...unknown.map((one) => make("li", { "data-client-order-id": one.order.client_order_id, "data-status": "unknown" },
    make("b", { text: "unknownOrder" }), " ", wordsOf(one.order), " ", make("span", { text: "unknownAdvice" }))));
}
