"use strict";

// Trading time: the x axis counts points, one for each minute with trades, so that nights and breaks
// take no room. Point 0 is the start; point i is the end of the i-th span of minutes.

const LABEL_PIXELS = 52;
/** Zooming ends at this many points. */
const SPAN_MIN = 8;

/** What a tick may stand for, from fine to coarse: a tick is where `key` changes. */
const LEVELS = [
  { key: (m) => m, clock: true },
  { key: (m) => Math.floor(m / 5), clock: true },
  { key: (m) => Math.floor(m / 15), clock: true },
  { key: (m) => Math.floor(m / 30), clock: true },
  { key: (m) => Math.floor(m / 60), clock: true },
  { key: (m) => Math.floor(m / 720), clock: true }, // morning and afternoon
  { key: (m) => Math.floor(m / 1440) },
  { key: (m) => Math.floor((m / 1440 + 3) / 7) }, // weeks from Monday; 1970 began on a Thursday
  { key: (m) => monthOf(m), month: true },
  { key: (m) => Math.floor(monthOf(m) / 3), month: true },
  { key: (m) => Math.floor(monthOf(m) / 12), month: true },
];
const DAY_LEVEL = 6;

/** Months since year 0 of minutes in Japan. */
function monthOf(localMinutes) {
  const date = new Date(localMinutes * 60_000);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** First place in a sorted array whose value is not below `value`. */
function lowerBound(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

class TradingTime {
  constructor(curve) {
    this.step = curve.step;
    this.ends = fromDifferences(curve.end);
    this.count = this.ends.length;
    this.begins = this.ends.map((end, place) => {
      const begin = end - this.step;
      // A wider span may reach over minutes without trades; it never begins before the last one ended.
      return place === 0 ? begin : Math.max(begin, Math.min(this.ends[place - 1], end - 1));
    });
    this.marks = LEVELS.map(() => null);
    this.x = Array.from({ length: this.count + 1 }, (_, place) => place);
  }

  /** Position of a moment, in microseconds since 1970. */
  at(micros) {
    const minutes = micros / 60e6;
    // A moment on a boundary belongs to the span that begins there.
    let place = lowerBound(this.ends, minutes);
    if (this.ends[place] === minutes) place += 1;
    if (place >= this.count) return this.count;
    const back = (this.ends[place] - minutes) / this.step;
    return place + 1 - Math.min(1, back);
  }

  /** The last minute of the span that a point stands for, in words: values are those at its end. */
  label(point) {
    if (point <= 0) return t("start");
    const minute = this.ends[Math.min(point, this.count) - 1] - 1;
    const weekday = dateWord(japanDate(minute), { weekday: "short" });
    return t("moment", { weekday, day: dateText(minute), time: clockText(minute) });
  }

  /** The first and last point of each day. */
  days() {
    const firsts = this.marksOf(DAY_LEVEL);
    return firsts.map((from, place) => ({
      name: dateText(this.begins[from]),
      from,
      to: place + 1 < firsts.length ? firsts[place + 1] : this.count,
    }));
  }

  /** Positions at which a level's key changes. */
  marksOf(level) {
    if (this.marks[level] === null) {
      const found = [];
      let last = null;
      this.begins.forEach((begin, place) => {
        const key = LEVELS[level].key(begin + JST_OFFSET_MINUTES);
        if (key !== last) found.push(place);
        last = key;
      });
      this.marks[level] = found;
    }
    return this.marks[level];
  }

  visible(level, min, max) {
    const marks = this.marksOf(level);
    return marks.slice(lowerBound(marks, min), lowerBound(marks, max + 1e-9));
  }

  /** Ticks between two positions on `width` pixels: `{at, label}`. */
  ticks(min, max, width) {
    const room = Math.max(1, Math.floor(width / LABEL_PIXELS));
    let level = LEVELS.findIndex((_, one) => this.visible(one, min, max).length <= room);
    if (level < 0) level = LEVELS.length - 1;
    // No change of day, month or year in sight: the finer level has more than fits, some will do.
    if (level > 0 && this.visible(level, min, max).length < 2) level -= 1;
    const places = this.spread(level, min, max, (LABEL_PIXELS * (max - min)) / width);
    return { at: places, labels: this.labels(level, places) };
  }

  /** Leaves out ticks that would touch; those of days stay before those of hours. */
  spread(level, min, max, gap) {
    const days = level < DAY_LEVEL ? new Set(this.visible(DAY_LEVEL, min, max)) : new Set();
    const kept = [];
    for (const place of this.visible(level, min, max)) {
      const last = kept[kept.length - 1];
      if (kept.length === 0 || place - last >= gap * 0.95) kept.push(place);
      else if (days.has(place) && !days.has(last)) kept[kept.length - 1] = place;
    }
    return kept;
  }

  /** Two-line labels: the second line comes where it changes. */
  labels(level, places) {
    let last = null;
    return places.map((place) => {
      const begin = this.begins[Math.min(place, this.count - 1)];
      const date = japanDate(begin);
      const month = monthName(date.getUTCMonth());
      const day = t("dayOfMonth", { day: date.getUTCDate(), month });
      const { clock, month: months } = LEVELS[level];
      const upper = clock ? clockText(begin) : months ? month : day;
      const lower = clock ? day : t("year", { year: date.getUTCFullYear() });
      const label = lower === last ? upper : `${upper}\n${lower}`;
      last = lower;
      return label;
    });
  }
}

/** The span of points that all charts show. */
class View {
  constructor(count) {
    this.count = count;
    this.listeners = [];
    this.min = 0;
    this.max = count;
  }

  /** Shows a span, kept inside the run and not too narrow. */
  show(min, max) {
    const least = Math.min(SPAN_MIN, this.count);
    if (max - min < least) {
      const middle = (min + max) / 2;
      [min, max] = [middle - least / 2, middle + least / 2];
    }
    const span = Math.min(max - min, this.count);
    this.min = Math.min(Math.max(0, min), this.count - span);
    this.max = this.min + span;
    for (const listener of this.listeners) listener();
  }

  whole() {
    this.show(0, this.count);
  }

  isWhole() {
    return this.max - this.min >= this.count;
  }

  zoom(factor) {
    const middle = (this.min + this.max) / 2;
    const half = ((this.max - this.min) * factor) / 2;
    this.show(middle - half, middle + half);
  }

  move(share) {
    const by = (this.max - this.min) * share;
    const span = this.max - this.min;
    const min = Math.min(Math.max(0, this.min + by), this.count - span);
    this.show(min, min + span);
  }
}
