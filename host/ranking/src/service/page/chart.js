"use strict";

// The chart of one issue: candles, or a line where they would touch, above its volume. The x axis counts
// business days. Canvases cannot read the style sheet's variables, so colours are asked for when drawing.

const SPANS = [3, 6, 12, 36, 120];
const CANDLE_PIXELS = 3.5;
const shownChart = { item: null, dataset: null, prices: [], charts: [], text: null, request: null };

function paint(name) {
  const probe = document.getElementById("chart-host");
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = "";
  return found;
}

/** Opens the chart of an item of the ranking. */
function openChart(item, dataset) {
  Object.assign(shownChart, { item, dataset });
  const dialog = document.getElementById("chart");
  if (!dialog.open) dialog.showModal();
  retellChart();
  loadChart();
}

/** The day so many months before another. */
function monthsBefore(day, months) {
  const [year, month, date] = day.split("-").map(Number);
  const last = new Date(Date.UTC(year, month - months, 0)).getUTCDate();
  return new Date(Date.UTC(year, month - 1 - months, Math.min(date, last))).toISOString().slice(0, 10);
}

function sayChart(make, bad) {
  shownChart.text = make;
  const about = document.getElementById("chart-about");
  about.replaceChildren(...[make()].flat());
  about.className = bad ? "about bad" : "about";
}

async function loadChart() {
  shownChart.request?.abort();
  const turn = shownChart.request = new AbortController();
  const { item, dataset } = shownChart, to = dataset.lastDate;
  const months = Number(document.getElementById("chart-span").value);
  dropCharts();
  document.getElementById("chart-readout").replaceChildren();
  sayChart(() => t("loading"));
  const query = "query($code:String!,$from:String!,$to:String!){dailyPrices(code:$code,fromDate:$from,toDate:$to){date open high low close volume}}";
  try {
    const answer = await ask(query, { code: item.code, from: monthsBefore(to, months), to }, turn.signal);
    if (shownChart.request !== turn) return;
    if (answer.errors) { sayChart(() => errorText(answer.errors[0]), true); return; }
    shownChart.prices = answer.data.dailyPrices;
    if (!shownChart.prices.length) { sayChart(() => t("chartEmpty")); return; }
    sayChart(aboutIssue);
    drawChart();
  } catch {
    if (shownChart.request === turn && !turn.signal.aborted) sayChart(() => t("noAnswer"), true);
  }
}

function aboutIssue() {
  const { item, prices } = shownChart;
  const span = t("chartDays", { from: dayText(prices[0].date), to: dayText(prices.at(-1).date), days: wholeNumber(prices.length) });
  return [...marketAndSector(item), span, t("rawPrices")].filter(Boolean).join(" · ");
}

/** The texts of the chart in the present language. */
function retellChart() {
  const { item } = shownChart;
  if (!item) return;
  document.getElementById("chart-title").textContent = [item.code, nameOf(item)].filter(Boolean).join(" ");
  const pick = document.getElementById("chart-span"), chosen = pick.value || "6";
  pick.replaceChildren(...SPANS.map(months => {
    const option = new Option(months < 12 ? t("months", { months }) : t("years", { years: months / 12 }), String(months));
    option.selected = String(months) === chosen;
    return option;
  }));
  if (shownChart.text) document.getElementById("chart-about").replaceChildren(...[shownChart.text()].flat());
  if (shownChart.charts.length) drawChart();
}

function redrawChart() { for (const chart of shownChart.charts) chart.redraw(false); }
function dropCharts() {
  for (const chart of shownChart.charts) chart.destroy();
  shownChart.charts = [];
}

