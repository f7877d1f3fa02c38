"use strict";

// The statistics with their definitions, and the returns by the calendar. What is drawn here is
// small: plain elements and SVG, which follow the style sheet by themselves.

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** A name that tells its definition: on pointing at it, and when opened. */
function defined({ name }) {
  const title = el("summary", "", t(`statistic.${name}`));
  const text = t(`definition.${name}`);
  title.title = text;
  return el("details", "defined", title, el("p", "", text));
}

/** A number of the summary as people read it; null where it is missing. */
function summaryText(value, { name, unit }) {
  return name === "status" ? known("status", value) : statisticText(value, unit);
}

/** Every number of the summary, by groups. */
function statistics({ summary, definitions }) {
  const groups = new Map();
  for (const one of definitions) {
    const text = summaryText(summary[one.name], one);
    if (!groups.has(one.group)) groups.set(one.group, el("dl", "statistics"));
    const value = el("dd", one.unit === "text" ? "word" : "", text ?? "\u2013");
    groups.get(one.group).append(el("div", "", el("dt", "", defined(one)), value));
  }
  const host = byId("statistics-groups");
  for (const [name, list] of groups) host.append(el("div", "group", el("h3", "", known("group", name)), list));
  showSection("statistics");
}

/** Months, years, the histogram of days and the moving Sharpe ratio. */
function calendar({ calendar: { months, years, histogram, rolling } }) {
  if (months.length === 0) return;
  showSection("returns");
  byId("months").append(el("h3", "", t("returnsOfMonths")), monthTable(months, years));
  const host = byId("return-charts");
  if (years.length > 1) host.append(figure(t("returnsOfYears"), yearBars(years)));
  if (histogram !== null) host.append(figure(t("dailyReturns"), histogramBars(histogram)));
  if (rolling !== null) {
    host.append(figure(t("rollingSharpe", { days: rolling.span }), rollingLine(rolling)));
  }
}

function figure(title, picture) {
  return el("figure", "", el("figcaption", "", title), picture);
}

/** A colour for a return: stronger for larger ones, none at zero. */
function heat(cell, ratio, largest) {
  const share = largest > 0 ? Math.min(1, Math.abs(ratio) / largest) : 0;
  cell.style.setProperty("--share", `${Math.round(share * 55)}%`);
  cell.classList.add(ratio < 0 ? "cold" : "warm");
}

const MONTHS = Array.from({ length: 12 }, (_, month) => month);

/** A row for each year, a column for each month. */
function monthTable(months, years) {
  const of = new Map(months);
  const largest = Math.max(...months.map(([, ratio]) => Math.abs(ratio)));
  const head = el("tr", "", el("th", "", t("yearHead")), ...MONTHS.map((month) => el("th", "number", monthName(month))), el("th", "number", t("wholeYear")));
  for (const cell of head.children) cell.scope = "col";
  const rows = years.map(([year, whole]) => {
    const name = el("th", "", year);
    name.scope = "row";
    const cells = MONTHS.map((month) => {
      const ratio = of.get(`${year}-${two(month + 1)}`);
      if (ratio === undefined) return el("td", "number");
      const cell = el("td", "number", percent(ratio, 2));
      heat(cell, ratio, largest);
      return cell;
    });
    return el("tr", "", name, ...cells, el("td", "number whole", percent(whole, 2)));
  });
  const table = el("table", "months", el("caption", "unseen", t("returnsOfMonths")), el("thead", "", head), el("tbody", "", ...rows));
  const frame = el("div", "scroll", table);
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", t("tableOf", { name: t("returnsOfMonths") }));
  return frame;
}

const PICTURE = { width: 360, height: 190, left: 44, right: 8, top: 10, bottom: 24 };

/** A picture with a y axis of a few lines. `y` turns a value into a place. */
function picture(label, low, high, textOf) {
  const { width, height, left, right, top, bottom } = PICTURE;
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const y = (value) => top + ((high - value) / (high - low || 1)) * (height - top - bottom);
  for (const value of gridValues(low, high)) {
    node.append(
      svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: value === 0 ? "zero" : "grid" }),
      svg("text", { x: left - 6, y: y(value) + 4, class: "end" }, textOf(value)));
  }
  return { node, y };
}

/** Round values from `low` to `high`, about five of them. */
function gridValues(low, high) {
  const raw = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= raw);
  const values = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-6; place++) values.push(place * step);
  return values;
}

const shortPercent = (ratio) => `${Number((ratio * 100).toPrecision(3))}%`.replace("-", MINUS);

function bars(items, label, low, high, textOf) {
  const { width, height, left, right, bottom } = PICTURE;
  const { node, y } = picture(label, low, high, textOf);
  const wide = (width - left - right) / items.length;
  const labelled = Math.ceil(items.length / 6);
  items.forEach(({ value, name, tip, cold }, place) => {
    const [from, to] = [y(Math.max(0, value)), y(Math.min(0, value))];
    const bar = svg("rect", { x: left + place * wide + wide * 0.08, y: from, width: wide * 0.84, height: Math.max(to - from, value === 0 ? 0 : 1), class: cold ? "cold" : "warm" });
    bar.append(svg("title", {}, tip));
    node.append(bar);
    if (place % labelled === 0) node.append(svg("text", { x: left + (place + 0.5) * wide, y: height - 6, class: "middle" }, name));
  });
  return node;
}

function yearBars(years) {
  const values = years.map(([, ratio]) => ratio);
  const items = years.map(([year, ratio]) => ({ value: ratio, name: year, tip: `${year}: ${percent(ratio, 2)}`, cold: ratio < 0 }));
  return bars(items, t("yearsLabel"), Math.min(0, ...values), Math.max(0, ...values), shortPercent);
}

function histogramBars({ from, width, days }) {
  const items = days.map((count, place) => {
    const low = from + place * width;
    const tip = t("histogramTip", { low: shortPercent(low), high: shortPercent(low + width), count });
    return { value: count, name: shortPercent(low), tip, cold: low + width / 2 < 0 };
  });
  return bars(items, t("histogramLabel"), 0, Math.max(...days, 4), (value) => grouped(value));
}

function rollingLine({ dates, sharpe }) {
  const known = sharpe.filter((value) => value !== null);
  const { width, height, left, right } = PICTURE;
  const textOf = (value) => String(Number(value.toPrecision(3))).replace("-", MINUS);
  const { node, y } = picture(t("rollingLabel"), Math.min(0, ...known), Math.max(0, ...known), textOf);
  const x = (place) => left + (dates.length < 2 ? 0.5 : place / (dates.length - 1)) * (width - left - right);
  let path = "";
  let pen = "M";
  sharpe.forEach((value, place) => {
    if (value === null) pen = "M";
    else {
      path += `${pen}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
    }
  });
  node.append(svg("path", { d: path, class: "line" }));
  const name = (place, className, at) => node.append(svg("text", { x: at, y: height - 6, class: className }, dayText(dates[place])));
  name(0, "start", left);
  if (dates.length > 1) name(dates.length - 1, "end", width - right);
  return node;
}
