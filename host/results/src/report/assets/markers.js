"use strict";

// Fills and signals on the price chart, of one instrument at a time.

/** How far from a marker the pointer still means it. */
const REACH_PIXELS = 18;
/** From this many visible markers on they get smaller, and those on the same spot are drawn once. */
const MANY_MARKERS = 1_500;
/** From this many visible signals on they go behind the fills. */
const MANY_SIGNALS = 200;

/** Fills and signals on the price chart. */
class Markers {
  constructor({ fills, signals }, time, view, instruments) {
    this.view = view;
    const prices = plotted(fills.price);
    const isBuy = (row) => word(fills.side, row) === "BUY";
    const own = plotted(signals.price);
    this.kinds = instruments.map(({ id, values }) => {
      const last = values.length - 1;
      const priceAt = (x) => values[Math.min(last, Math.max(1, Math.ceil(x)))] ?? null;
      const fill = this.kind(fills, id, time, (row) => prices[row], (row) => this.fillLines(fills, row));
      fill.buys = fill.rows.map(isBuy);
      const signal = this.kind(signals, id, time, (row, x) => own[row] ?? priceAt(x),
        (row) => this.signalLines(signals, row));
      return { fill, signal };
    });
    this.showInstrument(0);
  }

  /** The markers of one instrument: its rows of the table, and where they are. */
  kind(table, id, time, priceOf, linesOf) {
    const rows = [];
    for (let row = 0; row < table.count; row++) if (word(table.instrument_id, row) === id) rows.push(row);
    const x = rows.map((row) => time.at(table.moments[row]));
    return { rows, x, y: rows.map((row, place) => priceOf(row, x[place])), lines: (place) => linesOf(rows[place]) };
  }

  /** Which instrument's markers are drawn. */
  showInstrument(place) {
    this.fills = this.kinds[place].fill;
    this.signals = this.kinds[place].signal;
    this.buys = this.fills.buys;
  }

  fillLines(fills, row) {
    return [
      t("fillTip", { side: known("side", word(fills.side, row)), shares: grouped(fills.quantity[row]), price: amount(fills.price, row) }),
      `${momentText(fills.moments[row])} JST`,
      t("fillOrderTip", { order: fills.client_order_id[row], fill: fills.trade_id[row] }),
    ];
  }

  signalLines(signals, row) {
    const [tag, side, price] = [word(signals.tag, row), word(signals.side, row), amount(signals.price, row)];
    const note = word(signals.note, row);
    const title = [known("signal", word(signals.signal_kind, row)), side === null ? null : known("side", side),
      price === null ? null : t("atPrice", { price })].filter(Boolean).join(" ");
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
    if (found.others > 0) lines.push(el("div", "more", t("moreHere", { count: grouped(found.others) })));
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
