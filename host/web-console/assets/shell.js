// The bar at the top: mode, time, speed, money, language; and the title of the tab.

import { listen } from "./bus.js";
import { actionButton, make, momentOf, setAttribute, setNumber, setText } from "./dom.js";
import { draw, drawing } from "./frames.js";
import { changeLanguage, known, t } from "./language.js";
import { refusalParts } from "./refusals.js";
import { ask, isReplay, isRunning, mayAct, productionVenues, send, state } from "./state.js";
import { stopRun } from "./strategy.js";
import { toast } from "./toasts.js";
import { venueOf, VENUES } from "./venues_state.js";
import { pushText } from "./venues.js";

const SPEEDS = ["1", "10", "60", "600", "max"];
const SPEED_MOST = 1_000_000;

let parts = null;

/** The bar of a mode. */
export function makeBar() {
  parts = {
    mode: make("h1", { class: "mode" }), connection: make("span", { class: "connection" }),
    session: make("span", { class: "session" }), clock: make("time", { class: "clock" }),
    venues: make("span", { class: "venue-states" }),
    language: actionButton("language", "otherLanguage", changeLanguage, { class: "small" }),
    signOut: actionButton("sign-out", "signOut", signOut, { class: "small" }),
    panes: make("span", { class: "reopen" }),
  };
  const bar = make("header", { class: "bar" }, parts.mode, parts.connection);
  if (isReplay()) bar.append(parts.session, parts.clock, speedControls(), replayStop());
  else bar.append(parts.venues);
  bar.append(make("span", { class: "space" }), parts.panes, money(), parts.language, parts.signOut);
  const job = drawing(render);
  for (const name of ["clock", "money", "session-state", "venue", "connection"]) listen(name, () => draw(job));
  return bar;
}

/** Where closed panes can be opened again. */
export const reopenHost = () => parts.panes;

function speedControls() {
  const input = make("input", { "data-role": "speed", name: "speed", list: "speeds", inputmode: "numeric", autocomplete: "off", label: "speed", size: "7" });
  const list = make("datalist", { id: "speeds" }, ...SPEEDS.map((speed) => new Option(speed, speed)));
  const presets = SPEEDS.map((speed) => {
    const button = make("button", { type: "button", class: "small", "data-speed": speed, translate: "no" }, speed === "max" ? speed : `\u00d7${speed}`);
    button.addEventListener("click", () => setSpeed(speed));
    return button;
  });
  input.addEventListener("change", () => setSpeed(input.value.trim().replace(/^[x\u00d7]/, "")));
  Object.assign(parts, { speed: input, presets });
  return make("span", { class: "speeds" }, make("label", {}, make("span", { text: "speed" }), " ", input), list, ...presets);
}

async function setSpeed(text) {
  if (!mayAct()) return;
  const right = text === "max" || (/^[1-9]\d*$/.test(text) && Number(text) <= SPEED_MOST);
  if (right) {
    await ask("SetReplaySpeed", { multiplier: text === "max" ? "max" : Number(text) }).catch((error) => toast("reject", refusalParts(error)));
  } else toast("reject", [t("problem.speed")]);
  parts.speed.value = state.multiplier ?? "";
  draw(render);
}

function replayStop() {
  parts.stop = actionButton("stop", "stop", () => stopRun(), { class: "small" });
  return parts.stop;
}

function money() {
  const one = (name) => {
    const value = make("b", { "data-field": name });
    parts[name] = value;
    return make("span", { class: "money" }, make("span", { text: name }), " ", value);
  };
  return make("span", { class: "monies" }, ...(isReplay() ? ["cash", "buying_power", "equity"] : ["buying_power"]).map(one));
}

function signOut() {
  send("SignOut");
}

function render() {
  if (parts === null) return;
  setText(parts.mode, isReplay() ? t("mode.replay") : productionVenues().length > 0 ? t("mode.production") : t("mode.live"));
  setText(parts.connection, `${known("connectionState", state.connection)}${state.scope === "read_only" ? ` \u00b7 ${t("readOnly")}` : ""}`);
  if (isReplay()) renderReplay();
  else renderVenues();
  setNumber(parts.buying_power, state.money.buying_power);
  parts.signOut.disabled = state.connection !== "ready" || state.scope === "read_only";
  document.title = `${productionVenues().length > 0 ? "\u3010\u672c\u756a\u3011" : ""}${t(isReplay() ? "title.replay" : "title.live")}`;
}

function renderReplay() {
  setNumber(parts.cash, state.money.cash);
  setNumber(parts.equity, state.money.equity);
  setText(parts.session, known("sessionState", state.sessionState));
  setNumber(parts.clock, state.clock, state.clock === null ? "" : `${momentOf(state.clock)} JST`);
  const { speed } = parts;
  const holds = state.multiplier === null ? "" : String(state.multiplier);
  if (document.activeElement !== speed && speed.value !== holds) speed.value = holds;
  setAttribute(speed, "data-value", holds);
  speed.disabled = !mayAct() || !isRunning();
  for (const preset of parts.presets) {
    preset.disabled = speed.disabled;
    preset.setAttribute("aria-pressed", String(preset.dataset.speed === holds));
  }
  parts.stop.disabled = !mayAct() || !isRunning();
}

function renderVenues() {
  const key = JSON.stringify([globalThis.language, VENUES.map((name) => [name, venueOf(name).state, venueOf(name).push, venueOf(name).frozen])]);
  if (parts.venues.dataset.key === key) return;
  parts.venues.dataset.key = key;
  parts.venues.replaceChildren(...VENUES.filter((name) => name in state.venueCapabilities).map((name) => {
    const venue = venueOf(name);
    const words = [known("venueState", venue.state)];
    if (venue.push !== null) words.push(pushText(venue.push));
    return make("span", { class: "venue-state", "data-good": String(venue.state === "Ready" && !venue.frozen) }, make("code", { translate: "no" }, name), ` ${words.join(" \u00b7 ")}`);
  }));
}

