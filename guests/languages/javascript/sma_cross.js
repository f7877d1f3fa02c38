// The moving-average crossover of guests/strategies/sma-cross, in JavaScript: the same orders at the
// same events. It speaks the contract in wit/strategy itself.

import { act } from "kumiki:strategy/actions@1.0.0";
import { write } from "kumiki:strategy/log@1.0.0";
import { report } from "kumiki:strategy/parameters@1.0.0";
import { getPosition } from "kumiki:strategy/portfolio@1.0.0";

const LENGTH_MAX = 100_000;
/** Beyond it a split begins the averages anew, as in Rust. */
const SCALE_MAX = 1_000;
const FINAL = new Set(["filled", "canceled", "expired", "rejected"]);

/** The strategy once it has its parameters: `fast` and `slow` (prices in each average), `quantity`. */
let strategy;
/** Time of the event being handled. */
let now = 0n;

/** The day in Japan of the event being handled, counted from 1970. */
function today() {
  const hour = 3_600_000_000_000n;
  return (now + 9n * hour) / (24n * hour);
}

/** What init answers instead of a strategy. */
class Refusal extends Error {}

/** A whole number of the configuration, from 1; taken out of it. */
function count(given, name, otherwise, high) {
  const value = given[name] ?? otherwise;
  delete given[name];
  if (Number.isSafeInteger(value) && value >= 1 && value <= high) return value;
  const wanted =
    high === LENGTH_MAX ? `a whole number from 1 to ${high}` : "a number of shares from 1";
  throw new Refusal(`parameter \`${name}\` is ${JSON.stringify(value)}; it must be ${wanted}`);
}

function parsed(config) {
  try {
    return config.trim() === "" ? {} : JSON.parse(config);
  } catch (error) {
    throw new Refusal(`the parameters are not JSON: ${error.message}`);
  }
}

/** The sums of the last `fast` and the last `slow` prices of one instrument. */
class Averages {
  constructor(fast, slow) {
    [this.fast, this.slow] = [fast, slow];
    // Prices not seen yet count 0, so the sums need no special case at the start.
    this.prices = new Float64Array(slow);
    this.oldest = this.seen = this.sumFast = this.sumSlow = 0;
    // What a price is multiplied with after splits, so that nothing is rounded.
    this.scale = 1;
    // The side of the last order, and the day in Japan on which one of each side was rejected last: the
    // same order would be rejected again, so that side waits for the next day.
    this.sent = "buy";
    this.rejectedOn = {};
  }

  maySend(side) {
    if (this.rejectedOn[side] === today()) return false;
    this.sent = side;
    return true;
  }

  /** The kept prices go on as prices of the new shares. */
  split({ oldShares, newShares }) {
    const scale = this.scale * newShares;
    if (scale > SCALE_MAX || !Number.isSafeInteger(this.sumSlow * oldShares)) {
      Object.assign(this, new Averages(this.fast, this.slow));
      return;
    }
    this.scale = scale;
    this.prices = this.prices.map((price) => price * oldShares);
    this.sumFast *= oldShares;
    this.sumSlow *= oldShares;
  }

  /** Takes in a price; tells whether `slow` prices were seen. */
  push(price) {
    const { prices, oldest, fast, slow } = this;
    price *= this.scale;
    this.sumFast += price - prices[(oldest + slow - fast) % slow];
    this.sumSlow += price - prices[oldest];
    prices[oldest] = price;
    this.oldest = oldest + 1 === slow ? 0 : oldest + 1;
    if (this.seen < slow) this.seen += 1;
    return this.seen === slow;
  }

  /** Above zero while the fast average is above the slow one, below while below. The sums are compared
   * across; numbers of JavaScript are exact up to 2^53, beyond that BigInt is. */
  compare() {
    const fast = this.sumFast * this.slow;
    const slow = this.sumSlow * this.fast;
    if (Number.isSafeInteger(fast) && Number.isSafeInteger(slow)) return fast - slow;
    const across = (sum, length) => BigInt(sum) * BigInt(length);
    const [one, other] = [across(this.sumFast, this.slow), across(this.sumSlow, this.fast)];
    return one > other ? 1 : one < other ? -1 : 0;
  }
}

