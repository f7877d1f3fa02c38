// Fills and signals, of each instrument for its charts, and all signals for their list.

import { listen, tell } from "./bus.js";
import { draw } from "./frames.js";
import { state } from "./state.js";

const executions = new Map();
const signals = new Map();
/** All signals in their order; the list shows the newest. */
export const allSignals = [];

const rowsOf = (map, id) => {
  if (!map.has(id)) map.set(id, []);
  return map.get(id);
};

export const executionsOf = (id) => rowsOf(executions, id);
export const signalsOf = (id) => rowsOf(signals, id);

function changed() {
  draw(tellChanged);
}

function tellChanged() {
  tell("marks");
}

function takeExecution(event) {
  rowsOf(executions, event.instrument_id).push({ ms: event.ts_event_ms, price: Number(event.price), side: event.side });
  changed();
}

function takeSignal(event) {
  const price = event.price === null ? null : Number(event.price);
  rowsOf(signals, event.instrument_id).push({ ms: event.ts_event_ms, price, side: event.side });
  allSignals.push(event);
  changed();
}

function clear() {
  executions.clear();
  signals.clear();
  allSignals.length = 0;
  changed();
}

listen("ExecutionMarker", (event) => state.synced && takeExecution(event));
listen("StrategySignal", (event) => state.synced && takeSignal(event));
listen("emptied", clear);
listen("run-began", clear);
listen("synced", (session) => {
  clear();
  for (const event of session.executions ?? []) takeExecution(event);
  for (const event of session.signals ?? []) takeSignal(event);
});
