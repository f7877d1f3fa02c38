"use strict";

// The page of a sweep: key numbers, heat map, walk-forward table, runs.

const DATA = JSON.parse(document.getElementById("data").textContent);
const { manifest: MANIFEST, axes: AXES, statistics: STATISTICS, runs: RUNS, folds: FOLDS } = DATA;
const MADE_FROM = MANIFEST.made_from;
const byId = (id) => document.getElementById(id);
// Why a number of luck is missing, in the page's language where the table has it.
function missingText(text) {
  const few = /^(\d+) days; it is stated from (\d+) on$/.exec(text ?? "");
  if (few) return t("missingDays", { days: few[1], least: few[2] });
  return text ? known("missing", text) : null;
}
const statistic = (name) => STATISTICS.find((one) => one.name === name);
const COUNT = RUNS.row.length;
const NONE = "–";

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Numbers

const fixed = (digits) => ({ maximumFractionDigits: digits, minimumFractionDigits: digits });
const twoDigits = (value) => new Intl.NumberFormat(locale(), fixed(2)).format(value);
// A minus as wide as the digits; none in front of a zero.
const signed = (text) => text.replace(/^-(?=[0.,]*[^0-9.,]*$)/, "").replace(/^-/, "\u2212");

function written(kind, value) {
  if (value === null || value === undefined) return NONE;
  if (kind === "percent") return signed(`${twoDigits(value * 100)}${language === "ja" ? "" : "\u00a0"}%`);
  if (kind === "yen" || kind === "count") return signed(wholeNumber(value));
  return signed(twoDigits(value));
}

// For the small cells of the heat map.
function short(kind, value) {
  return signed(shortest(kind, value));
}

function shortest(kind, value) {
  if (kind === "percent") return `${(value * 100).toFixed(2)}%`;
  // 1.23M in English, 123万 in Japanese.
  if (Math.abs(value) >= 1e4) return new Intl.NumberFormat(locale(), { notation: "compact", maximumFractionDigits: 2 }).format(value);
  return kind === "count" || kind === "yen" ? value.toFixed(0) : value.toFixed(2);
}

