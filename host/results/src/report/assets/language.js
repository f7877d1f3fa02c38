"use strict";

// The page's language: the browser's, until a person chooses another; that one is remembered. All texts
// are in the page's table, `{key: {en, ja}}`; nothing of it ever becomes markup.

const LANGUAGE_KEY = "kumiki.language";
const LANGUAGES = { en: "en-US", ja: "ja-JP" };
const TEXTS = JSON.parse(document.getElementById("texts").textContent);

/** The language that was chosen before; null without one, or where nothing may be stored. */
function keptLanguage() {
  try {
    const kept = localStorage.getItem(LANGUAGE_KEY);
    return Object.hasOwn(LANGUAGES, kept ?? "") ? kept : null;
  } catch {
    return null;
  }
}

function keepLanguage(chosen) {
  try {
    localStorage.setItem(LANGUAGE_KEY, chosen);
  } catch {
    // Where nothing may be stored the choice holds until the page is closed.
  }
}

/** The first language of the browser that the page speaks. */
function browserLanguage() {
  const wanted = [...(navigator.languages ?? [navigator.language])].map((one) => one.slice(0, 2).toLowerCase());
  return wanted.find((one) => Object.hasOwn(LANGUAGES, one)) ?? "en";
}

let language = keptLanguage() ?? browserLanguage();

/** A text of the table. `{name}` is a value; `{name|day|days}` is a word for one of it, or for more. */
function t(key, values = {}) {
  return TEXTS[key][language].replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (_, name, one, more) =>
    one === undefined ? String(values[name]) : Number(values[name]) === 1 ? one : more);
}

/** The text of a word of the data, like `side.BUY`; the word itself where the table has none. */
function known(family, word) {
  const key = `${family}.${word}`;
  return Object.hasOwn(TEXTS, key) ? t(key) : word;
}

/** The locale whose numbers and dates people of this language expect. */
const locale = () => LANGUAGES[language];

/** A whole number with its thousands apart. */
const wholeNumber = (number) => new Intl.NumberFormat(locale(), { maximumFractionDigits: 0 }).format(number);

/** A day `2025-01-06` as people write it: `2025/01/06` in Japan. Anything else stays as it is. */
function dayText(day) {
  if (language !== "ja" || !/^\d{4}-\d{2}-\d{2}$/.test(day ?? "")) return day;
  const form = { timeZone: "UTC", year: "numeric", month: "2-digit", day: "2-digit" };
  return new Intl.DateTimeFormat(locale(), form).format(new Date(`${day}T00:00:00Z`));
}

/** Puts texts into the elements that name them. */
function applyTexts() {
  document.documentElement.lang = language;
  const each = (name, put) => {
    for (const node of document.querySelectorAll(`[data-${name}]`)) put(node, t(node.dataset[name]));
  };
  each("text", (node, text) => (node.textContent = text));
  each("label", (node, text) => node.setAttribute("aria-label", text));
  each("title", (node, text) => (node.title = text));
  each("placeholder", (node, text) => (node.placeholder = text));
}

/** Makes the element `language` the switch to the other language; `changed` shows the page anew. */
function languageSwitch(changed) {
  const host = document.getElementById("language");
  const other = language === "ja" ? "en" : "ja";
  host.textContent = TEXTS["language"][other];
  host.lang = other;
  host.onclick = () => {
    language = other;
    keepLanguage(other);
    changed();
    document.getElementById("language").focus({ preventScroll: true });
  };
}

/** What has to end before the page is shown anew: observers, listeners, charts. */
const leaving = [];

/** Shows a page that `show` fills; anew, from its elements as the file has them, in another language. */
function showPage(show) {
  const hosts = () => [...document.querySelectorAll("body > header, body > main")];
  const empty = hosts().map((host) => host.cloneNode(true));
  const draw = () => {
    applyTexts();
    languageSwitch(() => {
      for (const leave of leaving.splice(0)) leave();
      hosts().forEach((host, place) => host.replaceWith(empty[place].cloneNode(true)));
      draw();
    });
    show();
  };
  draw();
}
