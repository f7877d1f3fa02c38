"use strict";

// Equity, drawdown, and price with its markers.

/** The three charts of a run. */
class RunCharts extends Charts {
  constructor(data, time, view) {
    super(time, view);
    const { curve } = data;
    const cash = Number(data.summary.cash_start);
    this.equityValues = [cash, ...plotted(curve.equity)];
    this.drawdownValues = [0, ...plotted(curve.drawdown)];
    this.instruments = data.instruments.map(({ id, price, quantity }) => ({
      id,
      price,
      quantity,
      values: [null, ...plotted(price)],
    }));
    this.shown = 0;
    this.markers = new Markers(data, time, view, this.instruments);
    this.axisWidth = this.widestNumber() * 7 + 20;
    this.equity(data);
    this.drawdown(data);
    this.price();
    this.ready();
  }

  widestNumber() {
    const widest = (values, step) => {
      const known = values.filter((value) => value !== null);
      const edges = known.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
      return Math.max(...edges.map((edge) => axisNumber(edge, step).length));
    };
    const prices = this.instruments.map(({ values, price }) => widest(values, price.decimals > 0 ? 0.1 : 1));
    return Math.max(widest(this.equityValues, 1), widest(this.drawdownValues, 1), ...prices);
  }

  equity(data) {
    const { curve } = data;
    const first = money(data.summary.cash_start);
    this.add("equity", {
      heights: [290, 220],
      label: t("equityLabel"),
      values: [this.equityValues],
      range: (_, low, high) => padded(low, high, 0.08),
      series: [{ stroke: () => colour("line"), fill: () => colour("line-fill"), width: 1.6 }],
      least: 1,
      hideTime: true,
      tell: (point) => [
        [t("equity"), yen(point === 0 ? first : amount(curve.equity, point - 1))],
        ...this.instruments.map(({ id, quantity }) => [
          this.instruments.length > 1 ? t("heldOf", { id }) : t("position"),
          point === 0 ? "0" : grouped(quantity[point - 1]),
        ]),
      ],
    });
  }

  drawdown(data) {
    const { curve } = data;
    this.add("drawdown", {
      heights: [150, 130],
      label: t("drawdownLabel"),
      values: [this.drawdownValues],
      space: 26,
      range: (_, low) => [Math.min((low ?? 0) * 1.08, -1), 0],
      series: [{ stroke: () => colour("loss"), fill: () => colour("loss-fill"), width: 1.2 }],
      least: 1,
      tell: (point) => [
        [t("belowPeak"), point === 0
          ? yen("0")
          : `${yen(amount(curve.drawdown, point - 1))} (${percent(curve.drawdown_ppm[point - 1] / 1e6, 2)})`],
      ],
    });
  }

  price() {
    const now = () => this.instruments[this.shown];
    const chart = this.add("price", {
      heights: [380, 300],
      label: t("priceLabel"),
      values: [now().values],
      range: (_, low, high) => padded(...this.markers.widen(low, high), 0.09),
      series: [{ stroke: () => colour("price-line"), width: 1.2 }],
      least: 0.1,
      hooks: { draw: [(u) => this.markers.draw(u)], setCursor: [(u) => this.markers.hover(u)] },
      tell: (point) => {
        const price = point === 0 ? null : amount(now().price, point - 1);
        const name = this.instruments.length > 1 ? t("priceOf", { id: now().id }) : t("price");
        return [[name, price === null ? "\u2013" : yen(price)]];
      },
    });
    this.markers.attach(chart);
  }

  /** Shows an instrument by its id, and in the picker too. */
  pickInstrument(id) {
    const place = this.instruments.findIndex((one) => one.id === id);
    this.showInstrument(place);
    if (this.picker && place >= 0) this.picker.value = String(place);
  }

  /** Shows another instrument in the price chart. */
  showInstrument(place) {
    if (place === this.shown || place < 0) return;
    this.shown = place;
    this.markers.showInstrument(place);
    const price = this.all[this.all.length - 1];
    price.u.setData([this.time.x, this.instruments[place].values], false);
    price.u.setScale("x", { min: this.view.min, max: this.view.max });
    price.tell();
  }
}
