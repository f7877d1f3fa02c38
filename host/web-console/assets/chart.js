// A chart on a canvas whose x axis counts points, so that each trade has its own place and nights take no
// room. It follows the newest point until the user scrolls; arrow keys move a cursor.

/* global money, triangle, diamond -- of the report's format.js and markers.js */

import { make, setAttribute } from "./dom.js";
import { draw, drawAll, drawing, noLongerDrawing } from "./frames.js";

const PRICE_AXIS = 62;
const TIME_AXIS = 32;
/** Lower charts have one line of times. */
const LOW_HEIGHT = 150;
const TIME_AXIS_LOW = 16;
const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const SPAN_MIN = 8;
const WHEEL_ZOOM = 1.15;
/** From this many visible markers on those on one spot are drawn once. */
const MANY_MARKERS = 1_500;
/** Free points at the right of the newest one, as a share of the span. */
const RIGHT_SHARE = 0.04;

let colours = new Map();

/** A colour of the style sheet. */
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours = new Map();
  drawAll();
});

/** Steps of prices that people like: 1, 2 or 5 times a power of ten. */
function stepOf(span, room) {
  const raw = span / Math.max(1, room);
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((one) => one * power).find((step) => step >= raw) ?? raw;
}

export class Chart {
  /**
   * `series` has `count`, `time`, `range(from, to)`, `placeOf(ms)`, `lastPrice()` and `lastMs()`; `paint` draws
   * the rows, `tellRow(place)` gives what the readout shows.
   */
  constructor({ series, span, paint, tellRow, executions, signals, lines }) {
    Object.assign(this, { series, span, paint, tellRow });
    this.executions = executions ?? (() => []);
    this.signals = signals ?? (() => []);
    this.lines = lines ?? (() => []);
    this.layers = { executions: true, signals: true };
    this.follow = true;
    this.max = 0;
    this.cursor = null;
    this.canvas = make("canvas");
    this.host = make("div", { class: "plot", tabindex: "0", role: "group", label: "chartKeys", "data-role": "chart" }, this.canvas);
    this.readout = make("div", { class: "readout", "data-role": "readout" });
    this.job = () => this.render();
    this.size = { width: 0, height: 0 };
    this.sizes = new ResizeObserver(([entry]) => {
      this.size = { width: Math.floor(entry.contentRect.width), height: Math.floor(entry.contentRect.height) };
      draw(this.job);
    });
    this.sizes.observe(this.host);
    this.listen();
    drawing(this.job);
  }

  /** Shows other rows. */
  show(series) {
    this.series = series;
    this.cursor = null;
    this.toNewest();
  }

  changed() {
    draw(this.job);
  }

  close() {
    this.closed = true;
    this.sizes.disconnect();
    noLongerDrawing(this.job);
  }

  listen() {
    const { host } = this;
    host.addEventListener("keydown", (event) => this.key(event));
    host.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    host.addEventListener("pointerdown", (event) => this.grab(event));
    host.addEventListener("pointermove", (event) => this.point(event));
    host.addEventListener("pointerleave", () => this.put(null));
    host.addEventListener("dblclick", () => this.toNewest());
  }

  toNewest() {
    this.follow = true;
    this.changed();
  }

  /** The newest end of the view where it follows. */
  newest() {
    return Math.max(this.series.count + Math.max(1, this.span * RIGHT_SHARE), this.span * 0.2);
  }

  /** Moves the view so that it ends at `max`; at the newest point it follows again. */
  moveTo(max) {
    const end = this.newest();
    this.max = Math.min(Math.max(max, Math.min(this.span * 0.2, end)), end);
    this.follow = this.max >= end - 1e-6;
    this.changed();
  }