function drawChart() {
  dropCharts();
  const { prices, item } = shownChart, host = document.getElementById("chart-host");
  const column = name => prices.map(price => price[name]);
  const x = prices.map((_, at) => at);
  host.setAttribute("aria-label", t("chartLabel", { code: item.code, name: nameOf(item) }));
  const width = Math.max(240, host.clientWidth), narrow = width < 600;
  const lows = column("low"), highs = column("high"), closes = column("close");
  const price = chart(host, { width, height: narrow ? 240 : 330, time: false, range: () => priceRange(lows, highs, closes),
    series: [{ stroke: () => paint("accent"), width: 1.3, points: { show: false }, paths: (u, ...rest) => isCandles(u) ? null : uPlot.paths.linear()(u, ...rest) }],
    draw: candles }, [x, closes]);
  const volume = chart(host, { width, height: narrow ? 100 : 120, time: true, range: (_, low, high) => [0, (high || 1) * 1.05],
    series: [{ stroke: () => paint("bar"), fill: () => paint("bar"), points: { show: false }, paths: uPlot.paths.bars({ size: [0.7, 40, 1] }) }] },
  [x, column("volume")]);
  shownChart.charts = [price, volume];
  readout(prices.length - 1);
}

function priceRange(lows, highs, closes) {
  const known = [...lows, ...highs, ...closes].filter(value => value !== null);
  if (!known.length) return [0, 1];
  const [low, high] = known.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  const air = (high - low) * 0.04 || Math.abs(high) * 0.01 || 1;
  return [low - air, high + air];
}

function chart(host, about, data) {
  const font = "12px system-ui, sans-serif";
  const axis = { font, stroke: () => paint("soft"), grid: { stroke: () => paint("line"), width: 1 }, ticks: { show: false } };
  const days = { ...axis, size: about.time ? 28 : 0,
    splits: (u, _, min, max) => dayTicks(min, max, u.bbox.width / uPlot.pxRatio),
    values: (_, splits) => about.time ? splits.map((at, place) => tickText(at, splits[place - 1])) : splits.map(() => "") };
  const values = { ...axis, size: 62, gap: 6, values: (_, splits) => splits.map(valueTick) };
  return new uPlot({
    width: about.width, height: about.height, padding: [8, 14, about.time ? 0 : 4, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false }, sync: { key: "chart", scales: ["x", null] } },
    scales: { x: { time: false, range: () => [-0.6, data[0].length - 0.4] }, y: { range: about.range } },
    axes: [days, values],
    series: [{}, ...about.series],
    hooks: { draw: about.draw ? [about.draw] : [], setCursor: [u => readout(u.cursor.idx ?? data[0].length - 1)] },
  }, data, host);
}

/** Numbers of an axis, short: 1.2M in English, 120万 in Japanese. */
function valueTick(value) {
  return new Intl.NumberFormat(locale(), { notation: Math.abs(value) >= 100000 ? "compact" : "standard", maximumFractionDigits: 2 }).format(value);
}

/** Places of the first business days of months or years, as many as fit. */
function dayTicks(min, max, width) {
  const { prices } = shownChart, room = Math.max(2, Math.floor(width / 74));
  for (const key of [day => day.slice(0, 7), day => `${day.slice(0, 4)} ${Math.floor((Number(day.slice(5, 7)) - 1) / 3)}`, day => day.slice(0, 4)]) {
    const found = prices.map((price, at) => at).filter(at => at > 0 && at >= min && at <= max && key(prices[at].date) !== key(prices[at - 1].date));
    if (found.length && found.length <= room) return found;
  }
  const step = Math.max(1, Math.ceil((max - min) / room));
  return prices.map((_, at) => at).filter(at => at % step === 0 && at >= min);
}

/** A day on the axis; its year only where that changes. */
function tickText(at, before) {
  const { prices } = shownChart, day = prices[at]?.date ?? "", last = prices[before]?.date;
  const date = new Date(`${day}T00:00:00Z`), isNew = !last || last.slice(0, 4) !== day.slice(0, 4);
  const form = isNew ? { year: "numeric", month: "short" } : { month: "short", day: prices.length < 80 ? "numeric" : undefined };
  return new Intl.DateTimeFormat(locale(), { timeZone: "UTC", ...form }).format(date);
}

