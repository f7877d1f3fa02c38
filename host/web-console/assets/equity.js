// The curve of the account over the time of a run.

import { listen } from "./bus.js";
import { Chart, colour } from "./chart.js";
import { make, momentOf, number } from "./dom.js";
import { draw } from "./frames.js";
import { t } from "./language.js";
import { makePane } from "./panes.js";
import { CurveSeries } from "./series.js";
import { ask, isReplay, state } from "./state.js";

const POINTS_SHOWN = 300;
const ASK_EVERY_MS = 60_000;
const curve = new CurveSeries();
let chart = null;

export function makeEquityPane() {
  const pane = makePane("equity");
  chart = new Chart({
    series: curve, span: POINTS_SHOWN, paint,
    tellRow: (place) => [number("span", curve.times[place], { class: "when" }, `${momentOf(curve.times[place])} JST`),
      make("span", {}, `${t("equity")} `, number("b", curve.texts[place]))],
  });
  pane.body.append(chart.host, chart.readout);
  return pane;
}

function paint(context, of, from, to) {
  context.strokeStyle = colour("line");
  context.lineWidth = 1.5;
  context.beginPath();
  for (let place = from; place < to; place++) context.lineTo(of.x(place), of.y(curve.values.values[place]));
  context.stroke();
}

const changed = () => chart?.changed();

function take(ms, text) {
  if (ms == null || text == null) return;
  curve.take(ms, text);
  changed();
}

listen("ReplayBuyingPower", (event) => state.synced && take(event.ts_event_ms, event.equity));
listen("resized", () => draw(changed));

for (const name of ["emptied", "run-began"]) {
  listen(name, () => {
    curve.clear();
    changed();
  });
}

// On the live market nobody tells the account of a run on paper: it is asked for.
setInterval(() => {
  if (isReplay() || !state.synced || state.sessionState !== "Running" || document.hidden) return;
  ask("GetSession").then(takeSession, () => {});
}, ASK_EVERY_MS);

listen("synced", takeSession);
listen("session-ended", (session) => session.equity_curve !== undefined && takeSession(session));

function takeSession(session) {
  curve.clear();
  for (const { ts_event_ms, equity } of session.equity_curve ?? []) curve.take(ts_event_ms, equity);
  if (isReplay()) take(session.ts_event_ms, session.equity);
  changed();
}
