// The page's language. It is that of the browser until a person chooses another, which holds for this tab.
// The texts are a table `{key: {en, ja}}`; nothing of it becomes markup. The report's files (`format.js`,
// `axis.js`) look for `t`, `locale`, `language` and `dayText` among the globals.

import { drawAll } from "./frames.js";

const KEY = "kumiki.language";
const LOCALES = { en: "en-US", ja: "ja-JP" };
let texts = {};

const kept = sessionStorage.getItem(KEY);
const browsers = (navigator.language ?? "").toLowerCase().startsWith("ja") ? "ja" : "en";
globalThis.language = Object.hasOwn(LOCALES, kept ?? "") ? kept : browsers;

/** Reads the table. */
export async function loadTexts() {
  const answer = await fetch("/assets/texts.json");
  texts = await answer.json();
}

export const locale = () => LOCALES[globalThis.language];

/** A text of the table. `{name}` is a value; `{name|day|days}` is a word for one of it, or for more. */
export function t(key, values = {}) {
  const text = texts[key]?.[globalThis.language] ?? key;
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (_, name, one, more) =>
    one === undefined ? String(values[name] ?? "") : Number(values[name]) === 1 ? one : more);
}

/** Whether the table has a text. */
export const has = (key) => Object.hasOwn(texts, key);

/** The text of a word of the data, like `state.Ready`; the word itself where the table has none. */
export const known = (family, word) => (has(`${family}.${word}`) ? t(`${family}.${word}`) : String(word));

/** A day `2025-01-06` as people write it: `2025/01/06` in Japan. */
export const dayText = (day) => (globalThis.language === "ja" ? (day ?? "").replaceAll("-", "/") : day);

Object.assign(globalThis, { t, locale, dayText });

/** The label of an element; `data-of` says which of several it is. */
export const labelOf = ({ dataset }, text) => (dataset.of ? `${text} ${dataset.of}` : text);

/** Puts texts into the elements below `root` that name them. */
export function applyTexts(root) {
  const each = (name, put) => {
    const all = [...root.querySelectorAll(`[data-${name}]`)];
    if (root instanceof Element && root.hasAttribute(`data-${name}`)) all.push(root);
    for (const node of all) put(node, t(node.getAttribute(`data-${name}`)));
  };
  each("text", (node, text) => (node.textContent = text));
  each("label", (node, text) => node.setAttribute("aria-label", labelOf(node, text)));
  each("title", (node, text) => (node.title = text));
  each("placeholder", (node, text) => (node.placeholder = text));
}

/** Shows the page in its language. */
export function showLanguage() {
  document.documentElement.lang = globalThis.language;
  applyTexts(document.body);
  drawAll();
}

/** Changes to the other language, for this tab. */
export function changeLanguage() {
  globalThis.language = globalThis.language === "ja" ? "en" : "ja";
  sessionStorage.setItem(KEY, globalThis.language);
  showLanguage();
}
