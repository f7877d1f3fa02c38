// What a strategy says: its signals, its decisions with their reasons, and its log. Newest first, as text.

import { listen, tell } from "./bus.js";
import { foreign, make, momentOf, number } from "./dom.js";
import { drawing, slowly } from "./frames.js";
import { known, t } from "./language.js";
import { allSignals } from "./marks.js";
import { makePane } from "./panes.js";
import { state } from "./state.js";

const SIGNALS_SHOWN = 300;
const NARRATIVES_KEPT = 1_000;
const NARRATIVES_SHOWN = 200;
const LINES_KEPT = 500;
/** The lists are drawn at most this often. */
const EVERY_MS = 250;

let narratives = [];
let lines = [];

const when = (ms) => (ms == null ? "" : number("time", ms, {}, momentOf(ms)));

function list(kind, className) {
  const pane = makePane(kind);
  const host = make("ol", { class: className, tabindex: "0", label: `pane.${kind}` });
  pane.body.append(host);
  return { pane, host };
}

export function makeSignalsPane() {
  const { pane, host } = list("signals", "words");
  const job = drawing(() => {
    pane.dataset.total = String(allSignals.length);
    host.replaceChildren(...allSignals.slice(-SIGNALS_SHOWN).reverse().map(signalRow));
  });
  listen("marks", slowly(job, EVERY_MS));
  return pane;
}

function signalRow(signal) {
  const node = make("li", { "data-signal-kind": signal.signal_kind }, when(signal.ts_event_ms), " ",
    make("span", { translate: "no" }, signal.instrument_id), " ", make("b", {}, known("signal", signal.signal_kind)));
  if (signal.side !== null) node.append(" ", make("span", { class: signal.side }, known("side", signal.side)));
  if (signal.price !== null) node.append(" ", number("span", signal.price));
  if (signal.tag !== null) node.append(" ", foreign("code", signal.tag));
  if (signal.note !== null) node.append(" ", foreign("span", signal.note));
  return node;
}

export function makeNarrativePane() {
  const pane = makePane("narrative");
  const decisions = make("ol", { class: "words", "data-role": "narratives", tabindex: "0", label: "pane.narrative" });
  const log = make("ol", { class: "words log", "data-role": "log", tabindex: "0", label: "log" });
  pane.body.append(decisions, make("h3", { text: "log" }), log);
  const job = drawing(() => {
    decisions.replaceChildren(...narratives.slice(-NARRATIVES_SHOWN).reverse().map(narrativeRow));
    log.replaceChildren(...lines.slice(-NARRATIVES_SHOWN).reverse().map(logRow));
  });
  const soon = slowly(job, EVERY_MS);
  listen("words", soon);
  return pane;
}

function narrativeRow(row) {
  const node = make("li", {}, when(row.ts_event_ms), " ", foreign("b", row.title));
  if (row.client_order_id != null) node.append(" ", foreign("code", row.client_order_id));
  node.append(foreign("p", row.body));
  return node;
}

function logRow(row) {
  const left = row.left_out > 0 ? make("em", {}, t("log.left_out", { count: row.left_out }), " ") : "";
  return make("li", { "data-level": row.level }, when(row.ts_event_ms), " ", left,
    make("code", { translate: "no" }, row.level), " ", foreign("span", row.message));
}

function clear() {
  narratives = [];
  lines = [];
  tell("words");
}

listen("StrategyNarrative", (event) => {
  if (!state.synced) return;
  narratives.push(event);
  if (narratives.length > 2 * NARRATIVES_KEPT) narratives = narratives.slice(-NARRATIVES_KEPT);
  tell("words");
});

listen("StrategyLog", (event) => {
  lines.push(event);
  if (lines.length > 2 * LINES_KEPT) lines = lines.slice(-LINES_KEPT);
  tell("words");
});

for (const name of ["emptied", "run-began"]) listen(name, clear);

listen("synced", (session) => {
  narratives = [...(session.narratives ?? [])];
  lines = [];
  tell("words");
});
