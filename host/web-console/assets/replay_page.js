// The panes of a replay: forms at the left, charts above, orders, ticket and words below.

import { make } from "./dom.js";
import { makeEquityPane } from "./equity.js";
import { restAfterFrames } from "./frames.js";
import { makeLoadPane } from "./load.js";
import { split, tabs } from "./panes.js";
import { makePositionsPane } from "./positions.js";
import { ReplayLayout } from "./replay_layout.js";
import { makeRunsPane } from "./runs.js";
import { isRunning } from "./state.js";
import { makeStrategyPane } from "./strategy.js";
import { makeNarrativePane, makeSignalsPane } from "./strategy_words.js";
import { makeTicketPane } from "./ticket.js";

/** At the highest speed a replay tells more than anybody can see: its events come before its frames. */
const REST_TIMES = 3;

/** Everything below the bar. */
export function makeReplayPage() {
  restAfterFrames(() => (isRunning() ? REST_TIMES : 0));
  const charts = make("div", { class: "charts" });
  const orders = make("div", { class: "orders" });
  new ReplayLayout(charts, orders);
  return split("row", "page replay",
    split("column", "side", makeLoadPane(), makeStrategyPane()),
    split("column", "work", charts,
      split("row", "below", orders, makeTicketPane(),
        tabs(makePositionsPane(), makeSignalsPane(), makeNarrativePane(), makeEquityPane(), makeRunsPane()))));
}
