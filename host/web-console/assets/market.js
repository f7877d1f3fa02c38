// Market data: what is subscribed, the trades, bars and boards of each ticker, and their history.

import { listen, tell } from "./bus.js";
import { draw, slowly } from "./frames.js";
import { BarSeries, TickSeries } from "./series.js";
import { advance, ask, askPatiently, isReplay, shownInstruments, state } from "./state.js";
import { tickerOf } from "./dom.js";

const TRADES_AT_ONCE = 10_000;
const BARS_AT_ONCE = 5_000;
/** Trades that a live ticker's tape and chart go back. */
const TAPE_ROWS = 200;

/** Everything of one ticker. A board is kept as it came, and read when somebody looks at it. */
class Ticker {
  constructor(ticker) {
    this.ticker = ticker;
    this.instrumentId = `${ticker}.TSE`;
    this.name = null;
    this.ticks = new TickSeries();
    this.bars = { "1m": new BarSeries(), "1d": new BarSeries() };
    this.clear();
  }

  clear() {
    this.ticks.clear();
    this.bars["1m"].clear();
    this.bars["1d"].clear();
    this.tape = [];
    this.boardText = null;
    this.boardRead = null;
    this.lastTraded = null;
    this.session = null;
    /** Counts the times it was emptied; an answer of before is of no use. */
    this.age = (this.age ?? 0) + 1;
  }

  get board() {
    if (this.boardText !== null) {
      this.boardRead = JSON.parse(this.boardText);
      this.boardText = null;
    }
    return this.boardRead;
  }

  get lastPrice() {
    return this.board?.last_price ?? this.lastTraded;
  }
}

const tickers = new Map();
/** The ticker whose board, tape and candles are shown in live mode. */
let selected = null;

export const venueOfData = () => (isReplay() ? "replay" : "local_broker");

export function tickerData(ticker) {
  if (!tickers.has(ticker)) tickers.set(ticker, new Ticker(ticker));
  return tickers.get(ticker);
}

export const dataOf = (instrumentId) => tickerData(tickerOf(instrumentId));
export const selectedTicker = () => selected;

/** Shows another ticker; its name is the `data-instrument-id` of board, tape and candles. */
export function select(ticker) {
  if (selected === ticker) return;
  if (selected !== null) tickerData(selected).clear();
  selected = ticker;
  if (ticker !== null && state.synced) history(tickerData(ticker));
  tell("selected", ticker);
}

/** Live rows are kept of the ticker that is shown alone; of the others the last price and the board. */
const isKept = (data) => isReplay() || data.ticker === selected;

/** Asks for the market data of a ticker, and for what was traded before. Throws `NoAnswer`. */
export async function subscribe(ticker) {
  const data = tickerData(ticker);
  const subscribed = ask("Subscribe", { venue: venueOfData(), ticker });
  // The engine takes commands in their order: what comes from now on joins what the history ends with.
  // What is there already is not counted twice.
  if (isKept(data) && (isReplay() || data.tape.length === 0)) history(data);
  const answer = await subscribed;
  data.name = answer.ticker_info?.display_name_ja ?? data.name;
  tell("ticker", data);
  return data;
}

export async function unsubscribe(ticker) {
  const answer = await ask("Unsubscribe", { venue: venueOfData(), ticker });
  tickers.get(answer.ticker)?.clear();
  return answer.ticker;
}

/** Asks for a board as it is now: it is pushed only when it changes. */
function askBoard(ticker) {
  if (!isReplay()) ask("GetBoard", { venue: venueOfData(), ticker }).catch(() => {});
}

// A gateway tells boards from the login on.
listen("VenueReady", ({ venue }) => venue === "local_broker" && selected !== null && askBoard(selected));

/** Gets what was traded before the page came. */
export function history(data) {
  const { age } = data;
  askBoard(data.ticker);
  const stale = () => data.age !== age;
  pages(data, "trades", TRADES_AT_ONCE, stale, (answer) => {
    const rows = answer.trades ?? [];
    if (isReplay()) data.ticks.prepend(rows);
    else {
      const oldest = oldestOf(data);
      data.bars["1m"].precede(rows.filter((row) => row.sequence_id < oldest));
      fillTape(data, rows);
      changed(data, "bars");
    }
    return rows[0]?.sequence_id;
  });
  pages(data, "bars", BARS_AT_ONCE, stale, (answer) => {
    const klines = answer.klines ?? [];
    data.bars[answer.interval ?? "1m"].take(klines);
    return klines[0]?.open_time_ms;
  });
}

/** The question under way: the engine answers a few at a time, so each waits for the one before. */
let underWay = Promise.resolve();

function askPast(fields) {
  const asked = underWay.then(() => askPatiently("GetHistory", { venue: venueOfData(), ...fields }));
  underWay = asked.catch(() => {});
  return asked;
}

