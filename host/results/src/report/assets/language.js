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

/** What a value of a sentence looks like, by its name without the number behind it; anything else. */
const SENTENCE_VALUES = {
  id: "[0-9A-Z]+\\.[A-Z]+",
  day: "\\d{4}-\\d{2}-\\d{2}",
  moment: "\\d{4}-\\d{2}-\\d{2} [\\d:.]+ JST",
  number: "-?[\\d,.]+",
};
/** Longer texts are none of ours. */
const SENTENCE_LETTERS = 1000;
let sentences = null;

/** The sentences of the table, `said.*`, as patterns of their English texts; what says most comes first. */
function sentencePatterns() {
  const pieceOf = (piece, names) => {
    const [, name, one, more] = /^\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}$/.exec(piece) ?? [];
    if (name === undefined) return piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    if (one !== undefined) return `(?:${one}|${more})`;
    names.push(name);
    return `(${SENTENCE_VALUES[name.replace(/\d+$/, "")] ?? ".*?"})`;
  };
  return Object.keys(TEXTS).filter((key) => key.startsWith("said.")).map((key) => {
    const names = [];
    const pieces = TEXTS[key].en.split(/(\{[^}]*\})/).map((piece) => pieceOf(piece, names));
    const letters = TEXTS[key].en.replace(/\{[^}]*\}/g, "").length;
    return { key, names, letters, pattern: new RegExp(`^${pieces.join("")}$`, "s") };
  }).sort((one, other) => other.letters - one.letters);
}

/**
 * A text that the program has written, which is English, in the page's language; null where the table has
 * not every part of it. A value `{said}` is such a text again.
 */
function retold(text) {
  if (language === "en") return text;
  if (text.length > SENTENCE_LETTERS) return null;
  sentences ??= sentencePatterns();
  for (const { key, names, pattern } of sentences) {
    const found = pattern.exec(text);
    if (found === null) continue;
    const value = (name, given) => {
      if (name.startsWith("said")) return retold(given);
      if (name.startsWith("day")) return dayText(given);
      return name.startsWith("number") && /^\d{1,15}$/.test(given) ? wholeNumber(Number(given)) : given;
    };
    const values = names.map((name, place) => [name, value(name, found[place + 1])]);
    if (values.every(([, given]) => given !== null)) return t(key, Object.fromEntries(values));
  }
  for (const [between, mark] of [[/\. (?=[A-Z]+ [A-Z]+: |and \d)/, "。"], ["; ", "。"]]) {
    const parts = text.split(between);
    if (parts.length === 1) continue;
    const told = parts.map(retold);
    if (!told.includes(null)) return told.join(mark);
  }
  return null;
}

/** An element with such a text: in the page's language, or as it was written and marked as English. */
function recorded(text) {
  const node = document.createElement("span");
  const told = retold(text);
  node.textContent = told ?? text;
  if (told === null) node.lang = "en";
  return node;
}

/** A rule of the exchange where the table has it in the page's language; its parameters as recorded. */
function ruleText(name, text) {
  const key = `rule.${name}`;
  const rule = Object.hasOwn(TEXTS, key) ? TEXTS[key].en : null;
  if (rule === null || !text.startsWith(rule)) return recorded(text);
  const rest = text.slice(rule.length).trim();
  const node = document.createElement("span");
  node.append(t(key), ...(rest === "" ? [] : [language === "ja" ? "" : " ", recorded(rest)]));
  return node;
}

/** The rules of a result in the order in which people count: F2 before F10. */
function rulesInOrder(rules) {
  return Object.entries(rules).sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true }));
}

/**
 * A name of others, like that of an issue: characters that turn the text around them or are not seen are
 * spelled, so that it looks like nothing else.
 */
function visibleName(text) {
  const unseen = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
  return text.replace(unseen, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
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
