// The pane that starts and stops a strategy: in a replay, live on paper, or with real orders.

import { listen } from "./bus.js";
import { actionButton, choice, field, foreign, instrumentOf, make, number, setAttribute, setNumber } from "./dom.js";
import { draw, drawing } from "./frames.js";
import { t } from "./language.js";
import { selectedTicker } from "./market.js";
import { makePane } from "./panes.js";
import { OrderTable } from "./order_table.js";
import { askPassword } from "./password.js";
import { codeParts, refusalParts } from "./refusals.js";
import { ask, askPatiently, isReplay, isRunning, mayAct, state } from "./state.js";
import { paramControls, readParams } from "./strategy_params.js";
import { venueOf } from "./venues_state.js";

const MODELS = ["strict", "realistic", "optimistic"];
const EXECUTION_NUMBERS = ["latency_ns", "slippage_ticks", "participation_percent", "queue_ahead", "lot"];
const LIMITS = { max_qty: "100", max_notional_jpy: "1000000" };
/** Those of real orders (specification 4, P123). */
const REAL_LIMITS = { max_position_qty: "", max_orders_per_minute: "30", max_open_orders: "10", max_daily_loss_jpy: "" };
const WHOLE = /^[1-9]\d*$/;

let parts = null;
let starting = false;
/** Errors of the run that goes on. */
let errors = [];

export function makeStrategyPane() {
  const pane = makePane("strategy");
  const text = (name, value = "", more = {}) => make("input", { name, value, autocomplete: "off", spellcheck: "false", ...more });
  const whole = (name, value) => text(name, value, { inputmode: "numeric" });
  const controls = {
    strategy_file: text("strategy_file", "", { list: "strategies", translate: "no", required: true }),
    strategy_id: text("strategy_id", "", { translate: "no", maxlength: "64" }),
    initial_cash: text("initial_cash", "10000000", { inputmode: "decimal" }),
    "execution.model": choice("execution.model", MODELS),
  };
  controls["execution.model"].value = "realistic";
  for (const name of EXECUTION_NUMBERS) controls[name] = whole(name, "");
  for (const name of ["commission", "ticks"]) controls[name] = text(name, "", { translate: "no" });
  controls.same_day_round_trips = choice("same_day_round_trips", ["", "true", "false"]);
  if (isReplay()) controls.multiplier = text("multiplier", "60", { list: "speeds" });
  else {
    controls.instrument_id = text("instrument_id", "", { list: "instruments", translate: "no" });
    controls.granularity = choice("granularity", ["Trade", "Minute"], (word) => `granularity.${word}`);
    for (const [name, value] of Object.entries({ ...LIMITS, ...REAL_LIMITS })) controls[name] = whole(name, value);
  }
  parts = {
    pane, controls, strategies: make("datalist", { id: "strategies" }),
    params: make("div", { class: "fields wide params" }),
    start: make("button", { type: "submit", "data-action": "start", text: "start", class: "main" }),
    problem: make("p", { class: "problem wide", role: "alert", hidden: true }),
    none: make("p", { class: "hint", text: "noStrategies", hidden: true }),
    running: make("div", { class: "running" }), log: make("ol", { class: "errors" }),
    stop: actionButton("stop", "stop", () => stopRun()),
  };
  parts.form = makeForm();
  pane.body.append(parts.none, parts.form, parts.running, parts.log);
  if (!isReplay()) {
    parts.paper = new OrderTable("paper");
    parts.paperBox = make("div", { class: "paper", hidden: true }, make("h3", { text: "paperOrders" }), parts.paper.node);
    pane.body.append(parts.paperBox);
  }
  drawing(render);
  for (const name of ["money", "venue", "selected", "parameters"]) listen(name, () => draw(render));
  return pane;
}

