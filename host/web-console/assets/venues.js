// The venues' pane: where each stands, what to do about it, and its login.

import { listen, tell } from "./bus.js";
import { actionButton, foreign, make, setAttribute } from "./dom.js";
import { draw, drawing } from "./frames.js";
import { has, known, t } from "./language.js";
import { makePane } from "./panes.js";
import { adviceOf, refusalParts } from "./refusals.js";
import { ask, isProduction, mayAct, state } from "./state.js";
import { toast } from "./toasts.js";
import { venueOf } from "./venues_state.js";

const rows = new Map();

export function makeVenuesPane() {
  const pane = makePane("venues");
  const list = make("div", { class: "venues" });
  pane.body.append(list);
  const job = drawing(() => render(list));
  listen("venue", () => draw(job));
  return pane;
}

function makeRow(name) {
  const login = actionButton("login", "login", () => logIn(name));
  const row = {
    login, state: make("b", {}), code: make("span", {}), advice: make("span", { class: "advice" }), message: foreign("p", "", { class: "message" }),
  };
  row.node = make("div", { "data-venue": name }, make("h3", { translate: "no" }, name), row.state, " ", row.code, login, row.advice, row.message);
  return row;
}

async function logIn(venue) {
  try {
    const answer = await ask("RequestVenueLogin", { venue });
    if (answer.event === "VenueLoginCancelled") toast("info", [t("loginCancelled"), " ", make("code", { translate: "no" }, venue)]);
  } catch (error) {
    toast("reject", refusalParts(error));
  }
  tell("venue", venue);
}

function render(list) {
  for (const name of Object.keys(state.venueCapabilities)) {
    if (!rows.has(name)) {
      rows.set(name, makeRow(name));
      list.append(rows.get(name).node);
    }
    const row = rows.get(name);
    const venue = venueOf(name);
    const code = venue.error?.code ?? venue.code;
    setAttribute(row.node, "data-state", venue.state);
    setAttribute(row.node, "data-push", venue.push);
    setAttribute(row.node, "data-production", isProduction(name));
    row.state.textContent = [known("venueState", venue.state), venue.push === null ? "" : pushText(venue.push)].filter((text) => text !== "").join(" \u00b7 ");
    row.code.replaceChildren(...(code == null ? [] : [make("code", { translate: "no" }, code)]));
    const advice = code == null ? (has(`venueDo.${venue.state}`) ? `venueDo.${venue.state}` : null) : adviceOf(code);
    row.advice.textContent = advice === null ? "" : t(advice);
    row.message.textContent = venue.error?.message ?? "";
    row.login.disabled = !mayAct() || venue.state === "LoggingIn" || (venue.state === "Ready" && !venue.frozen);
  }
}

/** `Reconnecting 2` in words. */
export function pushText(push) {
  const [word, count] = push.split(" ");
  return count === undefined ? known("push", word) : `${known("push", word)} ${count}`;
}