  zoom(factor, share = 1) {
    const before = this.span;
    const most = Math.max(this.series.count * 1.1, SPAN_MIN * 4);
    this.span = Math.min(Math.max(before * factor, SPAN_MIN), most);
    // What is at this share of the width stays there.
    const at = this.max - before * (1 - share);
    if (this.follow) this.changed();
    else this.moveTo(at + this.span * (1 - share));
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by !== undefined) this.step(by * (event.shiftKey ? 10 : 1));
    else if (event.key === "Home") this.stepTo(0);
    else if (event.key === "End") this.stepTo(this.series.count - 1);
    else if (event.key === "ArrowUp" || event.key === "+") this.zoom(1 / 1.5);
    else if (event.key === "ArrowDown" || event.key === "-") this.zoom(1.5);
    else if (event.key === "Escape") {
      this.put(null);
      this.toNewest();
    } else return;
    event.preventDefault();
  }

  step(by) {
    this.stepTo((this.cursor ?? Math.min(Math.ceil(this.max), this.series.count)) + by);
  }

  stepTo(place) {
    if (this.series.count === 0) return;
    const at = Math.min(Math.max(place, 0), this.series.count - 1);
    this.put(at);
    if (at < this.max - this.span) this.moveTo(at + this.span);
    else if (at > this.max - 1) this.moveTo(at + 1);
  }

  /** Puts the cursor on a point; null takes it away. */
  put(place) {
    if (this.cursor === place) return;
    this.cursor = place;
    this.changed();
  }

  wheel(event) {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.moveTo(this.max + ((event.deltaX || event.deltaY) / 600) * this.span);
      return;
    }
    const share = event.offsetX / Math.max(1, this.width() - PRICE_AXIS);
    this.zoom(event.deltaY > 0 ? WHEEL_ZOOM : 1 / WHEEL_ZOOM, Math.min(1, Math.max(0, share)));
  }

  grab(event) {
    if (event.button !== 0) return;
    const [from, max] = [event.clientX, this.max];
    const move = (moved) => this.moveTo(max - ((moved.clientX - from) / Math.max(1, this.width() - PRICE_AXIS)) * this.span);
    const drop = () => {
      this.host.removeEventListener("pointermove", move);
      this.host.removeEventListener("pointerup", drop);
      this.host.removeEventListener("pointercancel", drop);
    };
    this.host.setPointerCapture(event.pointerId);
    this.host.addEventListener("pointermove", move);
    this.host.addEventListener("pointerup", drop);
    this.host.addEventListener("pointercancel", drop);
  }

  point(event) {
    const left = event.clientX - this.host.getBoundingClientRect().left;
    const place = Math.floor(this.max - this.span + (left / Math.max(1, this.width() - PRICE_AXIS)) * this.span);
    this.put(place >= 0 && place < this.series.count ? place : null);
  }

  width() {
    return this.size.width;
  }

  /** Draws all; what tests and assistive programs read first. */
  render() {
    if (this.follow) this.max = this.newest();
    this.describe();
    const width = this.width();
    const { height } = this.size;
    if (width === 0 || height === 0) return;
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    const axis = height < LOW_HEIGHT ? TIME_AXIS_LOW : TIME_AXIS;
    this.area = { width: width - PRICE_AXIS, height: height - axis, axis };
    const from = Math.max(0, Math.floor(this.max - this.span));
    const to = Math.min(this.series.count, Math.ceil(this.max));
    this.visible = { from, to };
    this.scale(from, to);
    this.drawGrid(context);
    context.save();
    context.beginPath();
    context.rect(0, 0, this.area.width, this.area.height);
    context.clip();
    if (from < to) this.paint(context, this, from, to);
    this.drawMarkers(context);
    context.restore();
    this.drawLines(context);
    this.drawLast(context);
    this.drawCursor(context);
  }

  describe() {
    const { host, series } = this;
    const drawn = (layer, rows) => (this.layers[layer] ? rows.length : 0);
    setAttribute(host, "data-points", series.count);
    setAttribute(host, "data-last-price", series.lastPrice() ?? "");
    setAttribute(host, "data-last-time-ms", series.lastMs() ?? "");
    setAttribute(host, "data-executions", drawn("executions", this.executions()));
    setAttribute(host, "data-signals", drawn("signals", this.signals()));
    setAttribute(host, "data-follow", this.follow);
    const place = this.cursor ?? series.count - 1;
    this.readout.replaceChildren(...(series.count === 0 ? [] : this.tellRow(Math.min(place, series.count - 1))));
  }

  /** The range of prices that the view shows. */
  scale(from, to) {
    let [low, high] = from < to ? this.series.range(from, to) : [0, 1];
    if (!(low <= high)) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - Math.max(1, Math.abs(low) * 0.001), high + Math.max(1, Math.abs(high) * 0.001)];
    const room = (high - low) * 0.08;
    this.low = low - room;
    this.high = high + room;
  }

  /** The middle of a point's place on the screen. */
  x(place) {
    return ((place + 0.5 - (this.max - this.span)) / this.span) * this.area.width;
  }

  y(price) {
    return this.area.height - ((price - this.low) / (this.high - this.low)) * this.area.height;
  }

  drawGrid(context) {
    const { width, height, axis } = this.area;
    context.strokeStyle = colour("grid");
    context.fillStyle = colour("muted");
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const step = stepOf(this.high - this.low, Math.floor(height / 34));
    const digits = Math.max(0, Math.min(4, -Math.floor(Math.log10(step) + 1e-9)));
    context.beginPath();
    for (let price = Math.ceil(this.low / step) * step; price <= this.high; price += step) {
      const y = Math.round(this.y(price)) + 0.5;
      context.moveTo(0, y);
      context.lineTo(width, y);
      if (this.series.count === 0) continue;
      context.fillText(price.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }), width + 6, y);
    }
    if (this.series.count > 0) this.drawTimes(context, width, height, axis);
    context.stroke();
    context.beginPath();
    context.moveTo(width + 0.5, 0);
    context.lineTo(width + 0.5, height + 0.5);
    context.lineTo(0, height + 0.5);
    context.strokeStyle = colour("border");
    context.stroke();
  }

  drawTimes(context, width, height, axis) {
    const from = Math.max(0, this.max - this.span);
    const to = Math.min(this.max, this.series.count);
    const shown = Math.max(1, width * ((to - from) / this.span));
    const { at, labels } = this.series.time.ticks(from, to, shown);
    context.textAlign = "center";
    context.textBaseline = "top";
    at.forEach((place, index) => {
      const x = Math.round(this.x(place)) + 0.5;
      context.moveTo(x, 0);
      context.lineTo(x, height);
      const [first, second] = labels[index].split("\n");
      const middle = Math.min(Math.max(x, 18), width - 18);
      context.fillText(first, middle, height + 3);
      if (second !== undefined && axis === TIME_AXIS) context.fillText(second, middle, height + 17);
    });
  }

  /** Calls `put` with the place of each visible marker; those on one spot are drawn once where there are many. */
  eachSpot(rows, put) {
    const [from, to] = [this.visible.from, this.visible.to];
    const begin = lowerPlace(rows, (row) => this.series.placeOf(row.ms) >= from);
    const end = lowerPlace(rows, (row) => this.series.placeOf(row.ms) >= to);
    const taken = end - begin > MANY_MARKERS ? new Set() : null;
    for (let at = begin; at < end; at++) {
      const row = rows[at];
      const price = row.price ?? this.priceAt(row.ms);
      if (price === null) continue;
      const [x, y] = [this.x(this.series.placeOf(row.ms)), this.y(price)];
      if (taken !== null) {
        const spot = (Math.round(x / 2) * 16_384 + Math.round(y / 2)) * 2 + (row.side === "BUY" ? 1 : 0);
        if (taken.has(spot)) continue;
        taken.add(spot);
      }
      put(x, y, row);
    }
  }

  priceAt(ms) {
    const place = this.series.placeOf(ms);
    return place < 0 ? null : this.series.range(place, place + 1)[1];
  }

  /** A triangle upwards is a buy, downwards a sell; its tip is the price. A diamond is a signal. */
  drawMarkers(context) {
    const paths = { buy: new Path2D(), sell: new Path2D(), signal: new Path2D() };
    if (this.layers.signals) this.eachSpot(this.signals(), (x, y) => diamond(paths.signal, x, y, 5.5));
    if (this.layers.executions) {
      this.eachSpot(this.executions(), (x, y, row) => {
        const buys = row.side === "BUY";
        triangle(paths[buys ? "buy" : "sell"], x, y, 5, buys ? 1 : -1);
      });
    }
    context.lineWidth = 1.5;
    context.strokeStyle = colour("signal");
    context.stroke(paths.signal);
    context.lineWidth = 1;
    context.strokeStyle = colour("surface");
    for (const side of ["buy", "sell"]) {
      context.fillStyle = colour(side);
      context.fill(paths[side]);
      context.stroke(paths[side]);
    }
  }

  /** Lines at working orders. */
  drawLines(context) {
    context.setLineDash([5, 4]);
    for (const { price, side, label } of this.lines()) {
      if (price < this.low || price > this.high) continue;
      const y = Math.round(this.y(price)) + 0.5;
      context.strokeStyle = context.fillStyle = colour(side === "BUY" ? "buy" : "sell");
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(this.area.width, y);
      context.stroke();
      context.textAlign = "left";
      context.textBaseline = "bottom";
      context.fillText(label, 4, y - 1);
    }
    context.setLineDash([]);
  }

  drawLast(context) {
    const text = this.series.lastPrice();
    const price = Number(text);
    if (text === null || price < this.low || price > this.high) return;
    const y = this.y(price);
    context.fillStyle = colour("accent");
    context.fillRect(this.area.width + 1, y - 8, PRICE_AXIS - 1, 16);
    context.fillStyle = colour("on-accent");
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(money(text), this.area.width + 6, y);
  }

  drawCursor(context) {
    if (this.cursor === null || this.cursor < this.visible.from || this.cursor >= this.visible.to) return;
    const x = Math.round(this.x(this.cursor)) + 0.5;
    context.strokeStyle = colour("muted");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, this.area.height);
    context.stroke();
  }
}

/** First place in sorted rows from which on `isThere` holds. */
function lowerPlace(rows, isThere) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isThere(rows[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}
