// Making elements. Texts become text nodes, never markup. Every number that is shown has its exact text of
// the wire in `data-value`.

import { t } from "./language.js";

/* global money, two -- of the report's format.js */

const JST_MS = 9 * 3_600_000;

/** A new element with attributes; `text` is the key of its text, `class` its class. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") {
      node.dataset.text = value;
      node.textContent = t(value);
    } else if (name === "label" || name === "title" || name === "placeholder") {
      node.setAttribute(`data-${name}`, value);
      node.setAttribute(name === "label" ? "aria-label" : name, t(value));
    } else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** A button that does something; `action` names it for tests and people who write scripts. */
export function actionButton(action, key, work, attributes = {}) {
  const node = make("button", { type: "button", "data-action": action, text: key, ...attributes });
  node.addEventListener("click", work);
  return node;
}

/** Sets an attribute where it is another one. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

/** Sets a text where it is another one. */
export function setText(node, text) {
  const first = node.firstChild;
  if (first !== null && first.nodeType === Node.TEXT_NODE && first.nextSibling === null) {
    if (first.data !== text) first.data = text;
  } else if (node.textContent !== text || first !== null) node.textContent = text;
}

/** A decimal of the wire with its thousands apart. */
export function shown(wire) {
  if (wire === null || wire === undefined || wire === "") return "";
  return /^-?\d+(\.\d+)?$/.test(wire) ? money(String(wire)) : String(wire);
}

/** Shows a number of the wire in an element, with its exact text. */
export function setNumber(node, wire, text = shown(wire)) {
  setAttribute(node, "data-value", wire === null || wire === undefined ? "" : wire);
  setText(node, text);
}

/** A new element with a number. */
export function number(tag, wire, attributes = {}, text = shown(wire)) {
  const node = make(tag, attributes);
  setNumber(node, wire, text);
  return node;
}

/** The fields of a moment in Japan, in ms since 1970. */
function japan(ms) {
  const date = new Date(ms + JST_MS);
  return {
    year: String(date.getUTCFullYear()), month: two(date.getUTCMonth() + 1), day: two(date.getUTCDate()),
    clock: `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`,
    ms: String(date.getUTCMilliseconds()).padStart(3, "0"),
  };
}

/** `09:31:12` in Japan. */
export const clockOf = (ms) => japan(ms).clock;

/** `09:31:12.041` in Japan. */
export function preciseClockOf(ms) {
  const { clock, ms: rest } = japan(ms);
  return `${clock}.${rest}`;
}

/** `01-07 09:31:12.041` in Japan. */
export function momentOf(ms) {
  const { month, day, clock, ms: rest } = japan(ms);
  return `${month}-${day} ${clock}.${rest}`;
}

/** `01-07 09:31:12` in Japan. */
export const shortMomentOf = (ms) => momentOf(ms).slice(0, -4);

/** `2025-01-07` in Japan. */
export function dateOf(ms) {
  const { year, month, day } = japan(ms);
  return `${year}-${month}-${day}`;
}

/** A label with its control. */
export function field(key, control, attributes = {}) {
  return make("label", { class: "field", ...attributes }, make("span", { text: key }), control);
}

/** A select of words; `texts` tells the key of a word's text, without it the word is data. */
export function choice(name, words, texts) {
  const node = make("select", { name, translate: texts === undefined ? "no" : null });
  for (const word of words) {
    const key = texts?.(word);
    // Nothing chosen is shown as a dash, so that it has a name.
    node.append(key === undefined ? new Option(word || "\u2013", word) : make("option", { value: word, text: key }));
  }
  return node;
}

/** Text of others: shown literally, and apart from what surrounds it. */
export function foreign(tag, text, attributes = {}) {
  const node = make(tag, { dir: "auto", translate: "no", ...attributes });
  node.classList.add("foreign");
  node.textContent = text ?? "";
  return node;
}

/** The first of the instrument id: `7203` of `7203.TSE`. */
export const tickerOf = (instrumentId) => (instrumentId ?? "").split(".")[0];

/** The instrument id of a code as people type it. */
export function instrumentOf(code) {
  const text = (code ?? "").trim().toUpperCase();
  return text === "" || text.includes(".") ? text : `${text}.TSE`;
}
