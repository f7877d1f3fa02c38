"use strict";

// The three charts: one view, one cursor. Colours come from the style sheet, read anew at every
// drawing, so that the charts follow dark mode and print in light colours.

const PRINT_WIDTH = 680;
/** Room for half a label at the right end of the time axis. */
const RIGHT_PIXELS = 30;
/** How far from a marker the pointer still means it. */
const REACH_PIXELS = 18;
/** From this many visible markers on they get smaller, and those on the same spot are drawn once. */
const MANY_MARKERS = 1_500;
/** From this many visible signals on they go behind the fills. */
const MANY_SIGNALS = 200;

/** A colour of the style sheet. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A number on a y axis whose ticks are `step` apart. */
function axisNumber(value, step) {
  const digits = step >= 1 ? 0 : Math.ceil(-Math.log10(step) - 1e-9);
  const text = value.toFixed(digits);
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : money(text);
}

/** Steps of a y axis: 1, 2 and 5 times the powers of ten, from `least` up. */
function steps(least) {
  const all = [];
  for (let power = -4; power < 15; power++) {
    for (const digit of [1, 2, 5]) all.push(Number(`${digit}e${power}`));
  }
  return all.filter((step) => step >= least);
}

/** A range with some air; never of no height. */
function padded(low, high, share) {
  if (low === null || low === undefined || !Number.isFinite(low)) return [0, 1];
  const air = (high - low) * share || Math.max(Math.abs(high) * 0.001, 0.5);
  return [low - air, high + air];
}

class Charts {
  constructor(data, time, view) {
    this.time = time;
    this.view = view;
    this.all = [];
    const { curve } = data;
    const cash = Number(data.summary.cash_start);
    this.equityValues = [cash, ...plotted(curve.equity)];
    this.drawdownValues = [0, ...plotted(curve.drawdown)];
    this.priceValues = [null, ...plotted(curve.price)];
    this.markers = new Markers(data, time, view, this.priceValues);
    this.axisWidth = this.widestNumber(curve) * 7 + 20;
    this.equity(data);
    this.drawdown(data);
    this.price(data);
    view.listeners.push(() => this.follow());
    this.watch();
  }

  widestNumber(curve) {
    const widest = (values, step) =>
      Math.max(...[Math.min, Math.max].map((pick) => {
        const edge = values.reduce((one, other) => (other === null ? one : pick(one, other)), values[1]);
        return axisNumber(edge, step).length;
      }));
    return Math.max(
      widest(this.equityValues, 1),
      widest(this.drawdownValues, 1),
      widest(this.priceValues, curve.price.decimals > 0 ? 0.1 : 1),
    );
  }

  equity(data) {
    const { curve } = data;
    const first = money(data.summary.cash_start);
    this.add("equity", {
      heights: [290, 220],
      label: "Equity over the run. The table equity.csv holds its values.",
      values: this.equityValues,
      range: (_, low, high) => padded(low, high, 0.08),
      series: { stroke: () => colour("line"), fill: () => colour("line-fill"), width: 1.6 },
      least: 1,
      hideTime: true,
      tell: (point) => [
        ["Equity", `${point === 0 ? first : amount(curve.equity, point - 1)} yen`],
        ["Position", point === 0 ? "0" : grouped(curve.quantity[point - 1])],
      ],
    });
  }

  drawdown(data) {
    const { curve } = data;
    this.add("drawdown", {
      heights: [150, 130],
      label: "Drawdown over the run: equity below its highest value so far.",
      values: this.drawdownValues,
      space: 26,
      range: (_, low) => [Math.min((low ?? 0) * 1.08, -1), 0],
      series: { stroke: () => colour("loss"), fill: () => colour("loss-fill"), width: 1.2 },
      least: 1,
      tell: (point) => [
        ["Below the peak", point === 0
          ? "0 yen"
          : `${amount(curve.drawdown, point - 1)} yen (${percent(curve.drawdown_ppm[point - 1] / 1e6, 2)})`],
      ],
    });
  }

  price(data) {
    const { curve } = data;
    const chart = this.add("price", {
      heights: [380, 300],
      label: "Price with fills and signals. The tables below hold the fills and signals.",
      values: this.priceValues,
      range: (_, low, high) => padded(...this.markers.widen(low, high), 0.09),
      series: { stroke: () => colour("price-line"), width: 1.2 },
      least: 0.1,
      hooks: { draw: [(u) => this.markers.draw(u)], setCursor: [(u) => this.markers.hover(u)] },
      tell: (point) => [["Price", point === 0 ? "\u2013" : `${amount(curve.price, point - 1)} yen`]],
    });
    this.markers.attach(chart);
  }

