// What the page knows of the engine. Panes read it; the modules beside change it as events come.

import { listen, tell } from "./bus.js";
import { draw, drawAll } from "./frames.js";

const CONFIRM_ABOVE_JPY = 3_000_000;

export const state = {
  mode: "replay",
  scope: "full",
  connection: "connecting",
  why: null,
  /** Whether what is shown is as new as the connection. */
  synced: false,
  sessionState: "Idle",
  capabilities: { live: false, replay: false },
  venueCapabilities: {},
  simulators: {},
  confirmAboveJpy: CONFIRM_ABOVE_JPY,
  /** The run that goes on, or the last one until other data are loaded. */
  run: null,
  lastRun: null,
  instruments: [],
  multiplier: null,
  /** The time of the session in ms; virtual in a replay. */
  clock: null,
  rowsDone: 0,
  rowsTotal: 0,
  money: { cash: null, buying_power: null, equity: null, credit: null },
  paperMoney: null,
  parameters: null,
};

let socket = null;

/** The connection that commands go through. */
export function useSocket(given) {
  socket = given;
}

/** Sends a command and gives its answer; throws `NoAnswer`. */
export const ask = (op, fields, id) => socket.ask(op, fields, id);

/** How long a question waits where the engine answers others. */
const BUSY_MS = 200;

/** As `ask`, and again while the engine is busy with others. Throws `NoAnswer`. */
export async function askPatiently(op, fields) {
  for (;;) {
    try {
      return await ask(op, fields);
    } catch (error) {
      if (error.event?.event !== "EngineBusy") throw error;
    }
    await new Promise((again) => setTimeout(again, BUSY_MS));
  }
}

/** A new id of a command. */
export const requestId = () => socket.id();

/** Sends a command that has no answer. */
export const send = (op, fields) => socket.tell(op, fields);

export const isReady = () => state.connection === "ready";
export const isReplay = () => state.mode === "replay";
export const isRunning = () => state.sessionState === "Running";
/** Whether this page may act at all. */
export const mayAct = () => isReady() && state.scope !== "read_only";

/** Whether a venue is the real market. */
export const isProduction = (venue) => state.venueCapabilities[venue]?.is_production === true;
export const productionVenues = () => Object.keys(state.venueCapabilities).filter(isProduction);

/** `replay`, `paper` or `live` by the account of a run. */
export const runKind = (account) => ({ PAPER: "paper", LIVE: "live" })[account] ?? "replay";

/** Shows the state of the whole on the page's root, where style and tests see it. */
export function showRoot() {
  const { dataset } = document.documentElement;
  dataset.mode = state.mode;
  dataset.connection = state.connection;
  dataset.sessionState = state.sessionState;
  dataset.production = String(productionVenues().length > 0);
  dataset.scope = state.scope;
}

export function setConnection(connection, why = null) {
  state.connection = connection;
  state.why = why;
  if (connection !== "ready") state.synced = false;
  showRoot();
  tell("connection", connection);
  drawAll();
}

export function setSessionState(sessionState) {
  if (state.sessionState === sessionState) return;
  state.sessionState = sessionState;
  draw(showRoot);
  tell("session-state", sessionState);
  drawAll();
}

function takeMoney({ cash, buying_power, equity }) {
  Object.assign(state.money, { cash: cash ?? null, buying_power: buying_power ?? null, equity: equity ?? null });
}

/** Time of the session goes forward only. */
export function advance(ms) {
  if (ms !== null && ms !== undefined && (state.clock === null || ms > state.clock)) {
    state.clock = ms;
    tell("clock", ms);
  }
}

listen("Ready", (event) => {
  state.capabilities = event.capabilities?.strategy_engine ?? { live: false, replay: false };
  state.venueCapabilities = event.venue_capabilities ?? {};
  state.simulators = event.simulators ?? {};
  state.confirmAboveJpy = event.confirm_above_jpy ?? CONFIRM_ABOVE_JPY;
  state.scope = event.scope ?? state.scope;
  state.sessionState = event.session_state;
});

/** The questions about the session: of a new connection, and of what is loaded only. */
let everything = null;
let instrumentsOnly = null;

