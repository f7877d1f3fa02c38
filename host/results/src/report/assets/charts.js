"use strict";

// Charts over trading time: one view, one cursor. Colours come from the style sheet, read anew at every
// drawing, so that the charts follow dark mode and print in light colours.

const PRINT_WIDTH = 680;
/** Room for half a label at the right end of the time axis. */
const RIGHT_PIXELS = 30;

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

/** Charts over the same time that share one view and one cursor. */
class Charts {
  constructor(time, view) {
    this.time = time;
    this.view = view;
    this.all = [];
    /** Room for the numbers of the y axes, in pixels. */
    this.axisWidth = 64;
  }

  /** The charts are all there. */
  ready() {
    this.view.listeners.push(() => this.follow());
    this.watch();
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
      series: [{}, ...chart.series.map((one) => ({ ...one, points: { show: false } }))],
      hooks,
    };
    const u = new uPlot(options, [this.time.x, ...chart.values], host);
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
      values: (_, places, axis, space, step) => places.map((place) => axisNumber(place, step) + (chart.unit ?? "")),
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
    const values = chart.tell(point).map(([name, value]) => el("span", "", name, " ", el("b", "", value)));
    readout.replaceChildren(when, ...values);
  }

  watch() {
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(this.all[0].host);
    const gone = new AbortController();
    leaving.push(() => {
      gone.abort();
      sizes.disconnect();
      for (const { u } of this.all) u.destroy();
    });
    const until = { signal: gone.signal };
    const redraw = () => this.all.forEach(({ u }) => u.redraw(false));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw, until);
    const print = (printing) => {
      this.printing = printing;
      document.documentElement.classList.toggle("printing", printing);
      this.resize();
      redraw();
    };
    addEventListener("beforeprint", () => print(true), until);
    addEventListener("afterprint", () => print(false), until);
    this.view.listeners.push(() => this.all.forEach(({ tell }) => tell()));
  }

  resize() {
    for (const { u, host, chart } of this.all) {
      const size = this.size(host, chart);
      if (size.width !== u.width || size.height !== u.height) u.setSize(size);
    }
  }
}

/** The buttons that move the view. */
function zoomControls(host, time, view) {
  const whole = button(t("wholeRun"), () => view.whole());
  const inward = button(t("zoomIn"), () => view.zoom(0.5));
  const outward = button(t("zoomOut"), () => view.zoom(2));
  const earlier = button(t("earlier"), () => view.move(-0.5));
  const later = button(t("later"), () => view.move(0.5));
  const days = time.days();
  const pick = el("select");
  pick.setAttribute("aria-label", t("day"));
  pick.append(new Option(t("allDays"), ""));
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
    pick.options[0].text = view.isWhole() || shown >= 0 ? t("allDays") : t("part");
  };
  view.listeners.push(follow);
  follow();
  host.append(whole, inward, outward, earlier, later, pick);
}