  add(name, chart) {
    const host = byId(`${name}-chart`);
    host.setAttribute("role", "img");
    host.setAttribute("aria-label", chart.label);
    const readout = byId(`${name}-readout`);
    const tell = (u) => this.tell(readout, chart, u.cursor.idx);
    const hooks = { setSelect: [(u) => this.select(u)], setCursor: [tell], ready: [tell] };
    for (const [hook, actions] of Object.entries(chart.hooks ?? {})) {
      hooks[hook] = [...(hooks[hook] ?? []), ...actions];
    }
    const options = {
      ...this.size(host, chart),
      padding: [10, RIGHT_PIXELS, chart.hideTime ? 10 : 0, 0],
      legend: { show: false },
      cursor: this.cursor(),
      scales: { x: { time: false }, y: { range: chart.range } },
      axes: this.axes(chart),
      series: [{}, { ...chart.series, points: { show: false } }],
      hooks,
    };
    const u = new uPlot(options, [this.time.x, chart.values], host);
    this.all.push({ u, host, chart, tell: () => tell(u) });
    return u;
  }

  size(host, chart) {
    const width = this.printing ? PRINT_WIDTH : Math.max(260, host.clientWidth);
    return { width, height: chart.heights[width < 600 ? 1 : 0] };
  }

  cursor() {
    const moves = (type) => type === "mousemove" || type === "mouseleave";
    return {
      y: false,
      points: { size: 7 },
      // The view moves all charts; uPlot only reports what was dragged over.
      drag: { x: true, y: false, setScale: false },
      sync: { key: "run", scales: ["x", null], filters: { pub: moves, sub: moves } },
      bind: {
        dblclick: () => () => {
          this.view.whole();
          return null;
        },
      },
    };
  }

  axes(chart) {
    const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
    const common = {
      font,
      stroke: () => colour("muted"),
      grid: { stroke: () => colour("grid"), width: 1 },
      ticks: { show: false },
    };
    const ticks = (u, min, max) => this.time.ticks(min, max, u.width - this.axisWidth - RIGHT_PIXELS);
    const timeAxis = {
      ...common,
      size: chart.hideTime ? 0 : 46,
      gap: 8,
      splits: (u, _, min, max) => ticks(u, min, max).at,
      values: (u) => {
        const { labels } = ticks(u, u.scales.x.min, u.scales.x.max);
        return chart.hideTime ? labels.map(() => "") : labels;
      },
    };
    const valueAxis = {
      ...common,
      size: this.axisWidth,
      gap: 8,
      space: chart.space ?? 42,
      incrs: steps(chart.least),
      values: (_, places, axis, space, step) => places.map((place) => axisNumber(place, step)),
    };
    return [timeAxis, valueAxis];
  }

  /** What was dragged over becomes the view. */
  select(u) {
    const { left, width } = u.select;
    if (width < 4) return;
    const [min, max] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.view.show(min, max);
  }

  follow() {
    for (const { u } of this.all) u.setScale("x", { min: this.view.min, max: this.view.max });
  }

  /** The values under the cursor; without a cursor those at the end of the view. */
  tell(readout, chart, index) {
    const point = index ?? Math.min(this.time.count, Math.floor(this.view.max));
    const when = el("span", "when", `${this.time.label(point)}${point > 0 ? " JST" : ""}`);
    const values = chart.tell(point).map(([name, value]) => el("span", "", `${name} `, el("b", "", value)));
    readout.replaceChildren(when, ...values);
  }

  watch() {
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(this.all[0].host);
    const redraw = () => this.all.forEach(({ u }) => u.redraw(false));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    const print = (printing) => {
      this.printing = printing;
      document.documentElement.classList.toggle("printing", printing);
      this.resize();
      redraw();
    };
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    this.view.listeners.push(() => this.all.forEach(({ tell }) => tell()));
  }

  resize() {
    for (const { u, host, chart } of this.all) {
      const size = this.size(host, chart);
      if (size.width !== u.width || size.height !== u.height) u.setSize(size);
    }
  }
}

/** Fills and signals on the price chart. */
class Markers {
  constructor(data, time, view, prices) {
    this.view = view;
    const { fills, signals } = data;
    this.fills = this.kind(fills, time, plotted(fills.price), (row) => this.fillLines(data, row));
    const priceAt = (x) => prices[Math.min(prices.length - 1, Math.max(1, Math.ceil(x)))] ?? null;
    const own = plotted(signals.price);
    this.signals = this.kind(signals, time, own, (row) => this.signalLines(signals, row));
    this.signals.y = own.map((price, row) => price ?? priceAt(this.signals.x[row]));
    this.buys = fills.side.rows.map((place) => fills.side.words[place] === "BUY");
  }

  kind(table, time, y, lines) {
    return { x: table.moments.map((micros) => time.at(micros)), y, lines };
  }

