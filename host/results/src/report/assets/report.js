"use strict";

// Puts the run's data into the page.

const DATA = JSON.parse(byId("data").textContent);

function showSection(id) {
  const section = byId(id);
  section.hidden = false;
  return section;
}

/** Goes to a section; the heading gets the focus so that reading goes on there. */
function goTo(id) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  byId(id).scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
  byId(`${id}-title`).focus({ preventScroll: true });
}

function header({ manifest, summary, curve, instruments }) {
  const { component, start, end } = manifest;
  const names = instruments.map(({ id }) => issueText(manifest, id)).join(", ");
  byId("strategy").textContent = component.name;
  const kind = known("runKind", manifest.run_kind ?? "replay");
  document.title = `${component.name} \u00b7 ${names} \u00b7 ${kind}`;
  byId("kind").textContent = kind;
  const status = byId("status");
  status.textContent = known("status", summary.status);
  status.classList.add(`is-${summary.status}`);
  const dates = start === end ? dayText(start) : t("fromTo", { from: dayText(start), to: dayText(end) });
  byId("subtitle").replaceChildren(
    el("b", "", names), " \u00b7 ", dates, " \u00b7 ",
    t(manifest.run_kind === undefined ? "replayedBy" : "seenBy", { granularity: known("granularity", manifest.granularity) }));
  verdict(byId("verdict"), manifest, summary, curve);
  byId("facts").append(
    fact(t("parameters"), parameters(inEffect(manifest))),
    fact(t("digest"), el("span", "", el("code", "", manifest.event_log_digest),
      " ", t("digestOver", { records: grouped(manifest.event_log_records) }))),
  );
}

/** The id of an issue, with its name where the run's data has one. */
function issueText(manifest, id) {
  const name = manifest.names?.[id];
  return name === undefined ? id : `${id} ${visibleName(name)}`;
}

/** What a reader must know before the numbers. */
function verdict(host, { fault, warning }, summary, curve) {
  if (fault !== null) {
    const box = el("div", "alert", el("h2", "", t("failed")), el("p", "", t("failedHint")), el("pre", "", fault));
    box.setAttribute("role", "alert");
    host.append(box);
  } else if (summary.status === "interrupted") {
    host.append(el("p", "notice strong",
      t("interrupted", { last: momentOf(summary.last_trade) })));
  }
  if (warning !== null) host.append(el("p", "notice strong", recorded(warning)));
  if (curve.step > 1) {
    host.append(el("p", "notice",
      t("thinned", { minutes: grouped(curve.minutes), step: curve.step })));
  }
}

function fact(name, value) {
  return el("div", "", el("h2", "fact", name), value);
}

/** The parameters in effect, defaults included, over those that were given. */
function inEffect({ parameters: given, parameters_effective: effective }) {
  const isObject = typeof given === "object" && given !== null && !Array.isArray(given);
  return isObject ? { ...given, ...effective } : given;
}

/** The parameters: one entry each, or the text where they are no object. */
function parameters(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return el("pre", "", typeof value === "string" ? value : JSON.stringify(value));
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return el("span", "muted", t("none"));
  const list = el("ul", "params");
  for (const [key, one] of entries) {
    const text = typeof one === "string" ? one : JSON.stringify(one);
    list.append(el("li", "", el("span", "key", key), " ", el("code", "", text)));
  }
  return list;
}