function makeForm() {
  const { controls } = parts;
  const form = make("form", { class: "fields", "data-role": "strategy", novalidate: true });
  if (!isReplay()) form.append(kindChoice());
  form.append(field("strategy_file", controls.strategy_file, { class: "field wide" }), parts.strategies, parts.params);
  if (!isReplay()) form.append(field("instruments", controls.instrument_id), field("granularity", controls.granularity));
  form.append(field("strategy_id", controls.strategy_id, { "data-for": "strategy_id" }));
  form.append(field("initial_cash", controls.initial_cash, { "data-kind": "simulated" }));
  if (isReplay()) form.append(field("multiplier", controls.multiplier));
  form.append(field("execution.model", controls["execution.model"], { "data-kind": "simulated" }));
  if (!isReplay()) {
    for (const name of Object.keys(LIMITS)) form.append(field(name, controls[name]));
    for (const name of Object.keys(REAL_LIMITS)) form.append(field(name, controls[name], { "data-kind": "real" }));
  }
  const more = make("div", { class: "fields" });
  for (const name of [...EXECUTION_NUMBERS, "commission", "ticks", "same_day_round_trips"]) more.append(field(`execution.${name}`, controls[name]));
  form.append(make("details", { class: "wide", "data-kind": "simulated" }, make("summary", { text: "moreFields" }), more));
  form.append(make("p", { class: "problem wide", "data-kind": "real", text: "why.realOrders" }));
  form.append(make("div", { class: "actions wide" }, parts.start), parts.problem);
  controls.strategy_file.addEventListener("change", () => askParameters());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    start();
  });
  form.addEventListener("input", () => draw(render));
  form.addEventListener("change", () => draw(render));
  return form;
}

/** Paper is the default, real orders a second choice. */
function kindChoice() {
  const one = (value, key) => {
    const radio = make("input", { type: "radio", name: "paper", value, checked: value === "true" });
    // What was typed for a run on paper starts none with real orders.
    radio.addEventListener("change", () => (parts.controls.strategy_id.value = ""));
    return make("label", { class: "check" }, radio, make("span", { text: key }));
  };
  const node = make("div", { class: "wide kinds", role: "radiogroup", label: "runKind" }, one("true", "runKind.paper"), one("false", "runKind.live"));
  return node;
}

const isReal = () => !isReplay() && parts.form.querySelector("[name=paper]:checked")?.value === "false";
const kind = () => (isRunning() ? state.run?.kind : null) ?? (isReplay() ? "replay" : isReal() ? "live" : "paper");

/** The strategies that the engine has. */
listen("synced", async () => {
  const answer = await askPatiently("GetStrategies").catch(() => null);
  if (answer === null || parts === null) return;
  parts.strategies.replaceChildren(...answer.strategies.map(({ strategy_file, name }) => {
    const option = make("option", { value: strategy_file });
    option.textContent = name;
    return option;
  }));
  if (parts.controls.strategy_file.value === "" && answer.strategies.length > 0) {
    const preferred = answer.strategies.find(({ strategy_file }) => strategy_file === "sma-cross") ?? answer.strategies[0];
    parts.controls.strategy_file.value = preferred.strategy_file;
    askParameters();
  }
});

let parametersOf = null;

async function askParameters() {
  const file = parts.controls.strategy_file.value.trim();
  if (file === "" || file === parametersOf) return;
  parametersOf = file;
  // Those of another file are no part of a start in between.
  parts.params.replaceChildren();
  const answer = await askPatiently("GetStrategyParameters", { strategy_file: file }).catch((error) => error);
  if (parametersOf !== file) return;
  if (answer instanceof Error) {
    parts.params.append(make("p", { class: "hint wide" }, ...refusalParts(answer)));
    return;
  }
  parts.params.append(...paramControls(answer.parameters));
}

const valueOf = (name) => parts.controls[name].value.trim();

/** Puts a whole number that was given into `config`; tells which one is none. */
function takeWholes(config, names) {
  for (const name of names) {
    const text = valueOf(name);
    if (text === "") continue;
    if (!/^\d+$/.test(text)) return name;
    config[name] = Number(text);
  }
  return null;
}

