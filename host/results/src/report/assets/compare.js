"use strict";

// Runs side by side: one chart over the points of all runs, and a column for each run.

const DATA = JSON.parse(byId("data").textContent);

/** Letters name the runs in narrow places. */
const letter = (place) => String.fromCharCode(65 + place);

/** The chip in a run's colour. */
function chip(place) {
  const mark = el("i", "run-mark");
  mark.style.background = `var(--run-${place})`;
  return el("span", "run-name", mark, letter(place));
}

/** One time axis for all runs: the ends of all their spans. */
function commonTime(curves) {
  const ends = [...new Set(curves.flatMap((curve) => fromDifferences(curve.end)))].sort((a, b) => a - b);
  const end = ends.map((value, place) => value - (place === 0 ? 0 : ends[place - 1]));
  return new TradingTime({ step: Math.max(...curves.map((curve) => curve.step)), end });
}

/** A run's return in percent at the points of the common time; null outside its own. */
function returnsOf(curve, cash, time) {
  const ends = fromDifferences(curve.end);
  const equity = plotted(curve.equity);
  let place = -1;
  const values = time.ends.map((end) => {
    while (place + 1 < ends.length && ends[place + 1] <= end) place += 1;
    const over = place === ends.length - 1 && ends[place] < end;
    return place < 0 || over || cash <= 0 ? null : (equity[place] / cash - 1) * 100;
  });
  return [ends.length > 0 && ends[0] === time.ends[0] ? 0 : null, ...values];
}

function chart({ runs }, curves) {
  if (curves.every((curve) => curve.minutes === 0)) return;
  byId("equity").hidden = false;
  const time = commonTime(curves);
  const view = new View(time.count);
  const values = curves.map((curve, place) => returnsOf(curve, Number(runs[place].cash_start), time));
  new Overlay(time, view, values);
  zoomControls(byId("zoom"), time, view);
}

/** The returns of all runs in one chart. It draws and zooms as the charts of a run do. */
class Overlay extends Charts {
  constructor(time, view, values) {
    super(time, view);
    this.add("equity", {
      heights: [380, 300],
      label: t("overlayLabel"),
      values,
      range: (_, low, high) => padded(low, high, 0.08),
      series: values.map((_, place) => ({ stroke: () => colour(`run-${place}`), width: 1.6 })),
      least: 0.0001,
      unit: "%",
      tell: (point) => values.map((run, place) => [
        chip(place), run[point] === null ? "\u2013" : percent(run[point] / 100, 2)]),
    });
    this.ready();
  }
}

function nameCell(content) {
  const cell = el("th", "", content);
  cell.scope = "row";
  return cell;
}

function table(name, runs, rows) {
  const head = el("tr", "", el("th", "", ""), ...runs.map((_, place) => el("th", "number", chip(place))));
  for (const cell of head.children) cell.scope = "col";
  const frame = el("div", "scroll", el("table", "compared", el("caption", "unseen", name), el("thead", "", head), el("tbody", "", ...rows)));
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", t("tableOf", { name }));
  return frame;
}

/** A value's place in the manifest; its lines end where its words do. */
function path(name) {
  return el("code", "", ...name.split(/(?<=[._])/).flatMap((part) => [part, el("wbr")]));
}

function differences({ runs, differences: lines }) {
  const host = byId("differences");
  const shown = (value) => {
    if (value === null) return "\u2013";
    if (typeof value !== "string") return JSON.stringify(value);
    return /^[0-9a-f]{32,}$/.test(value) ? el("code", "hash", value) : value;
  };
  const valueCell = (value) => {
    const cell = el("td", "number wide", shown(value));
    // Words of the record, the same in every language.
    cell.classList.add("data");
    return cell;
  };
  const rows = [[t("folder"), runs.map((run) => run.folder)], [t("strategy"), runs.map((run) => run.strategy)],
    [t("instruments"), runs.map((run) => visibleName(run.instruments.join(", ")))],
    ...lines.filter(({ name }) => name !== "instrument_id").map(({ name, values }) => [path(name), values])];
  host.append(table(t("whatDiffers"), runs, rows.map(([name, values]) =>
    el("tr", "", nameCell(name), ...values.map(valueCell)))));
  if (lines.length === 0) host.append(el("p", "notice", t("allTheSame")));
}

function statisticsTable({ runs, statistics: lines }, definitions) {
  const rows = lines.map(({ values }, place) => {
    const one = definitions[place];
    const className = one.unit === "text" ? "number wide" : "number";
    const cells = values.map((value) => el("td", className, summaryText(value, one) ?? "\u2013"));
    return el("tr", "", nameCell(defined(one)), ...cells);
  });
  byId("statistics").append(table(t("statistics"), runs, rows));
}

/** What the exchange left out, each text once. */
function notModelled({ runs }) {
  const texts = [...new Set(runs.map((run) => run.not_modelled))].filter((text) => text !== "");
  if (texts.length === 0) return;
  byId("not-modelled").hidden = false;
  byId("not-modelled").append(...texts.map((text) => el("p", "", ruleText("NOT MODELLED", text))));
}

function main({ comparison, definitions, curves }) {
  document.title = t("titleCompare");
  const { runs } = comparison;
  byId("subtitle").append(...runs.map((run, place) => el("span", "run", chip(place), ` ${run.folder} (${run.strategy}, ${known("status", run.status)})`)));
  runs.forEach((run, place) => {
    if (run.status !== "completed") {
      byId("verdict").append(el("p", "notice strong", chip(place), " ", t("isPartial", { status: known("status", run.status) })));
    }
    if (run.warning !== null) byId("verdict").append(el("p", "notice", chip(place), " ", recorded(run.warning)));
  });
  chart(comparison, curves);
  differences(comparison);
  statisticsTable(comparison, definitions);
  notModelled(comparison);
}

showPage(() => main(DATA));