async function pages(data, kind, limit, stale, take) {
  let before = null;
  for (;;) {
    let answer;
    try {
      answer = await askPast({ ticker: data.ticker, kind, before, limit });
    } catch {
      return; // The page goes on with what comes from now on.
    }
    if (stale()) return;
    before = take(answer) ?? null;
    changed(data, kind);
    if (answer.more !== true || before === null) return;
  }
}

/** The open bar is drawn at most this often. */
const BARS_EVERY_MS = 250;
const barsSoon = slowly(() => selected !== null && changed(tickerData(selected), "bars"), BARS_EVERY_MS);

/** Where the tape of a ticker ends. */
const oldestOf = ({ tape }) => (tape.length === 0 ? Infinity : tape[tape.length - 1].sequence_id);

/** The tape shows older trades too. */
function fillTape(data, rows) {
  const oldest = oldestOf(data);
  for (let place = rows.length - 1; place >= 0 && data.tape.length < TAPE_ROWS; place--) {
    if (rows[place].sequence_id < oldest) data.tape.push(rows[place]);
  }
}

/** What changed since the last frame, by kind: board, trades, bars. */
const changes = new Map();

function changed(data, ...kinds) {
  for (const kind of kinds) {
    if (!changes.has(kind)) changes.set(kind, new Set());
    changes.get(kind).add(data);
  }
  draw(tellChanged);
}

/** Tells `market-KIND` for each ticker, and `market` once. */
function tellChanged() {
  for (const [kind, those] of changes) {
    for (const data of those) tell(`market-${kind}`, data);
    those.clear();
  }
  tell("market");
}

listen("Trades", (event) => {
  if (event.venue !== venueOfData() || !state.synced) return;
  const data = tickerData(event.ticker);
  if (data.session !== null && data.session !== event.stream_session_id && isReplay()) data.clear();
  data.session = event.stream_session_id;
  const rows = event.trades;
  const last = rows[rows.length - 1];
  if (last === undefined) return;
  data.lastTraded = last.price;
  if (isReplay()) {
    data.ticks.append(rows);
    advance(last.ts_ms);
  } else if (isKept(data)) {
    data.bars["1m"].grow(rows);
    barsSoon();
    for (const row of rows) data.tape.unshift(row);
    if (data.tape.length > TAPE_ROWS) data.tape.length = TAPE_ROWS;
  }
  changed(data, "trades");
});

listen("KlineUpdate", (event) => {
  if (event.venue !== venueOfData() || !state.synced) return;
  const data = tickerData(event.ticker);
  if (!isKept(data)) return;
  data.bars[event.interval].take(event.klines);
  const last = event.klines[event.klines.length - 1];
  if (isReplay() && last !== undefined && data.ticks.count === 0) data.lastTraded = last.close;
  changed(data, "bars");
});

/** Takes a board that was pushed. */
export function takeBoard(ticker, text) {
  const data = tickerData(ticker);
  data.boardText = text;
  changed(data, "board");
}

// The answer to a question for a board.
listen("DepthSnapshot", (event) => {
  const data = tickerData(event.ticker);
  if (data.board !== null) return;
  data.boardRead = event;
  changed(data, "board");
});

/** The charts of a replay are empty before its first row. */
function empty() {
  for (const data of tickers.values()) {
    data.clear();
    changed(data, "board", "trades", "bars");
  }
}

listen("emptied", empty);

listen("run-began", (run) => {
  if (run.kind !== "replay") return;
  empty();
  // The run may have begun before the engine took the subscription.
  for (const ticker of followed) history(tickerData(ticker));
});

// Another client, or the limit of the gateway, took the symbol away: what is known of it is old.
listen("SubscriptionEvicted", ({ symbol }) => {
  tickers.get(symbol)?.clear();
  changed(tickerData(symbol), "board", "trades", "bars");
});

listen("synced", (session) => {
  empty();
  if (!isReplay()) return;
  for (const { instrument_id } of shownInstruments(session)) follow(instrument_id);
  for (const kline of session.last_bars ?? []) tickerData(kline.ticker).bars[kline.interval].take(kline.klines);
});

listen("loaded", (instruments) => {
  for (const { instrument_id } of instruments) follow(instrument_id);
});

/** Tickers of a replay that this connection has subscribed. */
const followed = new Set();

function follow(instrumentId) {
  const ticker = tickerOf(instrumentId);
  if (followed.has(ticker)) {
    if (state.run !== null) history(tickerData(ticker));
    return;
  }
  followed.add(ticker);
  subscribe(ticker).catch(() => followed.delete(ticker));
}

listen("connection", (connection) => {
  if (connection !== "ready") followed.clear();
});