function executionOf() {
  const execution = { model: valueOf("execution.model") };
  const wrong = takeWholes(execution, EXECUTION_NUMBERS);
  for (const name of ["commission", "ticks"]) if (valueOf(name) !== "") execution[name] = valueOf(name);
  if (valueOf("same_day_round_trips") !== "") execution.same_day_round_trips = valueOf("same_day_round_trips") === "true";
  return { execution, wrong };
}

/** A name for the run where nobody typed one: the file's name. */
const madeId = () => valueOf("strategy_file").split(/[\\/]/).pop().replace(/\.wasm$/, "").slice(0, 64);

/** The config that the form says: `{config, strategy_id}` or `{wrong}` with the control's name. */
function readForm() {
  const config = { strategy_file: valueOf("strategy_file") };
  if (config.strategy_file === "") return { wrong: "strategy_file" };
  const kwargs = readParams(parts.params);
  if (kwargs.wrong !== undefined) return kwargs;
  if (Object.keys(kwargs.values).length > 0) config.strategy_init_kwargs = kwargs.values;
  if (isReplay()) takeLoaded(config);
  else {
    const ids = valueOf("instrument_id").split(/[\s,、]+/).map(instrumentOf).filter((id) => id !== "");
    if (ids.length === 0) return { wrong: "instrument_id" };
    config.instrument_id = ids[0];
    if (ids.length > 1) config.instrument_ids = ids;
    config.granularity = valueOf("granularity");
    for (const name of Object.keys(LIMITS)) if (!WHOLE.test(valueOf(name))) return { wrong: name };
    takeWholes(config, Object.keys(LIMITS));
  }
  if (isReal()) {
    const wrong = takeWholes(config, Object.keys(REAL_LIMITS));
    if (wrong !== null) return { wrong };
    config.max_position_qty ??= config.max_qty;
    // The id decides which shares the strategy owns: a person types it.
    if (valueOf("strategy_id") === "") return { wrong: "strategy_id" };
  } else {
    const { execution, wrong } = executionOf();
    if (wrong !== null) return { wrong };
    config.execution = execution;
    if (!/^\d+(\.\d{1,4})?$/.test(valueOf("initial_cash"))) return { wrong: "initial_cash" };
    config.initial_cash = valueOf("initial_cash");
    if (!isReplay()) config.paper = true;
  }
  if (isReplay()) {
    const speed = valueOf("multiplier");
    if (speed !== "max" && !WHOLE.test(speed)) return { wrong: "multiplier" };
    config.multiplier = speed === "max" ? "max" : Number(speed);
  }
  return { config, strategy_id: valueOf("strategy_id") || madeId() };
}

/** The run of a replay goes over what is loaded: the days that all instruments have. */
function takeLoaded(config) {
  const granularity = state.instruments[0]?.granularity;
  const those = state.instruments.filter((one) => one.granularity === granularity);
  const ids = those.map((one) => one.instrument_id);
  config.instrument_id = ids[0];
  if (ids.length > 1) config.instrument_ids = ids;
  config.granularity = granularity;
  config.start_date = those.map((one) => one.start_date).sort().pop();
  config.end_date = those.map((one) => one.end_date).sort()[0];
}

/** Why nothing can be started: the key of the reason, or null. */
function whyNoStart() {
  if (!mayAct()) return state.scope === "read_only" ? "why.readOnly" : "why.notConnected";
  if (isReplay()) return state.sessionState === "Loaded" ? null : "why.notLoaded";
  if (state.sessionState !== "Idle") return "why.running";
  if (venueOf("local_broker").state !== "Ready") return "why.noBoards";
  if (isReal() && (venueOf("web_broker").state !== "Ready" || venueOf("web_broker").frozen)) return "why.notReady";
  return null;
}

