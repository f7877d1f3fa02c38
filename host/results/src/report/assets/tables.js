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
    link.title = "Show in the price chart";
    return link;
  };
  const text = (row) => (moments[row] === null ? null : momentText(moments[row]));
  return { head: `${head} (JST)`, text, plain: true, node: drawn ? node : undefined };
}

/** The instrument of a row; left out of a table where all rows have the same. */
function instrumentColumn(table) {
  const first = table.count > 0 ? word(table.instrument_id, 0) : null;
  return { head: "Instrument", text: (row) => word(table.instrument_id, row), optional: true, boring: first };
}

function tripsTable({ round_trips: trips }, drawn, links) {
  if (trips.total === 0) return;
  const instrumentOf = (row) => word(trips.instrument_id, row);
  const amountNode = (column) => (row, text) => {
    const value = Number(column.values[row]);
    return el("span", value > 0 ? "gain" : value < 0 ? "loss" : "", text);
  };
  new PagedTable(showSection("trips"), {
    name: "Round trips", count: trips.count, total: trips.total, file: "round_trips.csv",
    columns: [
      timeColumn("Entry", trips.moments, drawn, instrumentOf),
      timeColumn("Exit", trips.exits, drawn, instrumentOf),
      instrumentColumn(trips),
      { head: "Entry side", text: (row) => word(trips.entry_side, row), node: sideNode, optional: true, boring: "BUY" },
      { head: "Shares", number: true, text: (row) => grouped(trips.quantity[row]) },
      { head: "Bought at", number: true, text: (row) => amount(trips.buy_price, row) },
      { head: "Sold at", number: true, text: (row) => amount(trips.sell_price, row) },
      { head: "Profit", number: true, text: (row) => amount(trips.pnl, row), node: amountNode(trips.pnl) },
      { head: "Worst on the way", number: true, text: (row) => amount(trips.mae, row) },
      { head: "Best on the way", number: true, text: (row) => amount(trips.mfe, row) },
      { head: "Fees", number: true, optional: true, boring: "0", text: (row) => amount(trips.commission, row) },
      { head: "Time held", number: true, text: (row) => durationText(trips.duration_ns[row]) },
      { head: "Fills", number: true, text: (row) => grouped(trips.fills[row]) },
      { head: "Entry order", text: (row) => trips.entry_order_id[row], node: (_, text) => links.toOrder(text) },
      { head: "Exit order", text: (row) => trips.exit_order_id[row], node: (_, text) => links.toOrder(text) },
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
    return code === null ? null : `${code}: ${word(orders.reason_text, row)}`;
  };
  links.orders = new PagedTable(showSection("orders"), {
    name: "Orders", count: orders.count, total: orders.total, file: "orders.csv",
    columns: [
      timeColumn("Sent", orders.moments, drawn, (row) => word(orders.instrument_id, row)),
      { head: "Order", text: (row) => orders.client_order_id[row] },
      instrumentColumn(orders),
      { head: "Side", text: (row) => word(orders.side, row), node: sideNode },
      { head: "Type", text: (row) => word(orders.order_type, row) },
      { head: "Lives", text: (row) => word(orders.time_in_force, row) },
      { head: "Shares", number: true, text: (row) => grouped(orders.quantity[row]) },
      { head: "Limit", number: true, optional: true, text: (row) => amount(orders.price, row) },
      { head: "Trigger", number: true, optional: true, text: (row) => amount(orders.trigger_price, row) },
      { head: "Filled", number: true, text: (row) => grouped(orders.filled_quantity[row]) },
      { head: "Average", number: true, optional: true, text: (row) => amount(orders.average_price, row) },
      { head: "Fees", number: true, optional: true, boring: "0", text: (row) => amount(orders.commission, row) },
      { head: "Status", text: (row) => word(orders.status, row) },
      { head: "Fills", number: true, text: (row) => (fillsOf(row) === 0 ? null : String(fillsOf(row))),
        node: (row, text) => links.toFills(text, row) },
      { head: "Reason", optional: true, wide: true, text: reason },
      { head: "Last change (JST)", text: (row) => momentText(updated[row]), plain: true },
      { head: "Venue order", optional: true, text: (row) => orders.venue_order_id[row] },
    ],
  });
}

function fillsTable({ fills }, drawn, links) {
  if (fills.total === 0) return;
  links.fills = new PagedTable(showSection("fills"), {
    name: "Fills", count: fills.count, total: fills.total, file: "fills.csv",
    columns: [
      timeColumn("Time", fills.moments, drawn, (row) => word(fills.instrument_id, row)),
      { head: "Order", text: (row) => fills.client_order_id[row], node: (_, text) => links.toOrder(text) },
      { head: "Fill", text: (row) => fills.trade_id[row] },
      instrumentColumn(fills),
      { head: "Side", text: (row) => word(fills.side, row), node: sideNode },
      { head: "Price", number: true, text: (row) => amount(fills.price, row) },
      { head: "Shares", number: true, text: (row) => grouped(fills.quantity[row]) },
      { head: "Market\u2019s trade", number: true, optional: true, text: (row) => amount(fills.market_price, row) },
      { head: "Slippage", number: true, optional: true, boring: "0", text: (row) => amount(fills.slippage, row) },
      { head: "Order done", number: true, text: (row) => grouped(fills.cumulative_quantity[row]) },
      { head: "Order open", number: true, text: (row) => grouped(fills.leaves_quantity[row]) },
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
    name: "Signals", count: signals.count, total: signals.total, file: "signals.csv",
    columns: [
      timeColumn("Time", signals.moments, drawn, (row) => word(signals.instrument_id, row)),
      instrumentColumn(signals),
      { head: "Kind", text: (row) => word(signals.signal_kind, row) },
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
    name: "Decisions", count: narrative.count, total: narrative.total, file: "narrative.csv",
    columns: [
      timeColumn("Time", narrative.moments, drawn),
      { head: "Order", optional: true, text: (row) => narrative.client_order_id[row], node: (_, text) => links.toOrder(text) },
      { head: "Decision", wide: true, text: (row) => word(narrative.title, row) },
      { head: "Why", wide: true, text: (row) => word(narrative.body, row) },
    ],
  });
}

function logTable({ log }, drawn) {
  if (log.total === 0) return;
  new PagedTable(showSection("log"), {
    name: "Log", count: log.count, total: log.total, file: "log.csv",
    columns: [
      timeColumn("Time", log.moments, drawn),
      { head: "Level", text: (row) => word(log.level, row), node: (_, text) => el("span", `level ${text}`, text) },
      { head: "Message", wide: true, text: (row) => word(log.message, row) },
    ],
  });
}

/** Links between the tables of orders and fills. */
function tableLinks({ fills, orders }) {
  const links = {
    toOrder: (id) => linkTo(id, () => {
      links.orders?.showOnly({ name: `order ${id}`, accept: (row) => orders.client_order_id[row] === id });
      goTo("orders");
    }, "Show the order"),
    toFills: (text, order) => linkTo(text, () => {
      const id = orders.client_order_id[order];
      links.fills?.showOnly({ name: `fills of order ${id}`, accept: (row) => fills.client_order_id[row] === id });
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