const isCandles = u => u.bbox.width / uPlot.pxRatio / shownChart.prices.length >= CANDLE_PIXELS;

/** Candles: hollow where the day closed at or above its open, filled where it closed below. */
function candles(u) {
  if (!isCandles(u)) return;
  const { ctx, bbox } = u, [rise, fall] = [paint("rise"), paint("fall")];
  const half = Math.max(1, Math.floor(bbox.width / shownChart.prices.length * 0.32));
  ctx.save();
  ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
  ctx.lineWidth = uPlot.pxRatio;
  shownChart.prices.forEach(({ open, high, low, close }, at) => {
    if (open === null || close === null) return;
    const x = Math.round(u.valToPos(at, "x", true)) + 0.5, y = value => Math.round(u.valToPos(value, "y", true)) + 0.5;
    const [top, bottom] = [y(Math.max(open, close)), y(Math.min(open, close))];
    ctx.strokeStyle = ctx.fillStyle = close >= open ? rise : fall;
    ctx.beginPath();
    if (high !== null) { ctx.moveTo(x, y(high)); ctx.lineTo(x, top); }
    if (low !== null) { ctx.moveTo(x, bottom); ctx.lineTo(x, y(low)); }
    ctx.stroke();
    if (close < open) ctx.fillRect(x - half, top, 2 * half, Math.max(1, bottom - top));
    ctx.strokeRect(x - half, top, 2 * half, Math.max(1, bottom - top));
  });
  ctx.restore();
}

/** Tells the prices of a day: of the one under the cursor, else of the last. */
function readout(at) {
  const day = shownChart.prices[at];
  if (!day) return;
  const before = shownChart.prices[at - 1]?.close ?? null;
  const price = value => value === null ? "–" : value.toLocaleString(locale(), { maximumFractionDigits: 4 });
  const change = before && day.close !== null ? (day.close / before - 1) * 100 : null;
  const signed = { maximumFractionDigits: 2, minimumFractionDigits: 2, signDisplay: "exceptZero" };
  const parts = [["", dayText(day.date)], [t("open"), price(day.open)], [t("high"), price(day.high)],
    [t("low"), price(day.low)], [t("close"), price(day.close)],
    [t("change"), change === null ? "–" : `${change.toLocaleString(locale(), signed)}%`],
    [t("volume"), day.volume === null ? "–" : wholeNumber(day.volume)]];
  shownChart.at = at;
  document.getElementById("chart-readout").replaceChildren(...parts.map(([name, value]) => {
    const span = document.createElement("span"), bold = document.createElement("b");
    bold.textContent = value;
    span.append(name ? `${name} ` : "", bold);
    return span;
  }));
}

/** The arrow keys move from day to day. */
function moveCursor(event) {
  const count = shownChart.prices.length, [price] = shownChart.charts;
  const to = { ArrowLeft: shownChart.at - 1, ArrowRight: shownChart.at + 1, Home: 0, End: count - 1 }[event.key];
  if (to === undefined || !price) return;
  event.preventDefault();
  const at = Math.min(count - 1, Math.max(0, to));
  for (const one of shownChart.charts) one.setCursor({ left: one.valToPos(at, "x"), top: 10 }, false);
  readout(at);
}

(() => {
  const dialog = document.getElementById("chart");
  const close = () => dialog.close();
  document.getElementById("chart-close").onclick = close;
  document.getElementById("chart-span").onchange = loadChart;
  document.getElementById("chart-host").onkeydown = moveCursor;
  dialog.onclick = event => { if (event.target === dialog) close(); };
  dialog.addEventListener("keydown", event => { if (event.key === "Escape") { event.preventDefault(); close(); } });
  dialog.onclose = () => {
    shownChart.request?.abort();
    dropCharts();
    // The row may have been drawn anew since it was left.
    document.querySelector(`#rows tr[data-code="${CSS.escape(shownChart.item.code)}"] button`)?.focus();
  };
  addEventListener("resize", () => { if (shownChart.charts.length) drawChart(); });
})();
