"use strict";

// A run on the live market beside the simulated exchange: numbers of each fill model, and all fills side by side.

const DATA = JSON.parse(byId("data").textContent);

/** The numbers of the models: a row for each number, a column for each model. */
function numbers({ models }) {
  const both = ({ recorded, simulated }) => t("runAndSimulated", { run: grouped(recorded), simulated: grouped(simulated) });
  const pieces = (fills, shares) => t("piecesOfShares", { fills: grouped(fills), shares: grouped(shares) });
  const rows = [
    [t("sameAsRun"), (model) => t(model.identical ? "yes" : "no")],
    [t("orders"), (model) => both(model.orders)],
    [t("signals"), (model) => both(model.signals)],
    [t("fills"), (model) => both(model.fills)],
    [t("sharesMatched"), ({ fills }) => grouped(fills.shares_matched)],
    [t("missedFills"), ({ fills }) => pieces(fills.missed, fills.shares_missed)],
    [t("extraFills"), ({ fills }) => pieces(fills.extra, fills.shares_extra)],
    [t("simulatedCost"), ({ fills }) => yen(signed(fills.slippage))],
  ];
  const headCell = (scope, text, className) => {
    const cell = el("th", className, text);
    cell.scope = scope;
    return cell;
  };
  const head = el("tr", "", headCell("col", ""), ...models.map(({ model }) => headCell("col", known("model", model), "number")));
  const lines = rows.map(([name, value]) =>
    el("tr", "", headCell("row", name), ...models.map((model) => el("td", "number", value(model)))));
  const table = el("table", "compared", el("caption", "unseen", t("fillModels")), el("thead", "", head), el("tbody", "", ...lines));
  const frame = el("div", "scroll", table);
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", t("tableOf", { name: t("fillModels") }));
  byId("models").append(frame);
}

/** Seconds from the run's fill to the simulated one. */
function laterText(recorded, simulated) {
  if (recorded === null || simulated === null) return null;
  const text = ((simulated - recorded) / 1e6).toFixed(3);
  return /^-?0\.000$/.test(text) ? "0" : (text.startsWith("-") ? "" : "+") + text.replace("-", MINUS);
}

/** All fills of a model in one table. */
function fillsTable({ instruments }, { model, rows }) {
  const section = el("section", "");
  section.id = `model-${model}`;
  const heading = el("h2", "", t("fillsOfModel", { model: known("model", model) }));
  heading.id = `${section.id}-title`;
  section.setAttribute("aria-labelledby", heading.id);
  section.append(heading);
  byId("main").append(section);
  if (rows.total === 0) {
    section.append(el("p", "notice", t("noFills")));
    return;
  }
  const moment = (column) => (row) => (column[row] === null ? null : momentText(column[row]));
  const price = (column) => (row) => (column[row] === null ? null : money(column[row]));
  const result = (row) => rows.recorded[row] === null ? t("extra") : rows.simulated[row] === null ? t("missed") : t("inBoth");
  const tone = (row, text) => {
    const value = Number(rows.slippage[row]);
    return el("span", value < 0 ? "gain" : value > 0 ? "loss" : "", text);
  };
  new PagedTable(section, {
    name: heading.textContent, count: rows.count, total: rows.total, file: "journal",
    columns: [
      { head: t("jst", { head: t("timeInRun") }), text: moment(rows.recorded_us), plain: true },
      { head: t("order"), text: (row) => rows.order[row], quoted: true },
      { head: t("instrument"), text: (row) => instruments[rows.instrument[row]], optional: true, boring: instruments.length === 1 ? instruments[0] : undefined },
      { head: t("side"), text: (row) => known("side", rows.side[row]),
        node: (row, text) => el("span", rows.side[row] === "BUY" ? "side buy" : "side sell", text) },
      { head: t("shares"), number: true, text: (row) => grouped(rows.shares[row]) },
      { head: t("priceInRun"), number: true, text: price(rows.recorded) },
      { head: t("simulatedPrice"), number: true, text: price(rows.simulated) },
      { head: t("simulatedCost"), number: true, text: (row) => (rows.slippage[row] === null ? null : signed(rows.slippage[row])), node: tone },
      { head: t("secondsLater"), number: true, text: (row) => laterText(rows.recorded_us[row], rows.simulated_us[row]) },
      { head: t("jst", { head: t("simulatedTime") }), text: moment(rows.simulated_us), plain: true },
      { head: t("result"), text: result },
    ],
  });
}

function main(data) {
  const { run_id, run_kind, component, instruments, models, torn } = data;
  const same = models.some((model) => model.identical);
  document.title = `${component} \u00b7 ${t("titleLive")} \u00b7 ${known("runKind", run_kind)}`;
  byId("kind").textContent = known("runKind", run_kind);
  byId("subtitle").append(el("b", "", `${component} \u00b7 ${instruments.join(", ")}`), ` \u00b7 ${run_id}`);
  byId("verdict").append(el("p", "notice strong", t(same ? "liveSame" : "liveDiffers")));
  if (torn) byId("verdict").append(el("p", "notice", t("liveTorn")));
  numbers(data);
  models.forEach((model) => fillsTable(data, model));
}

showPage(() => main(DATA));