function cards({ manifest, summary }) {
  showSection("summary");
  const list = byId("cards");
  const card = (name, value, note, tone = "") =>
    list.append(el("div", `card ${tone}`, el("dt", "", name),
      el("dd", "value", ...[value].flat()), el("dd", "note", ...[note].flat())));
  const tone = summary.profit.startsWith("-") ? "loss" : summary.profit === "0" ? "" : "gain";
  const yenOf = (text) => yen(money(text));
  const ratio = summary.return_ratio;
  const big = (text) => [text, el("span", "unit", t("yenUnit"))];
  card(t("profit"), big(signed(summary.profit)), t("profitNote", { amount: yenOf(summary.realised_pnl) }), tone);
  card(t("return"), ratio === null ? "\u2013" : (ratio > 0 ? "+" : "") + percent(ratio, 2),
    t("returnNote", { amount: yenOf(summary.cash_start) }), tone);
  card(t("finalEquity"), big(money(summary.equity_end)),
    t("equityNote", { cash: money(summary.cash_end), shares: grouped(summary.position_end) }));
  card(t("maxDrawdown"), big(money(summary.max_drawdown)),
    t("drawdownNote", { percent: percent(summary.max_drawdown_ratio, 2) }));
  card(t("statistic.sharpe"), statisticText(summary.sharpe, "number") ?? "\u2013",
    t("sharpeNote", { sortino: statisticText(summary.sortino, "number") ?? "\u2013", calmar: statisticText(summary.calmar, "number") ?? "\u2013" }));
  card(t("orders"), grouped(summary.orders), orderNote(summary));
  card(t("fills"), grouped(summary.fills), t("fillsNote", { fees: yenOf(summary.commission), slippage: yenOf(summary.slippage) }));
  card(t("roundTrips"), grouped(summary.round_trips),
    summary.win_rate === null ? t("neverFlat") : t("withProfit", { percent: percent(summary.win_rate, 1) }));
  card(t("marketShare"), percent(summary.participation, 3),
    t("marketShareNote", { ours: grouped(summary.our_volume), all: grouped(summary.market_volume) }));
  card(t(manifest.granularity === "trade" ? "tradesSeen" : "barsSeen"), grouped(summary.trades_seen), summary.trades_seen === 0 ? t("noDataThen")
    : [unbroken(shortMoment(summary.first_trade)), t("to"), unbroken(`${shortMoment(summary.last_trade)} JST`)]);
}

/** The parts of all orders that are not zero. */
function orderNote(summary) {
  const parts = [["ordersFilled", summary.orders_filled], ["ordersRejected", summary.orders_rejected],
    ["ordersExpired", summary.orders_expired], ["ordersCancelled", summary.orders_canceled]];
  const some = parts.filter(([, count]) => count > 0).map(([key, count]) => t(key, { count: grouped(count) }));
  return some.length > 0 ? some.join(t("comma")) : t("noneDone");
}

/** `2025-01-06 09:00:00.007835 JST` without the fraction. */
const shortMoment = (text) => momentOf(text.slice(0, 16));

/** A text that stays on one line. */
const unbroken = (text) => el("span", "unbroken", text);

function charts(data) {
  if (data.curve.minutes === 0) {
    showSection("equity").replaceChildren(byId("equity-title"),
      el("p", "notice", t("nothingToDraw")));
    return null;
  }
  showSection("equity");
  showSection("price");
  const time = new TradingTime(data.curve);
  const view = new View(time.count);
  const charts = new RunCharts(data, time, view);
  instrumentPicker(byId("zoom-price"), charts);
  zoomControls(byId("zoom"), time, view);
  zoomControls(byId("zoom-price"), time, view);
  const legend = (kind, text) => el("span", "", el("i", `mark ${kind}`), text);
  byId("legend").append(legend("buy", t("buy")), legend("sell", t("sell")));
  if (data.signals.total > 0) byId("legend").append(legend("signal", t("signal")));
  byId("legend").append(el("span", "muted", t("triangles")));
  const { count, total } = data.fills;
  if (count < total) {
    byId("legend").append(el("span", "muted",
      t("fillsMarked", { count: grouped(count), total: grouped(total) })));
  }
  return { time, view, charts };
}

/** Which instrument the price chart shows, where there are several. */
function instrumentPicker(host, charts) {
  if (charts.instruments.length < 2) return;
  const pick = el("select");
  pick.setAttribute("aria-label", t("instrument"));
  charts.instruments.forEach(({ id }, place) => pick.append(new Option(issueText(DATA.manifest, id), String(place))));
  pick.addEventListener("change", () => charts.showInstrument(Number(pick.value)));
  charts.picker = pick;
  host.append(pick);
}

