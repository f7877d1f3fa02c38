"use strict";

// The ranking page: asks as soon as it is opened, shows a day at a time, and the chart of an issue.

const $ = id => document.getElementById(id);
const EXAMPLES = [
  ["exampleChange1", "(Close - Close[-1]) / Close[-1] * 100"],
  ["exampleChange20", "(Close - Close[-20]) / Close[-20] * 100"],
  ["exampleVolume", "Volume"],
  ["exampleRangePercent", "(High - Low) / Close * 100"],
  ["exampleTurnover", "Close * Volume"],
  ["exampleRangeYen", "High - Low"],
  ["exampleHigh", "Close / High[-3] * 100"],
  ["exampleVolumeRatio", "Volume / Volume[-1]"],
];
const SPARK_DAYS = 60;
// How often a service without data is asked again.
const AGAIN_MS = 5000;
let days = [], places = new Map(), asked = null, running = null, checking = 0, modules = [];
// Days that are named at most where some are missing.
const NAMED_DAYS = 3;
let dataset = null, schema = { item: new Set(), adjusted: false };
// What the page says, made anew when the language changes.
let statusText = null, datasetText = null, checkText = null;

async function ask(query, variables, signal) {
  const headers = { "Content-Type": "application/json" };
  if ($("token").value) headers.Authorization = "Bearer " + $("token").value;
  const response = await fetch("/graphql", {
    method: "POST", headers, signal, body: JSON.stringify({ query, variables }) });
  if (response.status === 401) { $("access").hidden = false; }
  return response.json();
}

function say(make, bad) {
  statusText = make;
  $("status").replaceChildren(...[make()].flat());
  $("status").className = bad ? "bad" : "";
}
function sayDataset(make) { datasetText = make; $("dataset").textContent = make(); }

// An error in the page's words, by its code, and then what was found and what to do: in the page's language
// where the table has the service's sentence, else as the service says it.
function errorText(error) {
  const code = error.extensions?.code ?? "OTHER", key = `error.${code}`;
  const found = Object.hasOwn(TEXTS, key) ? t(key) : t("error.OTHER", { code });
  return [found, " ", recorded(error.message)];
}

// `name(parameter=value, ...)` is a formula module of the server; no formula looks like this.
function moduleOf(text) {
  const call = /^\s*([a-z][a-z0-9-]*)\s*\(([^()]*)\)\s*$/.exec(text);
  const about = call && modules.find(one => one.name === call[1]);
  if (!about) return null;
  const parts = call[2].split(",").filter(part => part.trim());
  const formulaParams = parts.map(part => {
    const [name, value] = part.split("=");
    return { name: name.trim(), value: value?.trim() ? Number(value) : NaN };
  });
  const wrong = formulaParams.find(param => !Number.isFinite(param.value));
  return { about, formula: about.name, formulaParams, wrong };
}
function tellModule(module) {
  const range = one => t("parameterRange", { name: one.name, low: one.minimum, high: one.maximum });
  tellFormula(!module.wrong, () => [module.wrong ? t("parameterNumber", { name: module.wrong.name })
    : "✓ " + [module.about.description, ...module.about.parameters.map(range)].join("; ")]);
}

// What is told below the formula.
function tellFormula(good, make) {
  checkText = make;
  $("check").className = good ? "good" : "bad";
  $("formula").setAttribute("aria-invalid", String(!good));
  $("check").replaceChildren(...make());
}
function tellPlace(text, position, message) {
  tellFormula(false, () => [pointer(text, position), t("error.FORMULA_INVALID"), " ", recorded(message)]);
}

