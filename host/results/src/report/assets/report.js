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
  const names = instruments.map(({ id }) => id).join(", ");
  byId("strategy").textContent = component.name;
  document.title = `${component.name} \u00b7 ${names} \u00b7 Kumiki replay`;
  const status = byId("status");
  status.textContent = summary.status;
  status.classList.add(`is-${summary.status}`);
  const dates = start === end ? start : `${start} to ${end}`;
  byId("subtitle").replaceChildren(
    el("b", "", names), " \u00b7 ", dates, ` \u00b7 replayed by ${manifest.granularity}`);
  verdict(byId("verdict"), manifest, summary, curve);
  byId("facts").append(
    fact("Parameters", parameters(inEffect(manifest))),
    fact("Event-log digest", el("span", "", el("code", "", manifest.event_log_digest),
      ` over ${grouped(manifest.event_log_records)} records; equal digests mean that the same happened`)),
  );
}

/** What a reader must know before the numbers. */
function verdict(host, { fault, warning }, summary, curve) {
  if (fault !== null) {
    const box = el("div", "alert", el("h2", "", "The strategy failed"),
      el("p", "", "The results below are partial: they go up to the failure."),
      el("pre", "", fault));
    box.setAttribute("role", "alert");
    host.append(box);
  } else if (summary.status === "interrupted") {
    host.append(el("p", "notice strong",
      `The run was interrupted: all results are partial and go up to ${summary.last_trade}.`));
  }
  if (warning !== null) host.append(el("p", "notice strong", warning));
  if (curve.step > 1) {
    host.append(el("p", "notice",
      `The run has ${grouped(curve.minutes)} minutes with trades; the charts show one point for every ` +
      `${curve.step} of them, with the values at the end. The drawdown is the deepest inside each. ` +
      "equity.csv holds every minute."));
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
  if (entries.length === 0) return el("span", "muted", "none");
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
  const yen = (text) => `${money(text)} yen`;
  const ratio = summary.return_ratio;
  const big = (text) => [text, el("span", "unit", " yen")];
  card("Profit", big(signed(summary.profit)), `${yen(summary.realised_pnl)} from shares sold, before fees`, tone);
  card("Return", ratio === null ? "\u2013" : (ratio > 0 ? "+" : "") + percent(ratio, 2),
    `on ${yen(summary.cash_start)} at the start`, tone);
  card("Final equity", big(money(summary.equity_end)),
    `${money(summary.cash_end)} in cash, ${grouped(summary.position_end)} shares held`);
  card("Max drawdown", big(money(summary.max_drawdown)),
    `${percent(summary.max_drawdown_ratio, 2)} below the highest equity so far`);
  card("Sharpe ratio", statisticText(summary.sharpe, "number") ?? "\u2013",
    `Sortino ${statisticText(summary.sortino, "number") ?? "\u2013"}, Calmar ${statisticText(summary.calmar, "number") ?? "\u2013"}`);
  card("Orders", grouped(summary.orders), orderNote(summary));
  card("Fills", grouped(summary.fills), `${yen(summary.commission)} of fees, ${yen(summary.slippage)} of slippage`);
  card("Round trips", grouped(summary.round_trips),
    summary.win_rate === null ? "never back to flat" : `${percent(summary.win_rate, 1)} with a profit`);
  card("Share of the market", percent(summary.participation, 3),
    `${grouped(summary.our_volume)} of ${grouped(summary.market_volume)} shares`);
  card(manifest.granularity === "trade" ? "Trades seen" : "Bars seen", grouped(summary.trades_seen), summary.trades_seen === 0 ? "no data in these dates"
    : [unbroken(shortMoment(summary.first_trade)), " to ", unbroken(`${shortMoment(summary.last_trade)} JST`)]);
}

/** The parts of all orders that are not zero. */
function orderNote(summary) {
  const parts = [["filled", summary.orders_filled], ["rejected", summary.orders_rejected],
    ["expired", summary.orders_expired], ["cancelled", summary.orders_canceled]];
  const some = parts.filter(([, count]) => count > 0).map(([name, count]) => `${grouped(count)} ${name}`);
  return some.length > 0 ? some.join(", ") : "none done";
}

/** `2025-01-06 09:00:00.007835 JST` without the fraction. */
const shortMoment = (text) => text.slice(0, 16);

/** A text that stays on one line. */
const unbroken = (text) => el("span", "unbroken", text);

function charts(data) {
  if (data.curve.minutes === 0) {
    showSection("equity").replaceChildren(byId("equity-title"),
      el("p", "notice", "No trades were seen, so there is nothing to draw."));
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
  byId("legend").append(legend("buy", "Buy"), legend("sell", "Sell"));
  if (data.signals.total > 0) byId("legend").append(legend("signal", "Signal"));
  byId("legend").append(el("span", "muted", "The tip of a triangle is at the price of the fill."));
  const { count, total } = data.fills;
  if (count < total) {
    byId("legend").append(el("span", "muted",
      `Only the first ${grouped(count)} of ${grouped(total)} fills are marked; fills.csv holds all.`));
  }
  return { time, view, charts };
}

/** Which instrument the price chart shows, where there are several. */
function instrumentPicker(host, charts) {
  if (charts.instruments.length < 2) return;
  const pick = el("select");
  pick.setAttribute("aria-label", "Instrument");
  charts.instruments.forEach(({ id }, place) => pick.append(new Option(id, String(place))));
  pick.addEventListener("change", () => charts.showInstrument(Number(pick.value)));
  charts.picker = pick;
  host.append(pick);
}

function method({ manifest, instruments }) {
  showSection("method");
  for (const [name, text] of Object.entries(manifest.rules)) {
    byId("rules").append(el("div", "", el("dt", "", name), el("dd", "", text)));
  }
  const { latency_ns: latency, queue_ahead: queue, ...model } = manifest.execution_model;
  const fees = model.commission;
  byId("model").append(pairs("Parameters of the exchange", [
    ["Latency", `${decimalText(latency, 6).replace(/\.?0+$/, "")} ms from sending to arrival`],
    ["Slippage", `${grouped(model.slippage_ticks)} ${model.slippage_ticks === 1 ? "tick" : "ticks"} for orders that take liquidity`],
    ["Participation", `${model.participation_percent}\u00a0% of each trade's shares at most`],
    ["Queue ahead", queue === null ? "endless: a touch never fills a resting order"
      : `${grouped(queue)} shares trade at a resting order's price before a touch fills it`],
    ["Commission", typeof fees === "string" ? fees : el("code", "", JSON.stringify(fees))],
    ["Most orders", grouped(model.orders_max)],
  ]));
  byId("options").append(pairs("Options of the run", [
    ["Instruments", instruments.map(({ id }) => id).join(", ")],
    ["First date (JST)", manifest.start],
    ["Last date (JST)", manifest.end],
    ["Granularity", manifest.granularity],
    ["Cash at the start", `${money(manifest.cash)} yen`],
    ["Trading unit", `${manifest.lot} shares`],
    ["Price steps", manifest.ticks],
    ["Instruments and price ranges", (manifest.notes ?? []).length > 0
      ? el("ul", "plain-list", ...manifest.notes.map((note) => el("li", "", note))) : "nothing to note"],
    ["Trades handed over at once", `${grouped(manifest.window)} (does not change results)`],
    ["Parameters given", el("code", "", JSON.stringify(manifest.parameters))],
    ["Parameters in effect", el("code", "", JSON.stringify(manifest.parameters_effective ?? {}))],
    ["Event log", el("span", "", el("code", "", manifest.event_log_digest), `, ${grouped(manifest.event_log_records)} records`)],
    ["Kumiki", manifest.kumiki_version],
    ["Manifest version", String(manifest.manifest_version)],
  ]));
  inputs(manifest.inputs);
  const { component } = manifest;
  const imports = el("ul", "plain-list", ...component.imports.map((name) => el("li", "", el("code", "", name))));
  byId("component").append(pairs("Strategy component", [
    ["Name", component.name],
    ["SHA-256", el("code", "", component.sha256)],
    ["Imports", component.imports.length > 0 ? imports : "none"],
  ]));
}

function inputs(files) {
  const host = byId("inputs");
  if (files.length === 0) {
    host.append(el("p", "muted", "none"));
    return;
  }
  const row = (tag, name, rows, hash) => {
    const cells = [[name, ""], [rows, "number"], [hash, ""]].map(([content, className]) => el(tag, className, content));
    if (tag === "th") for (const cell of cells) cell.scope = "col";
    return el("tr", "", ...cells);
  };
  const body = files.map((file) => row("td", file.file, grouped(file.rows), el("code", "", file.xxh3_128)));
  host.append(el("div", "scroll", el("table", "", el("caption", "unseen", "Data files"),
    el("thead", "", row("th", "File", "Rows used", "xxh3-128")), el("tbody", "", ...body))));
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
    byId("verdict").append(el("p", "notice strong", "This page's data could not be written; see the files beside it."));
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

main(DATA);