function method({ manifest, instruments }) {
  showSection("method");
  for (const [name, text] of rulesInOrder(manifest.rules)) {
    byId("rules").append(el("div", "", el("dt", "", name), el("dd", "", ruleText(name, text))));
  }
  const { latency_ns: latency, queue_ahead: queue, ...model } = manifest.execution_model;
  const fees = model.commission;
  byId("model").append(pairs(t("exchangeParameters"), [
    [t("latency"), t("latencyValue", { ms: decimalText(latency, 6).replace(/\.?0+$/, "") })],
    [t("slippage"), t("slippageValue", { ticks: grouped(model.slippage_ticks) })],
    [t("participation"), t("participationValue", { percent: model.participation_percent })],
    [t("queueAhead"), queue === null ? t("queueEndless") : t("queueValue", { shares: grouped(queue) })],
    [t("commission"), fees === "none" ? t("none") : typeof fees === "string" ? fees : el("code", "", JSON.stringify(fees))],
    [t("mostOrders"), grouped(model.orders_max)],
  ]));
  byId("options").append(pairs(t("runOptions"), [
    [t("instruments"), instruments.map(({ id }) => issueText(manifest, id)).join(", ")],
    [t("firstDate"), dayText(manifest.start)],
    [t("lastDate"), dayText(manifest.end)],
    [t("granularity"), known("granularity", manifest.granularity)],
    [t("cashStart"), yen(money(manifest.cash))],
    [t("tradingUnit"), t("sharesValue", { shares: manifest.lot })],
    [t("priceSteps"), manifest.ticks],
    [t("notes"), (manifest.notes ?? []).length > 0
      ? el("ul", "plain-list", ...manifest.notes.map((note) => el("li", "", recorded(note)))) : t("nothingToNote")],
    [t("window"), t(manifest.window > 1 ? "windowAbove" : "windowValue", { window: grouped(manifest.window) })],
    [t("parametersGiven"), el("code", "", JSON.stringify(manifest.parameters))],
    [t("parametersInEffect"), el("code", "", JSON.stringify(manifest.parameters_effective ?? {}))],
    [t("eventLog"), el("span", "", el("code", "", manifest.event_log_digest), " ", t("records", { records: grouped(manifest.event_log_records) }))],
    ["Kumiki", manifest.kumiki_version],
    [t("manifestVersion"), String(manifest.manifest_version)],
  ]));
  inputs(manifest.inputs);
  const { component } = manifest;
  const imports = el("ul", "plain-list", ...component.imports.map((name) => el("li", "", el("code", "", name))));
  byId("component").append(pairs(t("component"), [
    [t("name"), component.name],
    ["SHA-256", el("code", "", component.sha256)],
    [t("imports"), component.imports.length > 0 ? imports : t("none")],
  ]));
}

function inputs(files) {
  const host = byId("inputs");
  if (files.length === 0) {
    host.append(el("p", "muted", t("none")));
    return;
  }
  const row = (tag, name, rows, hash) => {
    const cells = [[name, ""], [rows, "number"], [hash, ""]].map(([content, className]) => el(tag, className, content));
    if (tag === "th") for (const cell of cells) cell.scope = "col";
    return el("tr", "", ...cells);
  };
  const body = files.map((file) => row("td", file.file, grouped(file.rows), el("code", "", file.xxh3_128)));
  host.append(el("div", "scroll", el("table", "", el("caption", "unseen", t("dataFiles")),
    el("thead", "", row("th", t("file"), t("rowsUsed"), "xxh3-128")), el("tbody", "", ...body))));
}

/** Links to the sections that the run has. */
function contents() {
  for (const section of document.querySelectorAll("main > section:not([hidden])")) {
    const link = el("a", "", section.querySelector("h2").textContent);
    link.href = `#${section.id}`;
    byId("contents").append(link);
  }
}

function main(data) {
  if (data === null) {
    byId("verdict").append(el("p", "notice strong", t("noPageData")));
    return;
  }
  const { orders, fills, round_trips: trips, signals, narrative, log } = data;
  orders.moments = fromDifferences(orders.ts_submitted_ns);
  orders.updated = fromDifferences(orders.ts_last_ns);
  trips.moments = fromDifferences(trips.ts_entry_ns);
  trips.exits = fromDifferences(trips.ts_exit_ns);
  for (const table of [fills, signals, narrative, log]) table.moments = fromDifferences(table.ts_event_ns);
  header(data);
  cards(data);
  const drawn = charts(data);
  statistics(data);
  calendar(data);
  const links = tableLinks(data);
  tripsTable(data, drawn, links);
  ordersTable(data, drawn, links);
  fillsTable(data, drawn, links);
  signalsTable(data, drawn);
  narrativeTable(data, drawn, links);
  logTable(data, drawn);
  method(data);
  contents();
}

showPage(() => main(DATA));