// The formula is looked at by the server a moment after the last key.
let timer = 0;
function checkSoon() { clearTimeout(timer); timer = setTimeout(check, 150); }
async function check() {
  clearTimeout(timer);
  const text = $("formula").value, turn = ++checking, module = moduleOf(text);
  if (module) return tellModule(module);
  let answer;
  try {
    answer = await ask("query($f:String!){checkFormula(sortBy:$f){valid canonical lags message position}}", { f: text });
  } catch { if (turn === checking) tellFormula(false, () => [t("noAnswer")]); return; }
  if (turn !== checking) return;
  if (answer.errors) { tellFormula(false, () => errorText(answer.errors[0])); return; }
  const found = answer.data.checkFormula;
  if (!found.valid) return tellPlace(text, found.position, found.message);
  tellFormula(true, () => {
    const back = found.lags.length ? t("looksBack", { days: found.lags.at(-1) }) : "";
    return ["✓ " + found.canonical + back];
  });
}

// The part of the formula around the place, with a mark below it.
function pointer(text, position) {
  const characters = [...text.replace(/\s/g, " ")], at = Math.min(position ?? 1, characters.length + 1) - 1;
  const start = Math.max(0, at - 30);
  const pre = document.createElement("pre");
  pre.className = "mono";
  pre.textContent = (start ? "…" : "") + characters.slice(start, start + 60).join("") + "\n"
    + " ".repeat(at - start + (start ? 1 : 0)) + "▲";
  return pre;
}

// The fields of a row, as far as the service has them.
function fields() {
  const more = ["name", "nameEn", "market", "sector33", "spansSplit"].filter(name => schema.item.has(name));
  return ["date", "code", "close", "volume", "sortValue", "rank", ...more].join(" ");
}

async function run() {
  if (running) running.abort();
  const turn = running = new AbortController();
  const question = { fromDate: $("from").value, toDate: $("to").value, sortBy: $("formula").value,
    order: $("order").value, limit: Number($("limit").value) };
  if (schema.adjusted && $("adjusted").checked) question.adjusted = true;
  const module = moduleOf(question.sortBy), { sortBy, ...sent } = question;
  Object.assign(sent, module ? { formula: module.formula, formulaParams: module.formulaParams } : { sortBy });
  $("stop").hidden = false;
  $("result").setAttribute("aria-busy", "true");
  say(() => t("ranking.busy"));
  const started = performance.now();
  try {
    const kinds = ["$fromDate:String!", "$toDate:String!", "$order:String", "$limit:Int",
      ...(module ? ["$formula:String", "$formulaParams:[FormulaParam!]"] : ["$sortBy:String"]),
      ...(sent.adjusted ? ["$adjusted:Boolean"] : [])];
    const given = Object.keys(sent).map(name => `${name}:$${name}`).join(",");
    const answer = await ask(`query(${kinds.join(",")}){stockRankingRange(${given}){${fields()}}}`, sent, turn.signal);
    // An answer to an older question never takes the place of a newer one.
    if (running !== turn) return;
    turn.signal.throwIfAborted();
    if (answer.errors) fail(question, answer.errors[0]);
    else take(question, answer.data.stockRankingRange, Math.round(performance.now() - started));
  } catch (error) {
    if (running === turn) say(() => t(error.name === "AbortError" ? "stopped" : "noAnswer"), true);
  } finally {
    if (running === turn) {
      running = null;
      $("stop").hidden = true;
      $("result").removeAttribute("aria-busy");
    }
  }
}

// An error of the formula is told at its place, any other below the form.
function fail(question, error) {
  if (error.extensions?.position && $("formula").value === question.sortBy) {
    checking++;
    tellPlace(question.sortBy, error.extensions.position, error.message);
    say(() => t("seeFormula"), true);
    $("formula").focus();
  } else say(() => errorText(error), true);
}

function take(question, rows, time) {
  asked = question;
  days = []; places = new Map();
  for (const row of rows) {
    if (days.at(-1)?.date !== row.date) days.push({ date: row.date, rows: [] });
    days.at(-1).rows.push(row);
    let list = places.get(row.code);
    if (!list) places.set(row.code, list = new Map());
    list.set(days.length - 1, row.rank);
  }
  const count = days.length;
  say(() => t("answered", { rows: wholeNumber(rows.length), days: wholeNumber(count), ms: wholeNumber(time) }));
  $("result").hidden = false;
  $("slider").max = Math.max(0, days.length - 1);
  $("slider").value = $("slider").max;
  $("slider").disabled = days.length < 2;
  $("csv").disabled = !rows.length;
  remember();
  show();
}

