"use strict";

// A run on the live market beside the simulated exchange: numbers of each replay and fill model, and all fills side by
// side.

const DATA = JSON.parse(byId("data").textContent);

/** What a column is called: the strategy's replay, or its orders by a fill model. */
function sideName({ kind, model }) {
  return t(kind === "replay" ? "replayWith" : "ordersBy", { model: known("model", model) });
}

/** The numbers: a row for each, a column for each replay and fill model. */
function numbers({ sides }) {
  const both = ({ recorded, simulated }) => t("runAndSimulated", { run: grouped(recorded), simulated: grouped(simulated) });
  const pieces = (fills, shares) => t("piecesOfShares", { fills: grouped(fills), shares: grouped(shares) });
  const ofReplay = (value) => (side) => (side.kind === "replay" ? value(side) : "");
  const ofModel = (value) => (side) => (side.kind === "model" ? value(side) : "");
  const all = [
    ["replay", t("sameAsRun"), ofReplay(({ identical }) => t(identical ? "yes" : "no"))],
    ["replay", t("orders"), ofReplay(({ orders }) => both(orders))],
    ["replay", t("signals"), ofReplay(({ signals }) => both(signals))],
    ["model", t("ordersAgain"), ofModel(({ orders }) => grouped(orders))],
    ["model", t("ordersRejected"), ofModel(({ rejected }) => grouped(rejected))],
    ["model", t("ordersLeftOut"), ofModel(({ left_out }) => grouped(left_out))],
  ].filter(([kind]) => sides.some((side) => side.kind === kind)).map(([, ...row]) => row);
  const rows = [
    ...all,
    [t("fills"), ({ fills }) => both(fills)],
    [t("sharesMatched"), ({ fills }) => grouped(fills.shares_matched)],
    [t("missedFills"), ({ fills }) => pieces(fills.missed, fills.shares_missed)],
    [t("extraFills"), ({ fills }) => pieces(fills.extra, fills.shares_extra)],
    [t("simulatedCost"), ({ fills }) => yen(signed(fills.slippage))],
    [t("secondsLater"), ({ fills }) => (fills.later_ms === null ? "" : laterText(0, fills.later_ms * 1e3))],
  ];
  const headCell = (scope, text, className) => {
    const cell = el("th", className, text);
    cell.scope = scope;
    return cell;
  };
  const head = el("tr", "", headCell("col", ""), ...sides.map((side) => headCell("col", sideName(side), "number")));
  const lines = rows.map(([name, value]) =>
    el("tr", "", headCell("row", name), ...sides.map((side) => el("td", "number", value(side)))));
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

/** All fills of a replay or a fill model in one table. */
function fillsTable({ instruments }, side) {
  const { kind, model, rows } = side;
  const section = el("section", "");
  section.id = `${kind}-${model}`;
  const heading = el("h2", "", t("fillsOfModel", { model: sideName(side) }));
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
  const { run_id, run_kind, component, instruments, identical, sides, torn, ended } = data;
  document.title = `${component} \u00b7 ${t("titleLive")} \u00b7 ${known("runKind", run_kind)}`;
  byId("kind").textContent = known("runKind", run_kind);
  byId("subtitle").append(el("b", "", `${component} \u00b7 ${instruments.join(", ")}`), ` \u00b7 ${run_id}`);
  if (identical !== null) byId("verdict").append(el("p", "notice strong", t(identical ? "liveSame" : "liveDiffers")));
  if (!ended) byId("verdict").append(el("p", "notice", t("liveNotEnded")));
  if (torn) byId("verdict").append(el("p", "notice", t("liveTorn")));
  numbers(data);
  sides.forEach((side) => fillsTable(data, side));
}

showPage(() => main(DATA));
