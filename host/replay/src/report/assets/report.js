"use strict";

// Puts the run's data into the page.

const DATA = JSON.parse(byId("data").textContent);

/** Adds a column of absolute times to a table that was sent with differences. */
function withMoments(table, differences) {
  table.moments = fromDifferences(differences);
}

/** The id of a fill's order; the fill holds a row number or, without a row, the id. */
function orderIdOf(fills, orders, row) {
  const order = fills.order[row];
  return typeof order === "number" ? orders.id[order] : order;
}

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

function header({ manifest, summary, fault, curve }) {
  const { component, start, end } = manifest;
  byId("strategy").textContent = component.name;
  document.title = `${component.name} \u00b7 ${manifest.instrument_id} \u00b7 Kumiki replay`;
  const status = byId("status");
  status.textContent = summary.status;
  status.classList.add(`is-${summary.status}`);
  const dates = start === end ? start : `${start} to ${end}`;
  byId("subtitle").replaceChildren(
    el("b", "", manifest.instrument_id), " \u00b7 ", dates, ` \u00b7 replayed by ${manifest.granularity}`);
  const verdict = byId("verdict");
  if (fault !== null) {
    const box = el("div", "alert", el("h2", "", "The strategy failed"),
      el("p", "", "The results below are partial: they go up to the failure."),
      el("pre", "", fault));
    box.setAttribute("role", "alert");
    verdict.append(box);
  } else if (summary.status === "interrupted") {
    verdict.append(el("p", "notice strong",
      `The run was interrupted: all results are partial and go up to ${summary.last_trade}.`));
  }
  if (curve.step > 1) {
    verdict.append(el("p", "notice",
      `The run has ${grouped(curve.minutes)} minutes with trades; the charts show one point for every ` +
      `${curve.step} of them, with the values at the end. The drawdown is the deepest inside each. ` +
      "equity.csv holds every minute."));
  }
  byId("facts").append(
    fact("Parameters", parameters(manifest.parameters)),
    fact("Event-log digest", el("span", "", el("code", "", manifest.event_log_digest),
      ` over ${grouped(manifest.event_log_records)} records; equal digests mean that the same happened`)),
  );
}

