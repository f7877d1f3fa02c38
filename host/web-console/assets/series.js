// What is traded, kept in typed arrays: a million trades take some 30 MB. Both kinds of rows can be the base
// of a chart: they count points, tell the range of a span, and know the minute of each point.

/* global TradingTime, LEVELS, JST_OFFSET_MINUTES -- of the report's axis.js and format.js */

const FIRST_ROOM = 1_024;
/** Rows of a block whose lowest and highest price are known. */
const BLOCK = 256;

/** A typed array that grows at its end. */
class Column {
  constructor(kind) {
    this.kind = kind;
    this.values = new kind(FIRST_ROOM);
  }

  reserve(count) {
    if (count <= this.values.length) return;
    const larger = new this.kind(Math.max(count, Math.ceil(this.values.length * 1.5)));
    larger.set(this.values);
    this.values = larger;
  }
}

/** Trading time of rows that grow: the marks of the axis are looked for in new rows only. */
class GrowingTime extends TradingTime {
  constructor(series) {
    super({ step: 1, end: [] });
    this.series = series;
    this.scanned = LEVELS.map(() => ({ to: 0, key: null, minute: null }));
  }

  get count() {
    return this.series === undefined ? 0 : this.series.count;
  }

  set count(_) {
    // The rows count themselves.
  }

  get begins() {
    return this.series === undefined ? [] : this.series.minutes;
  }

  set begins(_) {
    // The rows know their minutes.
  }

  /** The same ticks have the same labels: most frames show those of the frame before. */
  labels(level, places) {
    const key = `${globalThis.language} ${level} ${places.join()}`;
    if (this.labelKey !== key) {
      this.labelKey = key;
      this.lastLabels = super.labels(level, places);
    }
    return this.lastLabels;
  }

  forget() {
    this.labelKey = null;
    this.marks = LEVELS.map(() => null);
    this.scanned = LEVELS.map(() => ({ to: 0, key: null, minute: null }));
  }

  marksOf(level) {
    const marks = (this.marks[level] ??= []);
    const scan = this.scanned[level];
    const { minutes, count } = this.series;
    for (; scan.to < count; scan.to++) {
      const minute = minutes[scan.to];
      if (minute === scan.minute) continue;
      scan.minute = minute;
      const key = LEVELS[level].key(minute + JST_OFFSET_MINUTES);
      if (key !== scan.key) marks.push(scan.to);
      scan.key = key;
    }
    return marks;
  }
}

/** The lowest and the highest price of spans of rows; blocks spare looking at each row. */
class Extremes {
  constructor() {
    this.clear();
  }

  clear() {
    this.low = new Column(Float64Array);
    this.high = new Column(Float64Array);
    this.blocks = 0;
  }

  /** Adds the blocks that are whole by now. */
  grow(low, high, count) {
    while ((this.blocks + 1) * BLOCK <= count) {
      const [least, most] = this.look(low, high, this.blocks * BLOCK, (this.blocks + 1) * BLOCK);
      this.low.reserve(this.blocks + 1);
      this.high.reserve(this.blocks + 1);
      this.low.values[this.blocks] = least;
      this.high.values[this.blocks] = most;
      this.blocks += 1;
    }
  }

  look(low, high, from, to) {
    let least = Infinity;
    let most = -Infinity;
    for (let row = from; row < to; row++) {
      if (low[row] < least) least = low[row];
      if (high[row] > most) most = high[row];
    }
    return [least, most];
  }

  of(low, high, from, to) {
    const first = Math.ceil(from / BLOCK);
    const last = Math.min(Math.floor(to / BLOCK), this.blocks);
    if (first >= last) return this.look(low, high, from, to);
    let [least, most] = this.look(low, high, from, first * BLOCK);
    for (let block = first; block < last; block++) {
      least = Math.min(least, this.low.values[block]);
      most = Math.max(most, this.high.values[block]);
    }
    const [lowRest, highRest] = this.look(low, high, last * BLOCK, to);
    return [Math.min(least, lowRest), Math.max(most, highRest)];
  }
}

/** Microseconds since 1970 of a trade. */
const microsOf = (row) => (row.ts_ns == null ? row.ts_ms * 1_000 : Math.round(row.ts_ns / 1_000));

/** The trades of an instrument. */
export class TickSeries {
  constructor() {
    this.time = new GrowingTime(this);
    this.extremes = new Extremes();
    this.clear();
  }