function median(sorted) {
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// A statistic's name, and the same inside a sentence.
const labelOf = (one) => t(`statistic.${one.name}`);
const inside = (one) => t(`inside.${one.name}`);
const number = (run, name) => RUNS.numbers[name][run];
const placeOf = (run, axis) => RUNS.places[axis][run];
const valueOf = (run, axis) => { const place = placeOf(run, axis); return place === null ? NONE : AXES[axis].values[place]; };
const parameters = (run) => AXES.map((axis, index) => `${axis.name} ${valueOf(run, index)}`).join(", ");
const span = (pair) => (pair ? t("fromTo", { from: dayText(pair[0]), to: dayText(pair[1]) }) : NONE);

// Whether a run gave something else with window 1: it is shown, but not ranked.
const sawFuture = (run) => RUNS.verified[run] === false;

// Compares two runs, the better first; runs without the number last.
function better(name) {
  const sign = statistic(name).higher ? -1 : 1;
  return (left, right) => {
    const [one, other] = [placeAmong(left, name), placeAmong(right, name)];
    if (one !== other || one > 0) return one - other || left - right;
    // The sweep's own ranking, to the last digit.
    if (name === MANIFEST.rank_by) return RUNS.rank[left] - RUNS.rank[right];
    return sign * (number(left, name) - number(right, name)) || left - right;
  };
}

// Runs with a number come first, then those without; those that are not ranked, failed ones too, are last.
function placeAmong(run, name) {
  if (sawFuture(run) || RUNS.failure[run] !== null) return 2;
  return number(run, name) === null ? 1 : 0;
}

// Head

// The id of an issue, with its name where the sweep's data has one.
function issueText(id) {
  const name = (MADE_FROM.names ?? {})[id];
  return name === undefined ? id : `${id} ${visibleName(name)}`;
}

function head() {
  const strategy = (MADE_FROM.strategy && MADE_FROM.strategy.name) || t("sweep");
  byId("strategy").textContent = strategy;
  document.title = `${strategy} – ${t("title")}`;
  const complete = MANIFEST.status === "complete";
  const badge = byId("status");
  badge.textContent = known("status", MANIFEST.status);
  badge.classList.add(complete ? "is-completed" : "is-interrupted");
  const options = MADE_FROM.options || {};
  const issues = (options.instrument_id ?? "").split(",").map(issueText).join(", ");
  const what = [issues, span(DATA.period), t("runCount", { count: wholeNumber(MANIFEST.runs_total) })];
  byId("subtitle").textContent = what.filter(Boolean).join(" · ");
  const notices = byId("notices");
  if (!complete) {
    const left = MANIFEST.runs_total - MANIFEST.runs_done;
    notices.append(element("p", t("notComplete", { left: wholeNumber(left), total: wholeNumber(MANIFEST.runs_total) }), "notice strong"));
  }
  if (COUNT < MANIFEST.runs_done) {
    notices.append(element("p", t("bestHeld", { count: wholeNumber(COUNT), total: wholeNumber(MANIFEST.runs_done) }), "notice"));
  }
  if (MANIFEST.runs_saw_the_future > 0) {
    notices.append(element("p", t("sawFutureNotice", { count: wholeNumber(MANIFEST.runs_saw_the_future) }), "alert"));
  }
  for (const { runs, text } of MANIFEST.warnings) {
    const notice = element("p", t("warnedNotice", { count: wholeNumber(runs), total: wholeNumber(MANIFEST.runs_done) }), "alert");
    notice.append(" ", recorded(text));
    notices.append(notice);
  }
  const warning = (MADE_FROM.options || {}).warning;
  if (warning) {
    const notice = element("p", undefined, "notice strong");
    notice.append(recorded(warning));
    notices.append(notice);
  }
  if (MANIFEST.runs_failed > 0 && MANIFEST.runs_failed === MANIFEST.runs_done) {
    notices.append(allFailed());
  }
  facts();
}

function allFailed() {
  const alert = element("p", t("allFailed"), "alert");
  alert.append(" ", RUNS.errors.length > 0 ? recorded(RUNS.errors[0]) : t("seeTable"));
  return alert;
}

function facts() {
  const list = element("ul", undefined, "params");
  const add = (name, value) => {
    const item = element("li");
    item.append(element("span", `${name} `, "key"), element("span", value));
    list.append(item);
  };
  for (const axis of AXES) {
    const { values } = axis;
    add(axis.name, values.length > 6 ? t("axisValues", { first: values[0], last: values[values.length - 1], count: values.length }) : values.join(", "));
  }
  for (const [name, value] of Object.entries(DATA.fixed)) add(name, typeof value === "string" ? value : JSON.stringify(value));
  const box = element("div");
  box.append(element("h2", t("parameters"), "fact"), list);
  byId("facts").append(box);
}

function card(name, value, note, tone) {
  const box = element("div", undefined, `card ${tone || ""}`);
  const definition = element("dd");
  definition.append(element("div", value, "value"));
  if (note) definition.append(element("div", note, "note"));
  box.append(element("dt", name), definition);
  byId("cards").append(box);
}

function cards() {
  const rank = statistic(MANIFEST.rank_by);
  const best = RUNS.row.indexOf(MANIFEST.best_run);
  if (best >= 0) {
    card(t("bestOf", { name: inside(rank) }), written(rank.kind, number(best, rank.name)), parameters(best));
    const gain = number(best, "return");
    if (rank.name !== "return") card(t("bestReturn"), written("percent", gain), t("withDrawdown", { value: written("percent", number(best, "max_drawdown")) }), gain > 0 ? "gain" : "loss");
    else card(t("bestDrawdown"), written("percent", number(best, "max_drawdown")), t("withSharpe", { value: written("ratio", number(best, "sharpe")) }));
  }
  if (MANIFEST.out_of_sample_return !== null) {
    const gain = MANIFEST.out_of_sample_return;
    card(t("outOfSampleReturn"), written("percent", gain), t("testWindows", { count: FOLDS.length }), gain > 0 ? "gain" : "loss");
  }
  const all = rankedRuns().map((run) => number(run, rank.name)).filter((value) => value !== null).sort((a, b) => a - b);
  if (all.length) {
    const positive = rankedRuns().filter((run) => number(run, "return") > 0).length;
    card(t("medianOf", { name: inside(rank) }), written(rank.kind, median(all)), t("withProfit", { count: wholeNumber(positive), total: wholeNumber(all.length) }));
  }
  const luck = MANIFEST.luck;
  card(t("luck.deflated_sharpe"), written("percent", luck.deflated_sharpe), missingText(luck.deflated_sharpe_missing) ?? t("luckNote", { value: written("ratio", luck.expected_max_sharpe), trials: wholeNumber(luck.trials) }));
  card(t("luck.overfitting_probability"), written("percent", luck.overfitting_probability), missingText(luck.overfitting_missing) ?? t("overfittingNote", { runs: wholeNumber(luck.overfitting_runs) }));
  card(t("runs"), wholeNumber(MANIFEST.runs_done), MANIFEST.runs_failed ? t("failedCount", { count: wholeNumber(MANIFEST.runs_failed) }) : t("noneFailed"));
}

const trainRuns = () => RUNS.row.map((_, run) => run).filter((run) => !RUNS.test[run]);
const rankedRuns = () => trainRuns().filter((run) => !sawFuture(run));

// Heat map

const state = { x: 0, y: 1, statistic: MANIFEST.rank_by, fold: 0, others: {}, colours: "value" };

function select(label, options, chosen, change) {
  const box = element("label", label);
  const made = element("select");
  for (const [value, text] of options) {
    const option = element("option", text);
    option.value = value;
    option.selected = String(value) === String(chosen);
    made.append(option);
  }
  made.addEventListener("change", () => { change(made.value); map(); });
  box.append(made);
  return box;
}

function controls() {
  const bar = byId("controls");
  bar.replaceChildren();
  bar.append(select(t("number"), STATISTICS.map((one) => [one.name, labelOf(one)]), state.statistic, (value) => { state.statistic = value; }));
  bar.append(select(t("colours"), [["value", t("byValue")], ["rank", t("byRank")]], state.colours, (value) => { state.colours = value; }));
  const names = AXES.map((axis, index) => [index, axis.name]);
  if (AXES.length > 1) {
    const swap = (mine, its) => (value) => {
      if (Number(value) === state[its]) state[its] = state[mine];
      state[mine] = Number(value);
    };
    bar.append(select(t("across"), names, state.x, swap("x", "y")), select(t("down"), names, state.y, swap("y", "x")));
  }
  if (FOLDS.length) {
    const folds = FOLDS.map((fold, index) => [index, `${index + 1}: ${span(fold.train)}`]);
    bar.append(select(t("window"), folds, state.fold, (value) => { state.fold = Number(value); }));
  }
  AXES.forEach((axis, index) => {
    if (index === state.x || index === state.y) return;
    const options = [["best", t("bestOfAll")], ...axis.values.map((value, place) => [place, value])];
    bar.append(select(axis.name, options, state.others[index] ?? "best", (value) => { state.others[index] = value; }));
  });
}

let heat;

function map() {
  controls();
  const flat = AXES.length === 1;
  const yAxis = flat ? null : AXES[state.y];
  const width = AXES[state.x].values.length;
  const height = flat ? 1 : yAxis.values.length;
  const wanted = (run) => AXES.every((_, axis) => {
    if (axis === state.x || axis === state.y) return true;
    const chosen = state.others[axis] ?? "best";
    return chosen === "best" || Number(chosen) === placeOf(run, axis);
  });
  const compare = better(state.statistic);
  const cells = new Array(width * height).fill(null);
  for (const run of rankedRuns()) {
    if (FOLDS.length && RUNS.fold[run] !== state.fold) continue;
    if (!wanted(run)) continue;
    const place = (flat ? 0 : placeOf(run, state.y)) * width + placeOf(run, state.x);
    const before = cells[place];
    if (before === null || compare(run, before) < 0) cells[place] = run;
  }
  const known = cells.filter((run) => run !== null && number(run, state.statistic) !== null);
  const values = known.map((run) => number(run, state.statistic));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const best = known.slice().sort(compare)[0];
  const up = statistic(state.statistic).higher;
  const sorted = values.slice().sort((one, other) => one - other);
  const byRank = state.colours === "rank" && sorted.length > 1;
  const share = (value) => {
    if (high === low) return 0.5;
    const part = byRank ? sorted.findIndex((other) => other >= value) / (sorted.length - 1) : (value - low) / (high - low);
    return up ? part : 1 - part;
  };
  const { kind } = statistic(state.statistic);
  const label = labelOf(statistic(state.statistic));
  heat ||= new HeatMap(byId("heat"), byId("heat-readout"), tellRun);
  heat.show({
    xs: AXES[state.x].values, ys: flat ? [""] : yAxis.values, xName: AXES[state.x].name, yName: flat ? "" : yAxis.name,
    cell: (x, y) => { const run = cells[y * width + x]; return run === null ? null : { run, value: number(run, state.statistic), failed: RUNS.failure[run] !== null }; },
    share, write: (value) => short(kind, value),
    best: best === undefined ? null : [cells.indexOf(best) % width, Math.floor(cells.indexOf(best) / width)],
  });
  byId("heat").setAttribute("aria-label", best === undefined ? t("noNumbers", { label }) : t("mapLabel", { label, axes: flat ? AXES[state.x].name : t("twoAxes", { x: AXES[state.x].name, y: yAxis.name }), best: written(kind, number(best, state.statistic)), at: parameters(best) }));
  scale(values.length ? [up ? low : high, up ? high : low] : null, kind);
  byId("map-hint").textContent = [t(AXES.length > 2 ? "cellBest" : "cellRun"), t("cellColours"), RUNS.errors.length ? t("cellCross") : "", best !== undefined && RUNS.verified[best] === null ? t("bestUnverified") : "", t("cellKeys")].join("");
}

function scale(ends, kind) {
  const box = byId("scale");
  box.replaceChildren();
  if (!ends) return;
  const ramp = element("div", undefined, "ramp");
  ramp.style.background = `linear-gradient(to right, ${RAMP.join(",")})`;
  const line = element("div", undefined, "ends");
  line.append(element("span", written(kind, ends[0])), element("span", t("better")), element("span", written(kind, ends[1])));
  box.append(ramp, line);
}

function tellRun(cell, x, y) {
  if (!cell) {
    const names = [[AXES[state.x].name, AXES[state.x].values[x]]];
    if (AXES.length > 1) names.push([AXES[state.y].name, AXES[state.y].values[y]]);
    return [...names, ["", t("noRun")]];
  }
  const { run } = cell;
  const lines = AXES.map((axis, index) => [axis.name, valueOf(run, index)]);
  if (RUNS.failure[run] !== null) return [...lines, [t("failedColon"), RUNS.errors[RUNS.failure[run]].slice(0, 120)]];
  const shown = [state.statistic, "sharpe", "return", "max_drawdown", "round_trips", "equity_end"];
  for (const name of new Set(shown)) {
    const one = statistic(name);
    lines.push([labelOf(one), written(one.kind, number(run, name))]);
  }
  return [...lines, [t("runNumber"), wholeNumber(RUNS.row[run])]];
}

// Tables

const SHOWN = ["sharpe", "return", "max_drawdown", "equity_end", "round_trips", "win_rate", "fills", "turnover", "commission"];
const MORE = 200;
// At first the best, which were made again with window 1, and not those after them.
const order = { by: MANIFEST.rank_by, axis: null, down: false, shown: MANIFEST.verify || 10 };

function headCell(row, text, className, sort, sorted) {
  const cell = element("th", sort ? undefined : text, className);
  cell.scope = "col";
  if (sort) {
    cell.classList.add("sortable");
    const button = element("button", sorted ? `${text} ${sorted === "descending" ? "↓" : "↑"}` : text);
    button.type = "button";
    button.addEventListener("click", sort);
    if (sorted) cell.setAttribute("aria-sort", sorted);
    cell.append(button);
  }
  row.append(cell);
}

function sortedRuns() {
  const runs = trainRuns();
  if (order.axis === null) {
    const compare = better(order.by);
    runs.sort(compare);
    if (order.down) {
      const none = runs.findIndex((run) => placeAmong(run, order.by) > 0);
      const known = none < 0 ? runs.length : none;
      return [...runs.slice(0, known).reverse(), ...runs.slice(known)];
    }
    return runs;
  }
  const sign = order.down ? -1 : 1;
  return runs.sort((left, right) => sign * (placeOf(left, order.axis) - placeOf(right, order.axis)) || left - right);
}

function runsTable() {
  const table = byId("top-table");
  const runs = sortedRuns();
  const head = element("tr");
  headCell(head, t("run"), "number");
  if (FOLDS.length) headCell(head, t("window"), "number");
  AXES.forEach((axis, index) => {
    const here = order.axis === index;
    const sorted = here ? (order.down ? "descending" : "ascending") : null;
    headCell(head, axis.name, "number", () => { order.down = here && !order.down; order.axis = index; runsTable(); }, sorted);
  });
  for (const name of SHOWN) {
    const one = statistic(name);
    const here = order.axis === null && order.by === name;
    const sorted = here ? (one.higher !== order.down ? "descending" : "ascending") : null;
    headCell(head, labelOf(one), "number", () => { order.down = here && !order.down; order.axis = null; order.by = name; runsTable(); }, sorted);
  }
  headCell(head, t("luck.verified"));
  const body = element("tbody");
  for (const run of runs.slice(0, order.shown)) body.append(runRow(run));
  const top = element("thead");
  top.append(head);
  table.replaceChildren(top, body);
  const more = byId("more");
  more.hidden = order.shown >= runs.length;
  more.textContent = t("showMore", { count: Math.min(MORE, runs.length - order.shown) });
  byId("top-hint").textContent = t(FOLDS.length ? "runsShownWindows" : "runsShown", { shown: wholeNumber(Math.min(order.shown, runs.length)), count: wholeNumber(runs.length) });
}

function runRow(run) {
  const row = element("tr", undefined, RUNS.row[run] === MANIFEST.best_run ? "best" : "");
  row.append(element("td", wholeNumber(RUNS.row[run]), "number"));
  if (FOLDS.length) row.append(element("td", String(RUNS.fold[run] + 1), "number"));
  AXES.forEach((_, axis) => row.append(element("td", valueOf(run, axis), "number")));
  if (RUNS.failure[run] !== null) {
    const cell = element("td", undefined, "failed");
    cell.append(recorded(RUNS.errors[RUNS.failure[run]]));
    cell.colSpan = SHOWN.length + 1;
    row.append(cell);
    return row;
  }
  for (const name of SHOWN) row.append(element("td", written(statistic(name).kind, number(run, name)), "number"));
  row.append(element("td", verdict(run), sawFuture(run) ? "failed" : ""));
  return row;
}

function verdict(run) {
  if (sawFuture(run)) return t("sawFuture");
  return t(RUNS.verified[run] ? "yes" : "notMadeAgain");
}

function luckTable() {
  const kinds = { ratio: "percent", count: "count", number: "ratio" };
  for (const { name, unit } of DATA.luck) {
    const row = element("tr");
    const label = element("th", t(`luck.${name}`));
    label.scope = "row";
    const known = name in MANIFEST.luck;
    const value = known ? written(kinds[unit], MANIFEST.luck[name]) : "";
    const missing = known ? MANIFEST.luck[name.replace("_probability", "") + "_missing"] : null;
    row.append(label, element("td", missing ? `${NONE} (${missingText(missing)})` : value, "number"), element("td", t(`luckText.${name}`)));
    byId("luck-table").append(row);
  }
}

function walk() {
  if (!FOLDS.length) return;
  byId("walk").hidden = false;
  const rank = statistic(MANIFEST.rank_by);
  const head = element("tr");
  for (const key of ["window", "chosenOn", "testedOn"]) headCell(head, t(key));
  for (const axis of AXES) headCell(head, axis.name, "number");
  headCell(head, t("inSample", { name: labelOf(rank) }), "number");
  headCell(head, t("outOfSample", { name: labelOf(rank) }), "number");
  headCell(head, t("statistic.return"), "number");
  headCell(head, t("statistic.max_drawdown"), "number");
  headCell(head, t("luck.verified"));
  const body = element("tbody");
  FOLDS.forEach((fold, index) => body.append(foldRow(fold, index, rank)));
  const top = element("thead");
  top.append(head);
  byId("walk-table").replaceChildren(top, body);
}

function foldRow(fold, index, rank) {
  const row = element("tr");
  row.append(element("td", String(index + 1)), element("td", span(fold.train)), element("td", span(fold.test)));
  const test = RUNS.row.findIndex((_, run) => RUNS.test[run] && RUNS.fold[run] === index);
  if (test < 0 || RUNS.failure[test] !== null) {
    const cell = element("td", undefined, test < 0 ? "" : "failed");
    cell.append(test < 0 ? t("notRunYet") : recorded(RUNS.errors[RUNS.failure[test]]));
    cell.colSpan = AXES.length + 5;
    row.append(cell);
    return row;
  }
  const same = (run) => AXES.every((_, axis) => placeOf(run, axis) === placeOf(test, axis));
  const train = trainRuns().find((run) => RUNS.fold[run] === index && same(run));
  AXES.forEach((_, axis) => row.append(element("td", valueOf(test, axis), "number")));
  const cells = [[rank, train], [rank, test], [statistic("return"), test], [statistic("max_drawdown"), test]];
  for (const [one, run] of cells) row.append(element("td", run === undefined ? NONE : written(one.kind, number(run, one.name)), "number"));
  row.append(element("td", verdict(test), sawFuture(test) ? "failed" : ""));
  return row;
}

function madeFrom() {
  const table = byId("made-from");
  const add = (name, value) => {
    const row = element("tr");
    const cell = element("td");
    cell.append(element("code", value));
    const label = element("th", name);
    label.scope = "row";
    row.append(label, cell);
    table.append(row);
  };
  const { strategy, inputs, options } = MADE_FROM;
  if (strategy && strategy.sha256) add(t("strategyHash"), strategy.sha256);
  for (const input of inputs || []) add(input.file, t("inputRows", { hash: input.xxh3_128, rows: wholeNumber(input.rows) }));
  for (const [name, value] of Object.entries(options || {})) {
    if (name === "execution_model") model(value, add);
    else if (value !== null) add(known("option", name), typeof value === "string" ? value : JSON.stringify(value));
  }
  add("Kumiki", String(MADE_FROM.kumiki_version));
}

// The exchange's rules, and what it leaves out.
function rules() {
  for (const [name, text] of rulesInOrder(MANIFEST.rules)) {
    const box = element("div");
    const rule = element("dd");
    rule.append(ruleText(name, text));
    box.append(element("dt", name), rule);
    byId("rules").append(box);
  }
}

// The parameters of the exchange, a line each.
function model(parameters, add) {
  for (const [name, value] of Object.entries(parameters)) {
    const endless = name === "queue_ahead" && value === null;
    add(t("execution", { name: known("option", name) }), endless ? t("endless") : typeof value === "string" ? value : JSON.stringify(value));
  }
}

showPage(() => {
  heat = null;
  head();
  cards();
  if (trainRuns().some((run) => RUNS.failure[run] === null)) {
    byId("map").hidden = false;
    map();
  }
  walk();
  byId("more").addEventListener("click", () => { order.shown += MORE; runsTable(); });
  runsTable();
  luckTable();
  madeFrom();
  rules();
});