class SmaCross {
  constructor(config, instruments) {
    const given = parsed(config);
    this.fast = count(given, "fast", 20, LENGTH_MAX);
    this.slow = count(given, "slow", 100, LENGTH_MAX);
    this.quantity = BigInt(count(given, "quantity", 100, Number.MAX_SAFE_INTEGER));
    if (this.fast >= this.slow) {
      throw new Refusal(
        `parameter \`fast\` is ${this.fast} and \`slow\` is ${this.slow}; fast must be below slow`,
      );
    }
    const [unknown] = Object.keys(given);
    if (unknown !== undefined) {
      throw new Refusal(
        `unknown parameter \`${unknown}\`; this strategy has: fast, slow, quantity`,
      );
    }
    for (const name of ["fast", "slow", "quantity"]) report(name, String(this[name]));
    this.averages = instruments.map(() => new Averages(this.fast, this.slow));
    // Orders that are not done, and shares held as far as the host was asked.
    this.working = instruments.map(() => new Set());
    this.held = instruments.map(() => undefined);
    this.orders = 0;
    this.reached = 0;
  }

  /** Takes in a price; tells whether an order was sent. */
  onPrice(instrument, price) {
    const averages = this.averages[instrument];
    // Whole numbers below 2^53 units: prices up to 900 billion yen.
    if (!averages.push(Number(price)) || this.working[instrument].size > 0) return false;
    const compared = averages.compare();
    if (compared === 0) return false;
    const held = (this.held[instrument] ??= getPosition(instrument).quantity);
    if (compared > 0 && held === 0n && averages.maySend("buy")) return this.send(instrument, "buy", this.quantity);
    if (compared < 0 && held > 0n && averages.maySend("sell")) return this.send(instrument, "sell", held);
    return false;
  }

  send(instrument, side, quantity) {
    this.orders += 1;
    const clientOrderId = `O-${this.orders}`;
    this.working[instrument].add(clientOrderId);
    const order = {
      clientOrderId,
      instrument,
      side,
      orderType: "market",
      quantity,
      timeInForce: "day",
      postOnly: false,
      reduceOnly: false,
      tags: [],
    };
    act([{ tag: "submit", val: order }]);
    return true;
  }

  /** The rows of the present window up to `limit`, or up to the first that sends an order. */
  rows(limit) {
    for (let row = this.reached; row < limit; row += 1) {
      if (this.row(row)) return (this.reached = row + 1);
    }
    return (this.reached = limit);
  }

  advance({ tag, val }, limit) {
    switch (tag) {
      case "one-trade":
        now = val.tsEvent;
        this.onPrice(val.instrument, val.price);
        return 1;
      case "one-bar":
        now = val.tsEvent;
        this.onPrice(val.instrument, val.close);
        return 1;
      case "trades":
        this.row = (row) => {
          now = val.tsEvent[row];
          return this.onPrice(val.instrument[row], val.price[row]);
        };
        this.reached = 0;
        break;
      case "bars":
        this.row = (row) => {
          now = val[row].tsEvent;
          return this.onPrice(val[row].instrument, val[row].close);
        };
        this.reached = 0;
        break;
    }
    // What is left is to go on with the window that is here.
    return this.rows(limit);
  }

  onAccountEvents(events) {
    for (const { tsEvent, instrument, kind } of events) {
      now = tsEvent;
      this.held[instrument] = undefined;
      if (kind.tag === "split") this.averages[instrument].split(kind.val);
    }
  }

  onOrderEvents(events) {
    for (const { tsEvent, instrument, clientOrderId, status } of events) {
      now = tsEvent;
      this.held[instrument] = undefined;
      if (status === "rejected") {
        const averages = this.averages[instrument];
        averages.rejectedOn[averages.sent] = today();
      }
      if (FINAL.has(status)) this.working[instrument].delete(clientOrderId);
    }
  }
}

/** JavaScript writes an error to a standard error that is not there; the host's log shows it. */
function withLastWords(call) {
  return (...given) => {
    try {
      return call(...given);
    } catch (error) {
      if (!(error instanceof Refusal)) write("panic", now, `${error}\n${error.stack}`);
      throw error;
    }
  };
}

export const guest = {
  init: withLastWords((config, instruments) => {
    try {
      strategy = new SmaCross(config, instruments);
    } catch (error) {
      // A text that is thrown is the answer; an error would be a trap.
      if (error instanceof Refusal) throw error.message;
      throw error;
    }
  }),
  start: withLastWords((at) => {
    now = at;
  }),
  advance: withLastWords((window, limit) => strategy.advance(window, limit)),
  onOrderEvents: withLastWords((events) => strategy.onOrderEvents(events)),
  onAccountEvents: withLastWords((events) => strategy.onAccountEvents(events)),
  stop: withLastWords((at) => {
    now = at;
  }),
};