  fillLines({ fills, orders }, row) {
    const order = orderIdOf(fills, orders, row);
    const side = this.buys[row] ? "Buy" : "Sell";
    return [
      `${side} ${grouped(fills.quantity[row])} at ${amount(fills.price, row)}`,
      `${momentText(fills.moments[row])} JST`,
      `Order ${order}, fill ${fills.trade_id[row]}`,
    ];
  }

  signalLines(signals, row) {
    const [tag, side, price] = [word(signals.tag, row), word(signals.side, row), amount(signals.price, row)];
    const note = word(signals.note, row);
    const title = [word(signals.kind, row), side, price === null ? null : `at ${price}`].filter(Boolean).join(" ");
    return [
      tag === null ? title : `${title}: ${tag}`,
      `${momentText(signals.moments[row])} JST`,
      note === null ? null : note.length > 200 ? `${note.slice(0, 200)}\u2026` : note,
    ].filter((line) => line !== null);
  }

  /** The rows of a kind that the view shows, as `[from, to)`. */
  shown(kind) {
    return [lowerBound(kind.x, this.view.min), lowerBound(kind.x, this.view.max + 1e-9)];
  }

  /** Widens a range of prices so that all visible markers fit in. */
  widen(low, high) {
    for (const kind of [this.fills, this.signals]) {
      const [from, to] = this.shown(kind);
      for (let row = from; row < to; row++) {
        const price = kind.y[row];
        if (price === null) continue;
        if (low === null || low === undefined || price < low) low = price;
        if (high === null || high === undefined || price > high) high = price;
      }
    }
    return [low, high];
  }

  /** Half the width of a marker in CSS pixels. */
  radius() {
    const [from, to] = this.shown(this.fills);
    const many = to - from;
    return many > 4 * MANY_MARKERS ? 2.4 : many > MANY_MARKERS ? 3.2 : many > 300 ? 4.2 : 5.5;
  }

  draw(u) {
    const { ctx, bbox } = u;
    const scale = uPlot.pxRatio;
    const radius = this.radius() * scale;
    const paths = { buy: new Path2D(), sell: new Path2D(), signal: new Path2D() };
    this.eachSpot(u, this.fills, (x, y, row) => {
      // The tip of a triangle is the price, so buys and sells at one price do not cover each other.
      const down = this.buys[row] ? 1 : -1;
      triangle(paths[this.buys[row] ? "buy" : "sell"], x, y, radius, down);
    });
    const [from, to] = this.shown(this.signals);
    const behind = to - from > MANY_SIGNALS;
    const size = behind ? 3 * scale : Math.max(1.25 * radius, 4 * scale);
    this.eachSpot(u, this.signals, (x, y) => diamond(paths.signal, x, y, size));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineJoin = "round";
    if (behind) this.drawSignals(ctx, paths.signal, scale);
    ctx.lineWidth = scale;
    ctx.strokeStyle = colour("surface");
    // Where markers cover everything, the price has to shine through.
    ctx.globalAlpha = radius < 4 * scale ? 0.7 : 1;
    for (const kind of ["buy", "sell"]) {
      ctx.fillStyle = colour(kind);
      ctx.fill(paths[kind]);
      // An edge keeps neighbours apart, but would eat the smallest markers.
      if (radius >= 4 * scale) ctx.stroke(paths[kind]);
    }
    if (!behind) this.drawSignals(ctx, paths.signal, 1.6 * scale);
    ctx.restore();
  }

  /** Signals often stand where a fill is; an open shape leaves it visible. */
  drawSignals(ctx, path, width) {
    ctx.globalAlpha = 1;
    ctx.lineWidth = width;
    ctx.strokeStyle = colour("signal");
    ctx.stroke(path);
  }

  /** Calls `draw` with the canvas position of each visible marker. */
  eachSpot(u, kind, draw) {
    const [from, to] = this.shown(kind);
    const thin = to - from > MANY_MARKERS;
    const taken = new Set();
    const grain = 2 * uPlot.pxRatio;
    for (let row = from; row < to; row++) {
      if (kind.y[row] === null) continue;
      const x = u.valToPos(kind.x[row], "x", true);
      const y = u.valToPos(kind.y[row], "y", true);
      if (thin) {
        const side = kind === this.fills && this.buys[row] ? 0 : 1;
        const spot = (Math.round(x / grain) * 16_384 + Math.round(y / grain)) * 2 + side;
        if (taken.has(spot)) continue;
        taken.add(spot);
      }
      draw(x, y, row);
    }
  }

