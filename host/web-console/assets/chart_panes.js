// Tick and candle panes: what they draw, their layers and readouts.

import { listen } from "./bus.js";
import { Chart, colour } from "./chart.js";
import { make, momentOf, number } from "./dom.js";
import { t } from "./language.js";
import { dataOf } from "./market.js";
import { executionsOf, signalsOf } from "./marks.js";
import { workingLines } from "./orders.js";
import { makePane, nameSubject } from "./panes.js";

const TICKS_SHOWN = 400;
const BARS_SHOWN = 90;
/** From this many points on a pixel's lowest and highest are drawn instead of each point. */
const POINTS_PER_PIXEL = 2;

/** A switch of a layer of marks. */
function layerSwitch(chart, layer) {
  const button = make("button", { type: "button", role: "switch", "aria-checked": "true", "data-layer": layer, text: `layer.${layer}` });
  button.addEventListener("click", () => {
    chart.layers[layer] = !chart.layers[layer];
    button.setAttribute("aria-checked", String(chart.layers[layer]));
    chart.changed();
  });
  return button;
}

/** What the readout shows of a moment. */
const moment = (ms, exact = momentOf(ms)) => number("span", ms, { class: "when" }, `${exact} JST`);

const named = (key, wire) => make("span", {}, `${t(key)} `, number("b", wire));

function paintTicks(context, chart, from, to) {
  const { prices } = chart.series;
  const perPixel = (to - from) / chart.area.width;
  context.strokeStyle = colour("price-line");
  context.lineWidth = 1.25;
  context.lineJoin = "round";
  context.beginPath();
  if (perPixel > POINTS_PER_PIXEL) {
    for (let pixel = 0; pixel < chart.area.width; pixel++) {
      const begin = Math.max(from, Math.floor(chart.max - chart.span + (pixel / chart.area.width) * chart.span));
      const end = Math.min(to, Math.floor(chart.max - chart.span + ((pixel + 1) / chart.area.width) * chart.span));
      if (begin >= end) continue;
      const [low, high] = chart.series.range(begin, end);
      context.lineTo(pixel, chart.y(prices.values[begin]));
      context.lineTo(pixel, chart.y(low));
      context.lineTo(pixel, chart.y(high));
      context.lineTo(pixel, chart.y(prices.values[end - 1]));
    }
  } else {
    // A price holds until the next trade: steps say so, slopes would not.
    for (let place = from; place < to; place++) {
      const y = chart.y(prices.values[place]);
      if (place > from) context.lineTo(chart.x(place), chart.y(prices.values[place - 1]));
      context.lineTo(chart.x(place), y);
    }
  }
  context.stroke();
}

function paintBars(context, chart, from, to) {
  const { open, close, low, high } = chart.series;
  const width = Math.max(1, Math.min(14, (chart.area.width / chart.span) * 0.7));
  for (let place = from; place < to; place++) {
    const rises = close.values[place] >= open.values[place];
    const x = Math.round(chart.x(place));
    const top = chart.y(Math.max(open.values[place], close.values[place]));
    const height = Math.max(1, chart.y(Math.min(open.values[place], close.values[place])) - top);
    context.strokeStyle = context.fillStyle = colour(rises ? "gain" : "loss");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x + 0.5, chart.y(high.values[place]));
    context.lineTo(x + 0.5, chart.y(low.values[place]));
    context.stroke();
    // A rising bar is hollow, so that colour alone says nothing.
    if (rises && width > 3) {
      context.fillStyle = colour("surface");
      context.fillRect(x - width / 2, top, width, height);
      context.strokeRect(Math.round(x - width / 2) + 0.5, Math.round(top) + 0.5, Math.round(width) - 1, Math.max(1, Math.round(height) - 1));
    } else context.fillRect(x - width / 2, top, width, height);
  }
}

const tickPane = (instrumentId, close) => {
  const series = dataOf(instrumentId).ticks;
  const tellRow = (place) => {
    const micros = series.micros.values[place];
    const ms = Math.floor(micros / 1_000);
    const rest = String(micros - ms * 1_000).padStart(3, "0");
    return [moment(ms, `${momentOf(ms)}${rest}`), named("price", String(series.prices.values[place])),
      named("qty", String(series.quantities.values[place]))];
  };
  return chartPane("tick", { instrumentId, close }, { series, span: TICKS_SHOWN, paint: paintTicks, tellRow });
};

function barRow(bar) {
  return [moment(bar.open_time_ms), named("bar.open", bar.open), named("bar.high", bar.high), named("bar.low", bar.low),
    named("bar.close", bar.close), named("bar.volume", bar.volume)];
}

const candlePane = (instrumentId, granularity, close) => {
  const series = instrumentId === "" ? EMPTY : dataOf(instrumentId).bars[granularity];
  const options = { series, span: BARS_SHOWN, paint: paintBars };
  const pane = chartPane("candles", { instrumentId, granularity, close }, options);
  pane.chart.tellRow = (place) => barRow(pane.chart.series.bars[place]);
  return pane;
};

/** No rows: live candles before a ticker is chosen. */
const EMPTY = { count: 0, bars: [], lastPrice: () => null, lastMs: () => null, range: () => [0, 1], placeOf: () => -1 };

function chartPane(kind, frame, options) {
  const pane = makePane(kind, frame);
  const idOf = () => pane.dataset.instrumentId;
  const chart = new Chart({
    ...options, executions: () => executionsOf(idOf()), signals: () => signalsOf(idOf()), lines: () => workingLines(idOf()),
  });
  pane.chart = chart;
  open.add(chart);
  const newest = make("button", { type: "button", "data-action": "newest", text: "newest" });
  newest.addEventListener("click", () => chart.toNewest());
  pane.tools.append(newest, layerSwitch(chart, "executions"), layerSwitch(chart, "signals"));
  pane.body.append(chart.host, chart.readout);
  return pane;
}

/** A new chart pane. */
export function makeChartPane(kind, instrumentId, granularity, close) {
  return kind === "tick" ? tickPane(instrumentId, close) : candlePane(instrumentId, granularity, close);
}

/** Lets a live candle pane show another ticker; null is none. */
export function showTicker(pane, data, granularity) {
  nameSubject(pane, data?.instrumentId ?? "", granularity);
  pane.chart.show(data?.bars[granularity] ?? EMPTY);
}

/** The charts of all panes that are open. */
const open = new Set();

function charts() {
  for (const chart of open) if (chart.closed) open.delete(chart);
  return open;
}

listen("market-trades", (data) => charts().forEach((chart) => chart.series === data.ticks && chart.changed()));
listen("market-bars", (data) => charts().forEach((chart) => Object.values(data.bars).includes(chart.series) && chart.changed()));
for (const name of ["marks", "orders", "resized"]) listen(name, () => charts().forEach((chart) => chart.changed()));