function fact(name, value) {
  return el("div", "", el("h2", "fact", name), value);
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

function cards({ summary, market_volume, our_volume }) {
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
  card("Orders", grouped(summary.orders), orderNote(summary));
  card("Fills", grouped(summary.fills), `${yen(summary.commission)} of fees`);
  card("Round trips", grouped(summary.round_trips),
    summary.win_rate === null ? "never back to flat" : `${percent(summary.win_rate, 1)} with a profit`);
  card("Turnover", big(money(summary.turnover)), "bought and sold");
  card("Share of the market", percent(summary.participation, 3),
    `${grouped(our_volume)} of ${grouped(market_volume)} shares`);
  card("Trades seen", grouped(summary.trades_seen), summary.trades_seen === 0 ? "no data in these dates"
    : [unbroken(shortMoment(summary.first_trade)), " to ", unbroken(`${shortMoment(summary.last_trade)} JST`)]);
}

/** The parts of all orders that are not zero. */
function orderNote(summary) {
  const parts = [["filled", summary.orders_filled], ["refused", summary.orders_rejected],
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
  new Charts(data, time, view);
  zoomControls(byId("zoom"), time, view);
  zoomControls(byId("zoom-price"), time, view);
  const legend = (kind, text) => el("span", "", el("i", `mark ${kind}`), text);
  byId("legend").append(legend("buy", "Buy"), legend("sell", "Sell"));
  if (data.signals.total > 0) byId("legend").append(legend("signal", "Signal"));
  byId("legend").append(el("span", "muted", "The tip of a triangle is at the price of the fill."));
  return { time, view };
}

/** A time that shows its moment in the price chart. */
function timeColumn(head, moments, drawn) {
  const show = (row) => {
    const x = drawn.time.at(moments[row]);
    drawn.view.show(x - 30 / drawn.time.step, x + 30 / drawn.time.step);
    goTo("price");
  };
  const node = (row, text) => {
    const link = button(text, () => show(row), "link");
    link.title = "Show in the price chart";
    return link;
  };
  const text = (row) => (moments[row] === null ? null : momentText(moments[row]));
  return { head: `${head} (JST)`, text, plain: true, node: drawn ? node : undefined };
}

function ordersTable({ orders, fills, manifest }, drawn, links) {
  if (orders.total === 0) return;
  const counts = new Array(orders.id.length).fill(0);
  for (const order of fills.order) if (typeof order === "number") counts[order] += 1;
  const updated = orders.updated;
  const instrument = (row) => (orders.instrument[row] === 0 ? manifest.instrument_id : String(orders.instrument[row]));
  const reason = (row) => {
    const code = word(orders.reason_code, row);
    return code === null ? null : `${code}: ${word(orders.reason, row)}`;
  };
  links.orders = new PagedTable(showSection("orders"), {
    name: "Orders", count: orders.id.length, total: orders.total, file: "orders.csv",
    columns: [
      timeColumn("Sent", orders.moments, drawn),
      { head: "Order", text: (row) => orders.id[row] },
      { head: "Instrument", text: instrument, optional: true, boring: manifest.instrument_id },
      { head: "Side", text: (row) => word(orders.side, row), node: sideNode },
      { head: "Type", text: (row) => word(orders.order_type, row) },
      { head: "Lives", text: (row) => word(orders.time_in_force, row) },
      { head: "Shares", number: true, text: (row) => grouped(orders.quantity[row]) },
      { head: "Limit", number: true, optional: true, text: (row) => amount(orders.price, row) },
      { head: "Trigger", number: true, optional: true, text: (row) => amount(orders.trigger, row) },
      { head: "Filled", number: true, text: (row) => grouped(orders.filled[row]) },
      { head: "Average", number: true, optional: true, text: (row) => amount(orders.average, row) },
      { head: "Status", text: (row) => word(orders.status, row) },
      { head: "Fills", number: true, text: (row) => (counts[row] === 0 ? null : String(counts[row])),
        node: (row, text) => links.toFills(text, row) },
      { head: "Reason", optional: true, wide: true, text: reason },
      { head: "Last change (JST)", text: (row) => momentText(updated[row]), plain: true },
      { head: "Venue order", optional: true, text: (row) => orders.venue_id[row] },
    ],
  });
}

function fillsTable({ fills, orders }, drawn, links) {
  if (fills.total === 0) return;
  links.fills = new PagedTable(showSection("fills"), {
    name: "Fills", count: fills.moments.length, total: fills.total, file: "fills.csv",
    columns: [
      timeColumn("Time", fills.moments, drawn),
      { head: "Order", text: (row) => orderIdOf(fills, orders, row), node: (_, text) => links.toOrder(text) },
      { head: "Fill", text: (row) => fills.trade_id[row] },
      { head: "Side", text: (row) => word(fills.side, row), node: sideNode },
      { head: "Price", number: true, text: (row) => amount(fills.price, row) },
      { head: "Shares", number: true, text: (row) => grouped(fills.quantity[row]) },
      { head: "Order done", number: true, text: (row) => grouped(fills.cumulative[row]) },
      { head: "Order open", number: true, text: (row) => grouped(fills.leaves[row]) },
      { head: "Fee", number: true, optional: true, boring: "0", text: (row) => amount(fills.commission, row) },
    ],
  });
}

function sideNode(_, text) {
  return el("span", text === "BUY" ? "side buy" : "side sell", text);
}

function signalsTable({ signals }, drawn) {
  if (signals.total === 0) return;
  new PagedTable(showSection("signals"), {
    name: "Signals", count: signals.moments.length, total: signals.total, file: "signals.csv",
    columns: [
      timeColumn("Time", signals.moments, drawn),
      { head: "Kind", text: (row) => word(signals.kind, row) },
      { head: "Side", optional: true, text: (row) => word(signals.side, row), node: sideNode },
      { head: "Price", number: true, optional: true, text: (row) => amount(signals.price, row) },
      { head: "Tag", optional: true, text: (row) => word(signals.tag, row) },
      { head: "Note", optional: true, wide: true, text: (row) => word(signals.note, row) },
    ],
  });
}

function narrativeTable({ narrative }, drawn, links) {
  if (narrative.total === 0) return;
  new PagedTable(showSection("narrative"), {
    name: "Decisions", count: narrative.moments.length, total: narrative.total, file: "narrative.csv",
    columns: [
      timeColumn("Time", narrative.moments, drawn),
      { head: "Order", optional: true, text: (row) => narrative.order[row], node: (_, text) => links.toOrder(text) },
      { head: "Decision", wide: true, text: (row) => word(narrative.title, row) },
      { head: "Why", wide: true, text: (row) => word(narrative.body, row) },
    ],
  });
}

function logTable({ log }, drawn) {
  if (log.total === 0) return;
  new PagedTable(showSection("log"), {
    name: "Log", count: log.at.length, total: log.total, file: "log.csv",
    columns: [
      timeColumn("Time", log.at, drawn),
      { head: "Level", text: (row) => word(log.level, row), node: (_, text) => el("span", `level ${text}`, text) },
      { head: "Message", wide: true, text: (row) => word(log.message, row) },
    ],
  });
}

/** Links between the tables of orders and fills. */
function tableLinks({ fills, orders }) {
  const links = {
    toOrder: (id) => linkTo(id, () => {
      links.orders?.showOnly({ name: `order ${id}`, accept: (row) => orders.id[row] === id });
      goTo("orders");
    }, "Show the order"),
    toFills: (text, order) => linkTo(text, () => {
      links.fills?.showOnly({ name: `fills of order ${orders.id[order]}`, accept: (row) => fills.order[row] === order });
      goTo("fills");
    }, "Show the fills of this order"),
  };
  return links;
}

function linkTo(text, action, title) {
  const link = button(text, action, "link");
  link.title = title;
  return link;
}

function method({ manifest }) {
  showSection("method");
  for (const [name, text] of Object.entries(manifest.rules)) {
    byId("rules").append(el("div", "", el("dt", "", name), el("dd", "", text)));
  }
  const model = manifest.execution_model;
  byId("model").append(pairs("Parameters of the exchange", [
    ["Latency", `${decimalText(model.latency_ns, 6).replace(/\.?0+$/, "")} ms from sending to arrival`],
    ["Slippage", `${grouped(model.slippage_ticks)} ${model.slippage_ticks === 1 ? "tick" : "ticks"} for orders that take liquidity`],
    ["Participation", `${model.participation_percent}\u00a0% of each trade's shares at most`],
  ]));
  byId("options").append(pairs("Options of the run", [
    ["Instrument", manifest.instrument_id],
    ["First date (JST)", manifest.start],
    ["Last date (JST)", manifest.end],
    ["Granularity", manifest.granularity],
    ["Cash at the start", `${money(manifest.cash)} yen`],
    ["Trading unit", `${grouped(manifest.lot)} shares`],
    ["Price steps", manifest.ticks],
    ["Trades handed over at once", `${grouped(manifest.window)} (does not change results)`],
    ["Parameters", el("code", "", JSON.stringify(manifest.parameters))],
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
  withMoments(data.orders, data.orders.submitted);
  data.orders.updated = fromDifferences(data.orders.last);
  for (const table of [data.fills, data.signals, data.narrative]) withMoments(table, table.at);
  header(data);
  cards(data);
  const drawn = charts(data);
  const links = tableLinks(data);
  ordersTable(data, drawn, links);
  fillsTable(data, drawn, links);
  signalsTable(data, drawn);
  narrativeTable(data, drawn, links);
  logTable(data, drawn);
  method(data);
  contents();
}

main(DATA);