// The name of an issue in the page's language, as far as the data has one.
function nameOf(item) { return visibleName((language === "ja" ? item.name ?? item.nameEn : item.nameEn ?? item.name) ?? ""); }

function show() {
  const at = Number($("slider").value), day = days[at], body = $("rows");
  const focused = document.activeElement?.closest?.("#rows tr")?.dataset.code;
  body.replaceChildren();
  $("date").textContent = day ? dayText(day.date) : t("noDays");
  $("date").dataset.date = day?.date ?? "";
  $("slider").setAttribute("aria-valuetext", day ? dayText(day.date) : t("noDays"));
  $("back").disabled = !day || at === 0;
  $("next").disabled = !day || at === days.length - 1;
  $("caption").textContent = day
    ? t("caption", { at: wholeNumber(at + 1), days: wholeNumber(days.length), by: asked.sortBy,
      order: t(asked.order === "asc" ? "smallestFirst" : "largestFirst") })
    : "";
  $("valuehead").setAttribute("aria-sort", asked.order === "asc" ? "ascending" : "descending");
  const named = schema.item.has("name");
  $("namehead").hidden = !named;
  $("result").classList.toggle("named", named);
  const span = Math.min(SPARK_DAYS, days.length);
  const closes = decimals(day ? day.rows.map(item => item.close) : []);
  $("sparkhead").hidden = span < 2;
  $("sparkhead").textContent = t(window.innerWidth <= 640 ? "sparkShort" : "spark", { days: span });
  if (!day) {
    const row = body.insertRow(), cell = row.insertCell();
    cell.colSpan = 7; cell.className = "empty";
    cell.textContent = t("emptyRange");
    return;
  }
  for (const item of day.rows) {
    const row = body.insertRow();
    row.dataset.code = item.code;
    const put = (text, kind) => { const cell = row.insertCell(); cell.textContent = text; cell.className = kind || ""; return cell; };
    put(item.rank, "place");
    put("", "text code mono").append(issueButton(item, focused === item.code));
    if (named) put("", "text name").append(aloneText(nameOf(item)), placeOf(item));
    const value = put(valueText(item.sortValue), "value");
    if (item.spansSplit) value.prepend(splitMark("split", asked.adjusted ? "splitAdjusted" : "splitTitle"));
    if (item.spansSplit === null) value.prepend(splitMark("splitUnknown", "splitUnknownTitle"));
    put(decimalNumber(item.close, closes));
    put(item.volume === null ? "–" : wholeNumber(item.volume), "wide");
    if (span > 1) put("", "spark").append(spark(item.code, at, span));
  }
  body.querySelector("[data-focus]")?.focus();
}

// A code, which opens the chart of its issue.
function issueButton(item, hadFocus) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = item.code;
  button.title = t("openChart");
  if (hadFocus) button.dataset.focus = "";
  button.onclick = () => openChart(item, dataset);
  return button;
}
// A text whose direction is its own.
function aloneText(text) {
  const alone = document.createElement("bdi");
  alone.textContent = text;
  return alone;
}
// Where an issue is listed and what it does, each in the page's language where the table has it.
function marketAndSector({ market, sector33 }) {
  return [market && known("market", market), sector33 && known("sector", sector33)].filter(Boolean).map(visibleName);
}
function placeOf(item) {
  const small = document.createElement("small");
  small.textContent = marketAndSector(item).join(" ");
  return small;
}
function splitMark(text, title) {
  const mark = document.createElement("span");
  mark.className = "split";
  mark.textContent = t(text);
  mark.title = t(title);
  return mark;
}

