"use strict";

// The tables of a run, and the ways between them.

/** A time that shows its moment in the price chart. */
function timeColumn(head, moments, drawn, instrumentOf) {
  const show = (row) => {
    if (instrumentOf) drawn.charts.pickInstrument(instrumentOf(row));
    const x = drawn.time.at(moments[row]);
    drawn.view.show(x - 30 / drawn.time.step, x + 30 / drawn.time.step);
    goTo("price");
  };
  const node = (row, text) => {
    const link = button(text, () => show(row), "link");
    link.title = t("showInChart");
    return link;
  };
  const text = (row) => (moments[row] === null ? null : momentText(moments[row]));
  return { head: t("jst", { head }), text, plain: true, node: drawn ? node : undefined };
}

/** The instrument of a row; left out of a table where all rows have the same. */
function instrumentColumn(table) {
  const first = table.count > 0 ? word(table.instrument_id, 0) : null;
  return { head: t("instrument"), text: (row) => word(table.instrument_id, row), optional: true, boring: first };
}

function tripsTable({ round_trips: trips }, drawn, links) {
  if (trips.total === 0) return;
  const instrumentOf = (row) => word(trips.instrument_id, row);
  const amountNode = (column) => (row, text) => {
    const value = Number(column.values[row]);
    return el("span", value > 0 ? "gain" : value < 0 ? "loss" : "", text);
  };
  new PagedTable(showSection("trips"), {
    name: t("roundTrips"), count: trips.count, total: trips.total, file: "round_trips.csv",
    columns: [
      timeColumn(t("entry"), trips.moments, drawn, instrumentOf),
      timeColumn(t("exit"), trips.exits, drawn, instrumentOf),
      instrumentColumn(trips),
      { head: t("entrySide"), text: (row) => sideText(trips.entry_side, row), node: sideNode(trips.entry_side), optional: true, boring: known("side", "BUY") },
      { head: t("shares"), number: true, text: (row) => grouped(trips.quantity[row]) },
      { head: t("boughtAt"), number: true, text: (row) => amount(trips.buy_price, row) },
      { head: t("soldAt"), number: true, text: (row) => amount(trips.sell_price, row) },
      { head: t("profit"), number: true, text: (row) => amount(trips.pnl, row), node: amountNode(trips.pnl) },
      { head: t("worst"), number: true, text: (row) => amount(trips.mae, row) },
      { head: t("best"), number: true, text: (row) => amount(trips.mfe, row) },
      { head: t("fees"), number: true, optional: true, boring: "0", text: (row) => amount(trips.commission, row) },
      { head: t("timeHeld"), number: true, text: (row) => durationText(trips.duration_ns[row]) },
      { head: t("fills"), number: true, text: (row) => grouped(trips.fills[row]) },
      { head: t("entryOrder"), text: (row) => trips.entry_order_id[row], node: (_, text) => links.toOrder(text) },
      { head: t("exitOrder"), text: (row) => trips.exit_order_id[row], node: (_, text) => links.toOrder(text) },
    ],
  });
}

function ordersTable({ orders, fills }, drawn, links) {
  if (orders.total === 0) return;
  const counts = new Map();
  for (const id of fills.client_order_id) counts.set(id, (counts.get(id) ?? 0) + 1);
  const { updated } = orders;
  // A rejected second order with the id of another has none of its fills.
  const fillsOf = (row) => (orders.venue_order_id[row] === null ? 0 : counts.get(orders.client_order_id[row]) ?? 0);
  const reason = (row) => {
    const code = word(orders.reason_code, row);
    return code === null ? null : `${known("reason", code)}: ${word(orders.reason_text, row)}`;
  };
  const reasonNode = (row, text) => text.length > FOLD_LETTERS ? folded(text)
    : el("span", "", known("reason", word(orders.reason_code, row)), ": ", recorded(word(orders.reason_text, row)));
  links.orders = new PagedTable(showSection("orders"), {
    name: t("orders"), count: orders.count, total: orders.total, file: "orders.csv",
    columns: [
      timeColumn(t("sent"), orders.moments, drawn, (row) => word(orders.instrument_id, row)),
      { head: t("order"), text: (row) => orders.client_order_id[row] },
      instrumentColumn(orders),
      { head: t("side"), text: (row) => sideText(orders.side, row), node: sideNode(orders.side) },
      { head: t("type"), text: (row) => named("type", orders.order_type, row) },
      { head: t("lives"), text: (row) => named("life", orders.time_in_force, row) },
      { head: t("shares"), number: true, text: (row) => grouped(orders.quantity[row]) },
      { head: t("limitPrice"), number: true, optional: true, text: (row) => amount(orders.price, row) },
      { head: t("trigger"), number: true, optional: true, text: (row) => amount(orders.trigger_price, row) },
      { head: t("filled"), number: true, text: (row) => grouped(orders.filled_quantity[row]) },
      { head: t("average"), number: true, optional: true, text: (row) => amount(orders.average_price, row) },
      { head: t("fees"), number: true, optional: true, boring: "0", text: (row) => amount(orders.commission, row) },
      { head: t("status"), text: (row) => named("state", orders.status, row) },
      { head: t("fills"), number: true, text: (row) => (fillsOf(row) === 0 ? null : String(fillsOf(row))),
        node: (row, text) => links.toFills(text, row) },
      { head: t("reason"), optional: true, wide: true, text: reason, node: reasonNode },
      { head: t("jst", { head: t("lastChange") }), text: (row) => momentText(updated[row]), plain: true },
      { head: t("venueOrder"), optional: true, text: (row) => orders.venue_order_id[row] },
    ],
  });
}

