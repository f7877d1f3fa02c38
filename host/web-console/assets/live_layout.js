// The panes of live mode. Market data panes can be closed, and opened again from the bar.

import { listen } from "./bus.js";
import { makeBoardPane } from "./board.js";
import { makeChartPane, showTicker } from "./chart_panes.js";
import { make } from "./dom.js";
import { liveLayout } from "./live_store.js";
import { tickerData } from "./market.js";
import { makeOrderListPane } from "./order_list.js";
import { focusPane, split, tabs } from "./panes.js";
import { makePositionsPane } from "./positions.js";
import { reopenHost } from "./shell.js";
import { makeEquityPane } from "./equity.js";
import { makeRunsPane } from "./runs.js";
import { makeStrategyPane } from "./strategy.js";
import { makeNarrativePane, makeSignalsPane } from "./strategy_words.js";
import { makeTapePane } from "./tape.js";
import { makeTicketPane } from "./ticket.js";
import { makeVenuesPane } from "./venues.js";
import { makeWatchPane } from "./watch.js";

/** Everything below the bar. */
export function makeLivePage() {
  const close = (pane) => setClosed(pane, true);
  const market = [makeBoardPane(close), makeChartPane("candles", "", "1m", close), makeTapePane(close)];
  market[1].dataset.mode = "live";
  const page = split("row", "page live",
    split("column", "side", makeWatchPane(), makeVenuesPane()),
    split("column", "work",
      split("row", "charts", ...market),
      split("row", "below",
        split("column", "orders", makeOrderListPane(), makePositionsPane()),
        makeTicketPane(),
        tabs(makeStrategyPane(), makeSignalsPane(), makeNarrativePane(), makeEquityPane(), makeRunsPane()))));
  focusPane(market[0]);
  listen("selected", (ticker) => showTicker(market[1], ticker === null ? null : tickerData(ticker), "1m"));
  const closed = liveLayout.read().closed ?? [];
  for (const pane of market) if (closed.includes(pane.dataset.paneKind)) setClosed(pane, true);
  return page;
}

/** Hides or shows a pane, and keeps that. */
function setClosed(pane, closed) {
  pane.hidden = closed;
  const kind = pane.dataset.paneKind;
  const others = (liveLayout.read().closed ?? []).filter((one) => one !== kind);
  liveLayout.change({ closed: closed ? [...others, kind] : others });
  const host = reopenHost();
  host.querySelector(`[data-pane="${kind}"]`)?.remove();
  if (!closed) return;
  const open = make("button", { type: "button", class: "small", "data-action": "open-pane", "data-pane": kind, text: `pane.${kind}` });
  open.addEventListener("click", () => setClosed(pane, false));
  host.append(open);
}
