// The panes of a replay: a pair of charts for each instrument, and one order list. A pane that was closed by
// hand stays closed in this tab. Nothing of it is kept in localStorage.

import { listen } from "./bus.js";
import { makeChartPane } from "./chart_panes.js";
import { make } from "./dom.js";
import { makeOrderListPane } from "./order_list.js";
import { focusPane, focusedPane, split } from "./panes.js";
import { shownInstruments } from "./state.js";

const CLOSED_KEY = "kumiki.closed";

const identity = (kind, instrumentId, granularity) => ["replay", instrumentId ?? "", kind, granularity ?? ""].join("|");

function closedPanes() {
  try {
    return new Set(JSON.parse(sessionStorage.getItem(CLOSED_KEY)) ?? []);
  } catch {
    return new Set();
  }
}

function keepClosed(name) {
  sessionStorage.setItem(CLOSED_KEY, JSON.stringify([...closedPanes().add(name)]));
}

/** Which charts an instrument has, by what is loaded of it. */
const CHARTS = {
  Trade: [["tick", undefined], ["candles", "1m"]],
  Minute: [["candles", "1m"]],
  Daily: [["candles", "1d"]],
};

export class ReplayLayout {
  constructor(charts, orders) {
    this.charts = charts;
    this.orders = orders;
    this.hint = make("p", { class: "hint", text: "hint.load" });
    charts.append(this.hint);
    listen("loaded", (instruments) => this.add(instruments));
    listen("synced", (session) => this.add(shownInstruments(session)));
  }

  /** Makes the panes that are missing. */
  add(instruments) {
    if (instruments.length === 0) return;
    this.addOrders();
    for (const { instrument_id, granularity } of instruments) this.addCharts(instrument_id, granularity);
    this.hint.hidden = this.charts.querySelector("section") !== null;
  }

  addOrders() {
    const name = identity("order_list");
    if (closedPanes().has(name) || this.orders.querySelector("[data-pane-kind=order_list]") !== null) return;
    this.orders.prepend(makeOrderListPane((pane) => {
      keepClosed(name);
      pane.close();
      pane.remove();
    }));
  }

  addCharts(instrumentId, granularity) {
    const closed = closedPanes();
    const panes = [];
    for (const [kind, bars] of CHARTS[granularity]) {
      const name = identity(kind, instrumentId, bars);
      const there = this.charts.querySelector(`[data-identity="${CSS.escape(name)}"]`);
      if (there !== null || closed.has(name)) continue;
      const pane = makeChartPane(kind, instrumentId, bars, (gone) => this.remove(gone, name));
      pane.dataset.identity = name;
      panes.push(pane);
    }
    if (panes.length > 0) this.place(panes);
  }

  /** The first pair lies side by side; a later one goes below the focused pane and halves its height. */
  place(panes) {
    const pair = panes.length === 1 ? panes[0] : split("row", "", ...panes);
    const all = this.charts.querySelectorAll("section");
    if (all.length === 0) {
      this.charts.append(panes.length === 1 ? split("row", "", panes[0]) : pair);
      focusPane(panes[0]);
      return;
    }
    const focused = focusedPane();
    const above = focused !== null && this.charts.contains(focused) ? focused : all[all.length - 1];
    const active = document.activeElement;
    const column = split("column", "");
    above.replaceWith(column);
    column.append(above, pair);
    if (above.contains(active)) active.focus();
  }

  /** Closes a pane for good; a split with one child gives way to it. */
  remove(pane, name) {
    keepClosed(name);
    pane.chart.close();
    const parent = pane.parentElement;
    pane.remove();
    if (parent !== this.charts && parent.children.length === 1 && parent.parentElement !== this.charts) parent.replaceWith(parent.firstElementChild);
    else if (parent !== this.charts && parent.children.length === 0) parent.remove();
    this.hint.hidden = this.charts.querySelector("section") !== null;
    const rest = this.charts.querySelector("section");
    if (focusedPane() === null && rest !== null) focusPane(rest);
  }
}
