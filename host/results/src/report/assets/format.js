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

/** A ratio in percent. */
function percent(ratio, digits) {
  const text = (ratio * 100).toFixed(digits);
  return text.replace(/^-(?=[0.]*$)/, "").replace(/^-/, MINUS).replace(/\B(?=(\d{3})+(\.|$))/g, ",") + "\u00a0%";
}

const two = (number) => String(number).padStart(2, "0");

/** A date object whose UTC fields are the Japanese ones. */
const japanDate = (minutes) => new Date((minutes + JST_OFFSET_MINUTES) * 60_000);

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `2025-01-06` of minutes since 1970. */
function dateText(minutes) {
  return japanDate(minutes).toISOString().slice(0, 10);
}

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
  if (days > 0) return `${days} d ${two(hours)} h`;
  if (hours > 0) return `${hours} h ${two(minutes)} min`;
  if (minutes > 0) return `${minutes} min ${two(seconds % 60)} s`;
  return `${(Number(nanos) / 1e9).toFixed(seconds < 10 ? 3 : 1)} s`;
}

/** A number of the summary with its unit, as people read it; null where it is missing. */
function statisticText(value, unit) {
  if (value === null || value === undefined) return null;
  if (unit === "yen") return `${money(value)} yen`;
  if (unit === "ratio") return percent(value, 2);
  if (unit === "number") return Number(value).toFixed(2).replace("-", MINUS);
  if (unit === "count" || unit === "shares") return grouped(value);
  if (unit === "moment") return value === "none" ? value : `${value.slice(0, 16)} JST`;
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