async function start() {
  if (starting || whyNoStart() !== null) return;
  const read = readForm();
  parts.problem.hidden = true;
  if (read.wrong !== undefined) {
    showProblem([t("problem.field"), " ", make("code", { translate: "no" }, read.wrong)]);
    parts.form.elements[read.wrong]?.focus();
    return;
  }
  starting = true;
  draw(render);
  try {
    if (!isReal() || venueOf("web_broker").second_password === "held" || (await askPassword("why.strategy"))) {
      errors = [];
      await ask("StartEngine", { engine: isReplay() ? "Backtest" : "Live", strategy_id: read.strategy_id, config: read.config });
      if (isReal()) backToPaper();
    }
  } catch (error) {
    showProblem(refusalParts(error));
  }
  starting = false;
  draw(render);
}

/** Each start with real orders is decided anew: an Enter in a field begins no further one. */
function backToPaper() {
  parts.form.querySelector("[name=paper][value=true]").checked = true;
  parts.form.elements.strategy_id.value = "";
}

function showProblem(nodes) {
  parts.problem.replaceChildren(...nodes);
  parts.problem.hidden = false;
}

/** Stops the run that goes on. */
export async function stopRun() {
  if (!mayAct() || !isRunning() || state.run === null) return;
  try {
    await ask("StopEngine", { strategy_id: state.run.strategy_id });
  } catch (error) {
    if (parts !== null) showProblem(refusalParts(error));
  }
}

listen("EngineError", (event) => {
  errors = [event, ...errors].slice(0, 50);
  draw(render);
});

function render() {
  const { pane, form, controls } = parts;
  const why = whyNoStart();
  const capable = isReplay() ? state.capabilities.replay : state.capabilities.live;
  setAttribute(pane, "data-run-kind", kind());
  parts.none.hidden = capable || state.connection !== "ready";
  form.hidden = !capable || (isRunning() && state.run !== null);
  parts.start.disabled = why !== null || starting;
  parts.start.title = why === null ? "" : t(why);
  for (const node of form.querySelectorAll("[data-kind]")) node.hidden = (node.dataset.kind === "real") !== isReal();
  controls.strategy_id.placeholder = isReal() ? t("typeIt") : madeId();
  if (!isReplay() && controls.instrument_id.value === "" && selectedTicker() !== null) controls.instrument_id.value = selectedTicker();
  if (!isReplay()) controls.max_position_qty.placeholder = valueOf("max_qty");
  renderRun();
  parts.log.replaceChildren(...errors.map((event) => make("li", { "data-code": event.code }, ...codeParts(event.code, event.message))));
}

const line = (key, node) => [make("dt", { text: key }), make("dd", {}, node)];

function renderRun() {
  const { running, stop } = parts;
  const nodes = [];
  if (isRunning() && state.run !== null) {
    stop.disabled = !mayAct();
    const list = make("dl", {}, ...line("runKind", make("b", { text: `runKind.${state.run.kind}` })),
      ...line("strategy_id", foreign("span", state.run.strategy_id)), ...line("run", foreign("span", state.run.run_id)));
    for (const [name, value] of Object.entries(state.parameters ?? {})) {
      list.append(make("dt", { translate: "no" }, name), make("dd", {}, typeof value === "number" ? number("span", value) : foreign("span", String(value))));
    }
    nodes.push(list, make("div", { class: "actions" }, stop));
  } else if (state.lastRun !== null) {
    const end = state.lastRun;
    nodes.push(make("p", { class: "hint" }, make("span", { text: "lastRun" }), " ", make("span", { text: `runEnd.${end.status}` }), " ", number("b", end.final_equity)));
    if (end.fault != null) nodes.push(make("p", { class: "problem" }, ...codeParts(end.fault.code, end.fault.message)));
  }
  if (!isReplay() && state.run?.kind === "paper") {
    parts.paperBox.hidden = false;
    const money = state.paperMoney;
    if (money !== null) {
      const cash = make("b", { "data-field": "cash" });
      setNumber(cash, money.cash_available);
      nodes.push(make("p", {}, make("span", { text: "paperCash" }), " ", cash));
    }
  }
  running.replaceChildren(...nodes);
}