// What rankings lack: business days that are not there, and days that are not complete yet.
function lacks() {
  const named = dates => dates.slice(0, NAMED_DAYS).map(dayText).join(", ");
  const told = (key, dates) => dates?.length ? " · " + t(key, { count: wholeNumber(dates.length), dates: named(dates),
    more: dates.length > NAMED_DAYS ? " …" : "" }) : "";
  const doubted = dataset.doubts && [...new Set(dataset.doubts.map(doubt => doubt.date))].sort();
  return told("missingDays", dataset.missingDates) + told("incompleteDays", dataset.incompleteDates) + told("doubtedDays", doubted);
}

// Digits after the point that all of them need, at most 4, so that points stand below each other.
function decimals(numbers) {
  return Math.max(0, ...numbers.map(number => Math.min(4, (String(number).split(".")[1] ?? "").length)));
}
function decimalNumber(number, digits) {
  return number.toLocaleString(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function valueText(number) {
  if (number === null) return "–";
  const size = Math.abs(number);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return number.toExponential(4);
  const most = size >= 1000 ? 1 : size >= 1 ? 3 : 5;
  return number.toLocaleString(locale(), { maximumFractionDigits: most, minimumFractionDigits: Number.isInteger(number) ? 0 : most });
}

// One bar for each day on which the issue was ranked; the higher, the nearer to the first place.
function spark(code, at, span) {
  const NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
  const first = Math.max(0, at - span + 1), list = places.get(code), width = 180 / span;
  svg.setAttribute("viewBox", "0 0 180 22");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  const base = document.createElementNS(NS, "line");
  for (const [name, number] of [["x1", 0], ["x2", 180], ["y1", 21.5], ["y2", 21.5]]) base.setAttribute(name, number);
  svg.append(base);
  let count = 0;
  for (let day = first; day <= at; day++) {
    const place = list.get(day);
    if (!place) continue;
    count++;
    const height = 3 + 18 * (1 - (place - 1) / Math.max(1, asked.limit));
    const bar = document.createElementNS(NS, "rect");
    bar.setAttribute("x", (day - first) * width);
    bar.setAttribute("y", 21 - height);
    bar.setAttribute("width", Math.max(0.8, Math.min(width * 0.8, 12)));
    bar.setAttribute("height", height);
    if (day === at) bar.setAttribute("class", "now");
    svg.append(bar);
  }
  svg.setAttribute("aria-label", t("sparkLabel", { count, days: at - first + 1 }));
  return svg;
}

function move(step) {
  const at = Math.min(days.length - 1, Math.max(0, Number($("slider").value) + step));
  $("slider").value = at; show();
}

// A text as a cell of CSV. What a spreadsheet could take for a formula is marked as text, by the rule that the
// program's own files have too; numbers are written as they are.
function csvText(text) {
  const bare = text.replace(/^['\s\p{Cf}]+/u, "").trimEnd();
  const isFormula = /^[=+\-@＝＋－＠]./su.test(bare) && Number.isNaN(Number(bare));
  const cell = isFormula ? `'${text}` : text;
  return /[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
function csvCell(value) { return typeof value === "string" ? csvText(value) : value ?? ""; }

function download() {
  const columns = fields().split(" "), lines = [columns.join(",")];
  for (const day of days) for (const row of day.rows) lines.push(columns.map(name => csvCell(row[name])).join(","));
  const link = document.createElement("a");
  // With the mark of its encoding, without which a spreadsheet shows no Japanese.
  link.href = URL.createObjectURL(new Blob(["\ufeff" + lines.join("\n") + "\n"], { type: "text/csv" }));
  link.download = `ranking_${asked.fromDate}_${asked.toDate}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The address holds the question, so that it can be kept and sent on.
function remember() { history.replaceState(null, "", "#" + new URLSearchParams(asked)); }

function grow() { const box = $("formula"); box.style.height = "auto"; box.style.height = box.scrollHeight + 2 + "px"; }

function example(name, formula, title) {
  const button = document.createElement("button");
  button.type = "button"; button.textContent = name; button.title = title;
  button.onclick = () => { $("formula").value = formula; grow(); check(); };
  $("examples").append(button);
  return button;
}
// The examples, and behind them the formula modules of the server.
function showExamples() {
  $("examples").replaceChildren();
  for (const [key, formula] of EXAMPLES) example(t(key), formula, formula);
  for (const one of modules) {
    const values = one.parameters.map(parameter => `${parameter.name}=${parameter.default}`);
    example(one.name, `${one.name}(${values.join(", ")})`, one.description).classList.add("module");
  }
}

$("form").onsubmit = event => { event.preventDefault(); run(); };
$("formula").oninput = () => { grow(); checkSoon(); };
$("formula").onkeydown = event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); $("form").requestSubmit(); }
};
document.addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); $("form").requestSubmit(); }
  if (event.key === "Escape" && !$("chart").open && running) running.abort();
});
$("stop").onclick = () => running?.abort();
$("slider").oninput = show;
$("back").onclick = () => move(-1);
$("next").onclick = () => move(1);
$("csv").onclick = download;
$("adjusted").onchange = run;
$("token").onchange = load;
window.addEventListener("resize", () => { grow(); if (days.length) show(); });
function theme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = t(name === "dark" ? "light" : "dark");
  redrawChart();
}
$("theme").onclick = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

// Everything that is text, anew.
function retell() {
  applyTexts();
  languageSwitch(retell);
  theme(document.documentElement.dataset.theme);
  showExamples();
  if (datasetText) $("dataset").textContent = datasetText();
  if (statusText) $("status").replaceChildren(...[statusText()].flat());
  if (checkText) $("check").replaceChildren(...checkText());
  if (asked) show();
  retellChart();
}

const ABOUT = `{dataset{days codes firstDate lastDate missingDates incompleteDates doubts{date}}
  formulas{name description refused parameters{name default minimum maximum}}
  item:__type(name:"DailyRankingItem"){fields{name}}
  query:__type(name:"Query"){fields{name args{name}}}}`;

// What the service has and can do; then the first ranking.
let loading = 0;
async function load() {
  const turn = ++loading;
  let answer;
  try { answer = await ask(ABOUT); } catch { answer = null; }
  if (turn !== loading) return;
  if (!answer) { sayDataset(() => t("noAnswer")); return; }
  if (answer.errors) {
    const error = answer.errors[0];
    sayDataset(() => "");
    say(() => errorText(error), true);
    if (error.extensions?.code === "NO_DATA") setTimeout(load, AGAIN_MS);
    return;
  }
  $("access").hidden = true;
  modules = answer.data.formulas.filter(one => !one.refused);
  const ranking = answer.data.query.fields.find(field => field.name === "stockRankingRange");
  schema = { item: new Set(answer.data.item.fields.map(field => field.name)),
    adjusted: ranking.args.some(arg => arg.name === "adjusted") };
  $("adjusted-box").hidden = !schema.adjusted;
  showExamples();
  dataset = answer.data.dataset;
  if (!dataset.lastDate) {
    sayDataset(() => t("noData"));
    say(() => t("noDataHelp"), true);
    setTimeout(load, AGAIN_MS);
    return;
  }
  sayDataset(() => t("dataset", { codes: wholeNumber(dataset.codes), days: wholeNumber(dataset.days),
    first: dayText(dataset.firstDate), last: dayText(dataset.lastDate) }) + lacks());
  $("to").value ||= dataset.lastDate;
  $("from").value ||= $("to").value;
  check();
  run();
}

function start() {
  const given = new URLSearchParams(location.hash.slice(1));
  $("formula").value = given.get("sortBy") ?? EXAMPLES[0][1];
  $("order").value = given.get("order") === "asc" ? "asc" : "desc";
  $("adjusted").checked = given.get("adjusted") === "true";
  if (given.get("limit")) $("limit").value = given.get("limit");
  $("from").value = given.get("fromDate") ?? "";
  $("to").value = given.get("toDate") ?? "";
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  retell();
  grow();
  load();
}
start();