/** Asks for everything anew. */
export function sync() {
  everything = requestId();
  ask("GetSession", {}, everything).catch(() => {});
}

listen("Session", (event) => {
  if (event.request_id === instrumentsOnly) {
    state.instruments = event.instruments;
    drawAll();
  }
  if (event.request_id !== everything) return;
  state.synced = true;
  state.instruments = event.instruments;
  state.multiplier = event.multiplier ?? null;
  state.clock = event.ts_event_ms ?? null;
  state.rowsDone = event.rows_done;
  state.rowsTotal = event.rows_total;
  state.lastRun = event.last_run ?? null;
  state.parameters = event.parameters ?? null;
  state.run = event.run_id == null ? null
    : { run_id: event.run_id, strategy_id: event.strategy_id, kind: runKind(event.account_id) };
  // A broker's money is asked for anew; what another mode of this tab left is none.
  takeMoney(isReplay() ? event : {});
  setSessionState(event.state);
  showRoot();
  tell("synced", event);
  drawAll();
});

listen("ReplayDataLoaded", (event) => {
  if (!state.synced) return;
  const { start_date, end_date, granularity } = event;
  const before = new Map(state.instruments.map((one) => [one.instrument_id, one]));
  const loaded = (id) => (before.has(id) && id !== event.instrument_id ? before.get(id) : { instrument_id: id, start_date, end_date, granularity });
  state.instruments = event.instrument_ids.map(loaded);
  // The event does not tell which of several were loaded anew.
  instrumentsOnly = requestId();
  ask("GetSession", {}, instrumentsOnly).catch(() => {});
  Object.assign(state, { run: null, clock: null, rowsDone: 0, rowsTotal: 0, parameters: null });
  takeMoney({});
  setSessionState("Loaded");
  tell("emptied");
  tell("loaded", state.instruments);
  drawAll();
});

listen("EngineStarted", (event) => {
  if (!state.synced) return;
  state.run = { run_id: event.run_id, strategy_id: event.strategy_id, kind: runKind(event.account_id), execution: event.execution };
  state.multiplier = event.multiplier;
  state.parameters = event.parameters ?? null;
  state.paperMoney = null;
  tell("run-began", state.run);
  advance(event.ts_event_ms);
  setSessionState("Running");
});

listen("EngineStopped", (event) => {
  if (!state.synced) return;
  state.lastRun = event;
  state.rowsDone = event.rows_done;
  advance(event.ts_event_ms);
  setSessionState("Idle");
  tell("run-ended", event);
});

/** What a session shows: what is loaded, or what its last run went over. */
export function shownInstruments(session) {
  if (session.instruments.length > 0) return session.instruments;
  const traded = new Set((session.last_trades ?? []).map((one) => one.instrument_id ?? `${one.ticker}.TSE`));
  return (session.last_bars ?? []).map(({ instrument_id, interval }) => ({
    instrument_id, granularity: interval === "1d" ? "Daily" : traded.has(instrument_id) ? "Trade" : "Minute",
  }));
}

// The end of a run is told in full by the session: the values of positions, the whole curve.
listen("run-ended", () => {
  ask("GetSession").then((session) => tell("session-ended", session), () => {});
});

listen("ReplaySpeedChanged", (event) => {
  state.multiplier = event.multiplier;
  drawAll();
});

listen("Progress", (event) => {
  if (event.kind === "run") {
    state.rowsDone = event.done;
    state.rowsTotal = event.total;
  }
});

listen("ReplayBuyingPower", (event) => {
  if (!state.synced) return;
  takeMoney(event);
  advance(event.ts_event_ms);
  tell("money");
});

listen("BuyingPowerUpdated", (event) => {
  if (event.venue === "paper") state.paperMoney = event;
  else if (event.venue === "web_broker") {
    Object.assign(state.money, { cash: event.cash_available, buying_power: event.cash_available, credit: event.credit_available });
  }
  tell("money");
});

// A stop that somebody else asked for is told by no event before its end; the answer to our own question is.
listen("EngineBusy", (event) => setSessionState(event.current_state));