  clear() {
    this.count = 0;
    this.prices = new Column(Float64Array);
    this.micros = new Column(Float64Array);
    this.numbers = new Column(Float64Array);
    this.quantities = new Column(Float64Array);
    this.minuteColumn = new Column(Int32Array);
    this.extremes.clear();
    this.time.forget();
    this.last = null;
  }

  get minutes() {
    return this.minuteColumn.values;
  }

  columns() {
    return [this.prices, this.micros, this.numbers, this.quantities, this.minuteColumn];
  }

  put(place, row) {
    const micros = microsOf(row);
    this.prices.values[place] = Number(row.price);
    this.micros.values[place] = micros;
    this.numbers.values[place] = row.sequence_id;
    this.quantities.values[place] = Number(row.qty);
    this.minuteColumn.values[place] = Math.floor(micros / 60e6);
  }

  /** Adds newer trades; those that are there already are left out. */
  append(rows) {
    const newest = this.count === 0 ? -1 : this.numbers.values[this.count - 1];
    const fresh = rows.length > 0 && rows[0].sequence_id > newest ? rows : rows.filter((row) => row.sequence_id > newest);
    if (fresh.length === 0) return;
    for (const column of this.columns()) column.reserve(this.count + fresh.length);
    for (const row of fresh) this.put(this.count++, row);
    this.last = fresh[fresh.length - 1];
    this.extremes.grow(this.prices.values, this.prices.values, this.count);
  }

  /** Adds older trades before those that are there. */
  prepend(rows) {
    const oldest = this.count === 0 ? Infinity : this.numbers.values[0];
    const older = rows.filter((row) => row.sequence_id < oldest);
    if (older.length === 0) return;
    for (const column of this.columns()) {
      const moved = new column.kind(Math.ceil((this.count + older.length) * 1.1) + FIRST_ROOM);
      moved.set(column.values.subarray(0, this.count), older.length);
      column.values = moved;
    }
    older.forEach((row, place) => this.put(place, row));
    if (this.count === 0) this.last = older[older.length - 1];
    this.count += older.length;
    this.extremes.clear();
    this.extremes.grow(this.prices.values, this.prices.values, this.count);
    this.time.forget();
  }

  oldestNumber() {
    return this.count === 0 ? null : this.numbers.values[0];
  }

  lastPrice() {
    return this.last?.price ?? null;
  }

  lastMs() {
    return this.last?.ts_ms ?? null;
  }

  range(from, to) {
    return this.extremes.of(this.prices.values, this.prices.values, from, to);
  }

  /** The point at a moment: the last trade of that millisecond or before. */
  placeOf(ms) {
    return firstAfter(this.micros.values, this.count, ms * 1_000 + 999) - 1;
  }
}

/** First place in the first `count` sorted values that is above `value`. */
function firstAfter(values, count, value) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The bars of an instrument, the open one last. */
export class BarSeries {
  constructor() {
    this.time = new GrowingTime(this);
    this.clear();
  }

  clear() {
    this.bars = [];
    this.low = new Column(Float64Array);
    this.high = new Column(Float64Array);
    this.open = new Column(Float64Array);
    this.close = new Column(Float64Array);
    this.volume = new Column(Float64Array);
    this.minuteColumn = new Column(Int32Array);
    this.time.forget();
  }

  get count() {
    return this.bars.length;
  }

  get minutes() {
    return this.minuteColumn.values;
  }

  put(place, bar) {
    for (const name of ["low", "high", "open", "close", "volume"]) {
      this[name].reserve(place + 1);
      this[name].values[place] = Number(bar[name]);
    }
    this.minuteColumn.reserve(place + 1);
    this.minuteColumn.values[place] = Math.floor(bar.open_time_ms / 60_000);
    this.bars[place] = bar;
  }

  /** Adds bars, or changes those that are there, by their times. */
  take(klines) {
    let older = [];
    for (const bar of klines) {
      const last = this.bars[this.count - 1];
      if (last === undefined || bar.open_time_ms > last.open_time_ms) this.put(this.count, bar);
      else if (bar.open_time_ms === last.open_time_ms) this.put(this.count - 1, newer(last, bar));
      else older.push(bar);
    }
    if (older.length > 0) this.merge(older);
  }

  /** Grows the newest bar by trades, which are of its minute or later; the engine tells minutes that are over. */
  grow(rows) {
    for (const row of rows) {
      const last = this.bars[this.count - 1];
      const made = barOf(row);
      if (last === undefined || made.open_time_ms > last.open_time_ms) this.put(this.count, made);
      else if (made.open_time_ms === last.open_time_ms && !last.is_final) this.put(this.count - 1, joinedBars(last, made));
    }
  }

