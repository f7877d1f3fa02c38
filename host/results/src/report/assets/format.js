"use strict";

// Reading the columns of the embedded data, and writing numbers and times.
// Money is never a binary fraction here: an amount is an integer (a number, or its digits as text
// where a number would lose some) with a known count of digits after the point.

const MINUS = "\u2212";
const JST_OFFSET_MINUTES = 9 * 60;

/** Turns differences back into values; null stays null. */
function fromDifferences(differences) {
  let value = 0;
  return differences.map((difference) => (difference === null ? null : (value += difference)));
}

/** The text of a `{words, rows}` column in a row, or null. */
function word(column, row) {
  const place = column.rows[row];
  return place === null ? null : column.words[place];
}

/** An integer with thousands separators. Takes numbers and digits as text. */
function grouped(integer) {
  const text = String(integer);
  const negative = text.startsWith("-");
  const digits = negative ? text.slice(1) : text;
  return (negative ? MINUS : "") + digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** An integer of 1/10^decimals as an exact decimal text. */
function decimalText(value, decimals) {
  if (decimals === 0) return grouped(value);
  const text = String(value);
  const negative = text.startsWith("-");
  const digits = (negative ? text.slice(1) : text).padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  return (negative ? MINUS : "") + grouped(digits.slice(0, point)) + "." + digits.slice(point);
}

/** The amount of an `{decimals, values}` column in a row as text, or null. */
function amount(column, row) {
  const value = column.values[row];
  return value === null || value === undefined ? null : decimalText(value, column.decimals);
}

/** The amounts of a column in yen as floats, for positions on the screen only. */
function plotted(column) {
  const scale = 10 ** column.decimals;
  return column.values.map((value) => (value === null ? null : Number(value) / scale));
}

/** Decimal text of the tables (`-1234.5`) with separators. */
function money(text) {
  const [whole, fraction] = text.split(".");
  return grouped(whole) + (fraction === undefined ? "" : "." + fraction);
}

/** The same with a sign in front of gains. */
function signed(text) {
  return /^-|^0$/.test(text) ? money(text) : "+" + money(text);
}

/** An amount with its unit. */
const yen = (amount) => t("yen", { amount });

/** A ratio in percent. */
function percent(ratio, digits) {
  const text = (ratio * 100).toFixed(digits);
  return text.replace(/^-(?=[0.]*$)/, "").replace(/^-/, MINUS).replace(/\B(?=(\d{3})+(\.|$))/g, ",") + (language === "ja" ? "%" : "\u00a0%");
}

const two = (number) => String(number).padStart(2, "0");

/** A date object whose UTC fields are the Japanese ones. */
const japanDate = (minutes) => new Date((minutes + JST_OFFSET_MINUTES) * 60_000);

/** A part of a date object whose UTC fields count, like `{ month: "short" }`, in the page's language. */
const dateWord = (date, form) => new Intl.DateTimeFormat(locale(), { timeZone: "UTC", ...form }).format(date);

/** `Jan` or `1月` of a month from 0. */
const monthName = (month) => dateWord(new Date(Date.UTC(2000, month, 1)), { month: "short" });

/** `2025-01-06` or `2025/01/06` of minutes since 1970. */
function dateText(minutes) {
  return dayText(japanDate(minutes).toISOString().slice(0, 10));
}

/** A moment of the data, `2025-01-06 09:00`, with its day as people write it. */
const momentOf = (text) => dayText(text.slice(0, 10)) + text.slice(10);

/** `09:00` of minutes since 1970. */
function clockText(minutes) {
  return japanDate(minutes).toISOString().slice(11, 16);
}

/** `2025-01-06 09:00:00.007835` of microseconds since 1970; whole seconds without a fraction. */
function momentText(micros) {
  const minutes = Math.floor(micros / 60e6);
  const rest = micros - minutes * 60e6;
  const seconds = Math.floor(rest / 1e6);
  const micro = rest - seconds * 1e6;
  const fraction = micro === 0 ? "" : `.${String(micro).padStart(6, "0")}`;
  return `${dateText(minutes)} ${clockText(minutes)}:${two(seconds)}${fraction}`;
}

/** A span of nanoseconds in words: `3 h 05 min`. */
function durationText(nanos) {
  const seconds = Math.floor(Number(nanos) / 1e9);
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3_600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return t("durationDays", { days, hours: two(hours) });
  if (hours > 0) return t("durationHours", { hours, minutes: two(minutes) });
  if (minutes > 0) return t("durationMinutes", { minutes, seconds: two(seconds % 60) });
  return t("durationSeconds", { seconds: (Number(nanos) / 1e9).toFixed(seconds < 10 ? 3 : 1) });
}

/** A number of the summary with its unit, as people read it; null where it is missing. */
function statisticText(value, unit) {
  if (value === null || value === undefined) return null;
  if (unit === "yen") return yen(money(value));
  if (unit === "ratio") return percent(value, 2);
  if (unit === "number") return Number(value).toFixed(2).replace("-", MINUS);
  if (unit === "count" || unit === "shares") return grouped(value);
  if (unit === "timestamp") return value === "none" ? t("none") : `${momentOf(value.slice(0, 16))} JST`;
  return String(value);
}

/** A new element with a class and children; texts become text nodes, never markup. */
function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}

/** A button that does something. */
function button(text, action, className = "") {
  const node = el("button", className, text);
  node.type = "button";
  node.addEventListener("click", action);
  return node;
}

const byId = (id) => document.getElementById(id);