  attach(u) {
    this.ring = el("div", "ring");
    this.tip = el("div", "tip");
    this.ring.hidden = this.tip.hidden = true;
    u.over.append(this.ring, this.tip);
    // The cursor of another chart moves this one too; details are for the own pointer only.
    u.over.addEventListener("mouseenter", () => (this.inside = true));
    u.over.addEventListener("mouseleave", () => {
      this.inside = false;
      this.hover(u);
    });
    this.view.listeners.push(() => (this.ring.hidden = this.tip.hidden = true));
  }

  hover(u) {
    if (!this.tip) return;
    const { left, top } = u.cursor;
    const found = this.inside && left >= 0 ? this.nearest(u, left, top) : null;
    this.ring.hidden = this.tip.hidden = found === null;
    if (found === null) return;
    const lines = found.kind.lines(found.row).map((line, place) => el("div", place === 0 ? "head" : "", line));
    if (found.others > 0) lines.push(el("div", "more", `and ${grouped(found.others)} more at this spot`));
    this.tip.replaceChildren(...lines);
    move(this.ring, found.x, found.y);
    const right = found.x > u.over.clientWidth / 2;
    const x = right ? found.x - this.tip.offsetWidth - 14 : found.x + 14;
    const y = Math.min(found.y - this.tip.offsetHeight / 2, u.over.clientHeight - this.tip.offsetHeight - 4);
    const spare = u.over.clientWidth - this.tip.offsetWidth;
    move(this.tip, Math.min(Math.max(-this.spill(u), x), Math.max(spare, -this.spill(u))), Math.max(4, y));
  }

  /** How far a tip may reach over the y axis on narrow screens. */
  spill(u) {
    return u.bbox.left / uPlot.pxRatio - 4;
  }

  /** The marker nearest to a place, with how many others are drawn at its spot. */
  nearest(u, left, top) {
    const radius = this.radius();
    let best = null;
    for (const kind of [this.signals, this.fills]) {
      const from = lowerBound(kind.x, u.posToVal(left - REACH_PIXELS, "x"));
      const to = lowerBound(kind.x, u.posToVal(left + REACH_PIXELS, "x"));
      for (let row = from; row < to; row++) {
        if (kind.y[row] === null) continue;
        const x = u.valToPos(kind.x[row], "x");
        const lift = kind === this.fills ? (this.buys[row] ? radius : -radius) : 0;
        const y = u.valToPos(kind.y[row], "y") + lift;
        const distance = Math.hypot(x - left, y - top);
        if (best !== null && Math.hypot(x - best.x, y - best.y) < 1.5) best.others += 1;
        if (distance > REACH_PIXELS || (best !== null && distance >= best.distance)) continue;
        const others = best !== null && Math.hypot(x - best.x, y - best.y) < 1.5 ? best.others : 0;
        best = { kind, row, x, y, distance, others };
      }
    }
    return best;
  }
}

function move(node, x, y) {
  node.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

/** A triangle whose tip is at a place; `down` is 1 where its body lies below. */
function triangle(path, x, y, radius, down) {
  path.moveTo(x, y);
  path.lineTo(x - radius, y + 1.8 * radius * down);
  path.lineTo(x + radius, y + 1.8 * radius * down);
  path.closePath();
}

function diamond(path, x, y, radius) {
  path.moveTo(x, y - radius);
  path.lineTo(x + radius, y);
  path.lineTo(x, y + radius);
  path.lineTo(x - radius, y);
  path.closePath();
}

/** The buttons that move the view. */
function zoomControls(host, time, view) {
  const whole = button("Whole run", () => view.whole());
  const inward = button("Zoom in", () => view.zoom(0.5));
  const outward = button("Zoom out", () => view.zoom(2));
  const earlier = button("Earlier", () => view.move(-0.5));
  const later = button("Later", () => view.move(0.5));
  const days = time.days();
  const pick = el("select");
  pick.setAttribute("aria-label", "Day");
  pick.append(new Option("All days", ""));
  days.forEach((day, place) => pick.append(new Option(day.name, String(place))));
  pick.addEventListener("change", () => {
    const day = days[Number(pick.value)];
    if (pick.value === "") view.whole();
    else view.show(day.from, day.to);
  });
  const least = Math.min(SPAN_MIN, time.count);
  const follow = () => {
    whole.disabled = outward.disabled = view.isWhole();
    inward.disabled = view.max - view.min <= least;
    earlier.disabled = view.min <= 0;
    later.disabled = view.max >= time.count;
    const shown = days.findIndex((day) => day.from === view.min && day.to === view.max);
    pick.value = view.isWhole() || shown < 0 ? "" : String(shown);
    pick.options[0].text = view.isWhole() || shown >= 0 ? "All days" : "Part";
  };
  view.listeners.push(follow);
  follow();
  host.append(whole, inward, outward, earlier, later, pick);
}
