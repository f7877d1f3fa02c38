// Panes: the frame of each, which one has the focus, and moving between them by keyboard.

import { make } from "./dom.js";
import { tell } from "./bus.js";
import { labelOf, t } from "./language.js";
import { state } from "./state.js";

/** These take the focus that decides where new charts go. */
const FOCUSABLE = new Set(["tick", "candles", "board", "tape"]);

/**
 * A pane: `section[data-pane-kind]` with a head and a body. `title` is the key of its title; `of` adds data to
 * the title, like an instrument; `close` makes it closable.
 */
export function makePane(kind, { title = `pane.${kind}`, instrumentId, granularity, close } = {}) {
  const heading = make("h2", { text: title });
  const subject = make("span", { class: "subject", translate: "no" });
  const tools = make("div", { class: "tools" });
  const head = make("header", {}, heading, subject, tools);
  const body = make("div", { class: "body" });
  const pane = make("section", {
    role: "region", tabindex: "-1", label: title, "data-pane-kind": kind, "data-mode": state.mode,
    "data-instrument-id": instrumentId, "data-granularity": granularity,
  }, head, body);
  Object.assign(pane, { heading, subject, tools, body });
  if (instrumentId !== undefined) nameSubject(pane, instrumentId, granularity);
  if (FOCUSABLE.has(kind)) pane.addEventListener("focusin", () => focusPane(pane));
  if (FOCUSABLE.has(kind)) pane.addEventListener("pointerdown", () => focusPane(pane));
  heading.addEventListener("dblclick", () => enlarge(pane));
  if (close !== undefined) addClose(pane, close);
  return pane;
}

function addClose(pane, close) {
  const button = make("button", { type: "button", class: "icon", "data-action": "close-pane", label: "closePane", title: "closePane" });
  button.textContent = "\u00d7";
  button.addEventListener("click", () => close(pane));
  pane.append(button);
  pane.querySelector("header").append(button);
}

/** Says in the title what a pane shows. */
export function nameSubject(pane, instrumentId, granularity) {
  pane.dataset.instrumentId = instrumentId;
  const words = [instrumentId, granularity].filter((word) => word !== undefined && word !== "");
  pane.subject.textContent = pane.dataset.of = words.join(" ");
  pane.setAttribute("aria-label", labelOf(pane, t(pane.dataset.label)));
}

/** The pane that has the focus for new charts, or null. */
export const focusedPane = () => document.querySelector("[data-focused=true]");

export function focusPane(pane) {
  const before = focusedPane();
  if (before === pane) return;
  if (before !== null) before.dataset.focused = "false";
  pane.dataset.focused = "true";
}

/** Shows one pane as large as all, or all again. */
function enlarge(pane) {
  const was = pane.classList.contains("large");
  document.querySelector(".large")?.classList.remove("large");
  pane.classList.toggle("large", !was);
  tell("resized");
}

/** What the keyboard goes through with F6: all panes that can be seen. */
const visiblePanes = () => [...document.querySelectorAll("section[data-pane-kind]")].filter((pane) => pane.offsetParent !== null);

/** What takes the focus in a pane: its first control that can be used, else the pane. */
function enter(pane) {
  const inside = pane.body.querySelector(
    "input:not([disabled]):not([hidden]), select:not([disabled]), button:not([disabled]), [tabindex='0']");
  (inside !== null && inside.offsetParent !== null ? inside : pane).focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "F6" || document.querySelector("dialog[open]") !== null) return;
  event.preventDefault();
  const panes = visiblePanes();
  if (panes.length === 0) return;
  const at = panes.findIndex((pane) => pane.contains(document.activeElement));
  const by = event.shiftKey ? -1 : 1;
  enter(panes[at < 0 ? (by > 0 ? 0 : panes.length - 1) : (at + by + panes.length) % panes.length]);
});

/** Several panes in one place, of which one is seen; buttons choose it. */
export function tabs(...panes) {
  const bar = make("div", { class: "tabbar", role: "group", label: "choosePane" });
  const host = make("div", { class: "tabs" }, bar, ...panes);
  const show = (shown) => {
    for (const pane of panes) pane.hidden = pane !== shown;
    [...bar.children].forEach((button, place) => button.setAttribute("aria-pressed", String(panes[place] === shown)));
    tell("resized");
  };
  for (const pane of panes) {
    const button = make("button", { type: "button", text: pane.dataset.label, "data-tab": pane.dataset.paneKind });
    button.addEventListener("click", () => show(pane));
    bar.append(button);
  }
  show(panes[0]);
  return Object.assign(host, { show });
}

export const split = (direction, name, ...children) => make("div", { "data-split": direction, class: name }, ...children);