function fillsTable({ fills }, drawn, links) {
  if (fills.total === 0) return;
  links.fills = new PagedTable(showSection("fills"), {
    name: t("fills"), count: fills.count, total: fills.total, file: "fills.csv",
    columns: [
      timeColumn(t("time"), fills.moments, drawn, (row) => word(fills.instrument_id, row)),
      { head: t("order"), text: (row) => fills.client_order_id[row], node: (_, text) => links.toOrder(text) },
      { head: t("fill"), text: (row) => fills.trade_id[row] },
      instrumentColumn(fills),
      { head: t("side"), text: (row) => sideText(fills.side, row), node: sideNode(fills.side) },
      { head: t("price"), number: true, text: (row) => amount(fills.price, row) },
      { head: t("shares"), number: true, text: (row) => grouped(fills.quantity[row]) },
      { head: t("marketTrade"), number: true, optional: true, text: (row) => amount(fills.market_price, row) },
      { head: t("slippage"), number: true, optional: true, boring: "0", text: (row) => amount(fills.slippage, row) },
      { head: t("orderDone"), number: true, text: (row) => grouped(fills.cumulative_quantity[row]) },
      { head: t("orderOpen"), number: true, text: (row) => grouped(fills.leaves_quantity[row]) },
      { head: t("fee"), number: true, optional: true, boring: "0", text: (row) => amount(fills.commission, row) },
    ],
  });
}

/** A word of the data in the page's language. */
function named(family, column, row) {
  const found = word(column, row);
  return found === null ? null : known(family, found);
}

const sideText = (column, row) => named("side", column, row);

function sideNode(column) {
  return (row, text) => el("span", word(column, row) === "BUY" ? "side buy" : "side sell", text);
}

function signalsTable({ signals }, drawn) {
  if (signals.total === 0) return;
  new PagedTable(showSection("signals"), {
    name: t("signals"), count: signals.count, total: signals.total, file: "signals.csv",
    columns: [
      timeColumn(t("time"), signals.moments, drawn, (row) => word(signals.instrument_id, row)),
      instrumentColumn(signals),
      { head: t("kind"), text: (row) => named("signal", signals.signal_kind, row) },
      { head: t("side"), optional: true, text: (row) => sideText(signals.side, row), node: sideNode(signals.side) },
      { head: t("price"), number: true, optional: true, text: (row) => amount(signals.price, row) },
      { head: t("tag"), optional: true, quoted: true, text: (row) => word(signals.tag, row) },
      { head: t("note"), optional: true, wide: true, quoted: true, text: (row) => word(signals.note, row) },
    ],
  });
}

function narrativeTable({ narrative }, drawn, links) {
  if (narrative.total === 0) return;
  new PagedTable(showSection("narrative"), {
    name: t("decisions"), count: narrative.count, total: narrative.total, file: "narrative.csv",
    columns: [
      timeColumn(t("time"), narrative.moments, drawn),
      { head: t("order"), optional: true, text: (row) => narrative.client_order_id[row], node: (_, text) => links.toOrder(text) },
      { head: t("decision"), wide: true, quoted: true, text: (row) => word(narrative.title, row) },
      { head: t("why"), wide: true, quoted: true, text: (row) => word(narrative.body, row) },
    ],
  });
}

function logTable({ log }, drawn) {
  if (log.total === 0) return;
  new PagedTable(showSection("log"), {
    name: t("log"), count: log.count, total: log.total, file: "log.csv",
    columns: [
      timeColumn(t("time"), log.moments, drawn),
      { head: t("level"), text: (row) => word(log.level, row), node: (_, text) => el("span", `level ${text}`, text) },
      { head: t("message"), wide: true, quoted: true, text: (row) => word(log.message, row) },
    ],
  });
}

/** Links between the tables of orders and fills. */
function tableLinks({ fills, orders }) {
  const links = {
    toOrder: (id) => linkTo(id, () => {
      links.orders?.showOnly({ name: t("orderOf", { id }), accept: (row) => orders.client_order_id[row] === id });
      goTo("orders");
    }, t("showOrder")),
    toFills: (text, order) => linkTo(text, () => {
      const id = orders.client_order_id[order];
      links.fills?.showOnly({ name: t("fillsOf", { id }), accept: (row) => fills.client_order_id[row] === id });
      goTo("fills");
    }, t("showFills")),
  };
  return links;
}

function linkTo(text, action, title) {
  const link = button(text, action, "link");
  link.title = title;
  return link;
}