  /** Puts trades that were before those of the newest bar into it. */
  precede(rows) {
    const [open, ...rest] = rows.map(barOf).filter((one, _, all) => one.open_time_ms === all[all.length - 1].open_time_ms);
    if (open === undefined) return;
    const before = rest.reduce(joinedBars, open);
    const last = this.bars[this.count - 1];
    if (last === undefined || before.open_time_ms > last.open_time_ms) this.put(this.count, before);
    else if (before.open_time_ms === last.open_time_ms && !last.is_final) this.put(this.count - 1, joinedBars(before, last));
  }

  /** Adds older bars. */
  merge(older) {
    const byTime = new Map(this.bars.map((bar) => [bar.open_time_ms, bar]));
    for (const bar of older) {
      const known = byTime.get(bar.open_time_ms);
      byTime.set(bar.open_time_ms, known === undefined ? bar : newer(known, bar));
    }
    const all = [...byTime.values()].sort((one, other) => one.open_time_ms - other.open_time_ms);
    this.bars = [];
    all.forEach((bar, place) => this.put(place, bar));
    this.time.forget();
  }

  lastPrice() {
    return this.bars[this.count - 1]?.close ?? null;
  }

  lastMs() {
    return this.bars[this.count - 1]?.open_time_ms ?? null;
  }

  range(from, to) {
    let least = Infinity;
    let most = -Infinity;
    for (let place = from; place < to; place++) {
      least = Math.min(least, this.low.values[place]);
      most = Math.max(most, this.high.values[place]);
    }
    return [least, most];
  }

  /** The point at a moment: the bar that holds it. */
  placeOf(ms) {
    return firstAfter(this.minuteColumn.values, this.count, Math.floor(ms / 60_000)) - 1;
  }
}

const MINUTE_MS = 60_000;

/** The bar of a minute with one trade. */
function barOf({ ts_ms, price, qty }) {
  const begun = ts_ms - (ts_ms % MINUTE_MS);
  return { open_time_ms: begun, close_time_ms: begun + MINUTE_MS, open: price, high: price, low: price, close: price, volume: qty, is_final: false };
}

/** Two parts of one bar, the earlier one first. */
function joinedBars(first, second) {
  return {
    ...first, close: second.close, volume: String(Number(first.volume) + Number(second.volume)),
    high: Number(second.high) > Number(first.high) ? second.high : first.high,
    low: Number(second.low) < Number(first.low) ? second.low : first.low,
  };
}

/** Of two states of one bar the one with more volume; a final one stays. */
function newer(known, told) {
  if (known.is_final !== told.is_final) return known.is_final ? known : told;
  return Number(told.volume) >= Number(known.volume) ? told : known;
}

/** A curve of money over the time of the session, one point for each minute. */
export class CurveSeries {
  constructor() {
    this.time = new GrowingTime(this);
    this.clear();
  }

  clear() {
    this.count = 0;
    this.texts = [];
    this.times = [];
    this.values = new Column(Float64Array);
    this.minuteColumn = new Column(Int32Array);
    this.time.forget();
  }

  get minutes() {
    return this.minuteColumn.values;
  }

  take(ms, text) {
    const minute = Math.floor(ms / 60_000);
    let place = this.count;
    if (place > 0 && this.minuteColumn.values[place - 1] === minute) place -= 1;
    else if (place > 0 && this.minuteColumn.values[place - 1] > minute) return;
    this.values.reserve(place + 1);
    this.minuteColumn.reserve(place + 1);
    this.values.values[place] = Number(text);
    this.minuteColumn.values[place] = minute;
    this.texts[place] = text;
    this.times[place] = ms;
    this.count = place + 1;
  }

  lastPrice() {
    return this.count === 0 ? null : this.texts[this.count - 1];
  }

  lastMs() {
    return this.count === 0 ? null : this.times[this.count - 1];
  }

  range(from, to) {
    let least = Infinity;
    let most = -Infinity;
    for (let place = from; place < to; place++) {
      least = Math.min(least, this.values.values[place]);
      most = Math.max(most, this.values.values[place]);
    }
    return [least, most];
  }

  placeOf(ms) {
    return firstAfter(this.minuteColumn.values, this.count, Math.floor(ms / 60_000)) - 1;
  }
}
