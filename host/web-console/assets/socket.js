// The connection to the engine. It proves the key without sending it, checks the engine's proof before it
// sends anything else, notices a silent engine, and connects anew.

const SCHEMA = { schema_major: 1, schema_minor: 4 };
const CLIENT_VERSION = "console";
/** A ping leaves every 3 s; an engine that is silent for longer than this is lost. */
const PING_MS = 3_000;
const SILENT_MS = 5_500;
const LOOK_MS = 500;
const HANDSHAKE_MS = 10_000;
const BACKOFF_MS = [500, 1_000, 2_000, 4_000, 5_000];
/** How long an answer may take; the engine gives up orders after 30 s. */
const ANSWER_MS = 35_000;
const LONG_MS = 600_000;

/** The events that answer a command; one comes, or several with `more` in all but the last. */
const ANSWERS = {
  Ping: ["Pong"], GetSession: ["Session"], LoadReplayData: ["ReplayDataLoaded"], StartEngine: ["EngineStarted"],
  SetReplaySpeed: ["ReplaySpeedChanged"], StopEngine: ["ReplayStopped", "EngineStopped"],
  SubmitOrder: ["SubmitOrderResult"], ModifyOrder: ["OrderUpdated"], CancelOrder: ["OrderCanceled"],
  CancelAllOrders: ["CancelAllResult"], GetOrderList: ["OrderListUpdated"],
  GetBuyingPower: ["ReplayBuyingPower", "BuyingPowerUpdated"], GetPositions: ["PositionsUpdated"],
  Subscribe: ["Subscribed"], Unsubscribe: ["Unsubscribed"], GetBoard: ["DepthSnapshot"],
  RequestVenueLogin: ["VenueReady", "VenueLoginCancelled"], GetVenueState: ["VenueState"],
  SetSecondPassword: ["SecondPasswordSet"], ForgetSecondPassword: [], SignOut: [],
  GetDataCatalog: ["DataCatalog"], GetStrategies: ["Strategies"], GetStrategyParameters: ["StrategyParameters"],
  GetInstrument: ["Instrument"], GetHistory: ["History"], GetRuns: ["Runs"], OpenReport: ["ReportOpened"],
};
const REFUSALS = new Set(["Error", "EngineError", "EngineBusy", "OrderRejected", "SecondPasswordRequired"]);
const LONG = new Set(["LoadReplayData", "StartEngine", "StopEngine", "CancelAllOrders", "RequestVenueLogin"]);
/** What a page that may only read may send. */
const READING = /^(Ping|Get[A-Za-z]+|Subscribe|Unsubscribe|OpenReport)$/;

const BOARD = '{"event":"DepthSnapshot",';
const BOARD_HEAD = 240;
const BOARD_TICKER = /"ticker":"([0-9A-Z]+)"/;

/** A command was refused, or its answer is not known. `event` is what came; null where nothing did. */
export class NoAnswer extends Error {
  constructor(why, event = null) {
    super(why);
    this.why = why;
    this.event = event;
  }
}

function hex(bytes) {
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function proofOf(key, text) {
  const encoder = new TextEncoder();
  const made = await crypto.subtle.importKey("raw", encoder.encode(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return hex(await crypto.subtle.sign("HMAC", made, encoder.encode(text)));
}

export class Socket {
  /**
   * `told` has `connecting()`, `ready(event)`, `event(event)`, `board(ticker, text)` with a board that nobody
   * has read yet, `lost(reason)`, `refused(why)` and `ended(why)`.
   */
  constructor(session, told) {
    this.session = session;
    this.told = told;
    this.tries = 0;
    this.count = 0;
    this.name = hex(crypto.getRandomValues(new Uint8Array(6)));
    this.waiting = new Map();
    this.ready = false;
    this.over = false;
    this.connect();
    this.looks = setInterval(() => this.look(), LOOK_MS);
  }

  connect() {
    this.told.connecting();
    this.begun = performance.now();
    this.heard = this.begun;
    this.pinged = null;
    const socket = new WebSocket(`ws://127.0.0.1:${this.session.port}/`);
    this.socket = socket;
    const mine = (work) => (event) => {
      if (this.socket === socket) work(event);
    };
    socket.onmessage = mine((message) => this.take(message.data));
    socket.onclose = mine((closed) => this.closed(closed.reason));
  }

  /** Looks whether the engine is still there. */
  look() {
    if (this.over || this.socket === null) return;
    const now = performance.now();
    if (!this.ready) {
      if (now - this.begun > HANDSHAKE_MS) this.drop();
      return;
    }
    if (this.pinged === null) {
      if (now - this.heardPing < PING_MS) return;
      this.pinged = now;
      this.ping = this.id();
      this.send({ op: "Ping", request_id: this.ping });
    } else if (now - this.pinged > SILENT_MS && now - this.heard > SILENT_MS) this.drop();
  }

  id() {
    this.count += 1;
    return `${this.name}-${this.count}`;
  }

  send(command) {
    this.socket.send(JSON.stringify(command));
  }

  take(text) {
    this.heard = performance.now();
    if (this.ready && text.startsWith(BOARD)) {
      // Only the newest board of a ticker is ever looked at, so it is read when it is drawn.
      const head = text.slice(0, BOARD_HEAD);
      const ticker = BOARD_TICKER.exec(head)?.[1];
      if (ticker !== undefined && !head.includes('"request_id"')) {
        this.told.board(ticker, text);
        return;
      }
    }
    let event;
    try {
      event = JSON.parse(text);
    } catch {
      this.drop();
      return;
    }
    if (this.ready) this.hand(event);
    else this.greet(event).catch(() => this.drop());
  }

  /** The handshake. Commands leave after the engine has shown that it has the key. */
  async greet(event) {
    const { session } = this;
    const socket = this.socket;
    if (event.event === "Challenge") {
      this.serverNonce = event.server_nonce;
      this.clientNonce = hex(crypto.getRandomValues(new Uint8Array(32)));
      const proof = await proofOf(session.key, `client:${this.serverNonce}:${this.clientNonce}:${session.mode}`);
      this.expected = await proofOf(session.key, `server:${this.clientNonce}:${this.serverNonce}:${session.mode}`);
      if (this.socket !== socket) return;
      this.send({
        op: "Hello", ...SCHEMA, client_version: CLIENT_VERSION, mode: session.mode, session_id: session.session_id,
        client_nonce: this.clientNonce, proof,
      });
    } else if (event.event === "Ready") {
      if (this.expected === undefined || event.proof !== this.expected) {
        this.end();
        this.told.refused("proof");
        return;
      }
      this.expected = undefined;
      this.ready = true;
      this.tries = 0;
      this.heardPing = performance.now();
      this.scope = event.scope ?? session.scope;
      this.told.ready(event);
    } else if (event.event === "EngineError" || event.event === "Error") {
      this.end();
      if (event.code === "auth_failed") this.told.ended("auth_failed");
      else this.told.refused(event.code);
    }
  }

  /** Hands an event to who waits for it, and to the page. */
  hand(event) {
    if (event.event === "Pong" && event.request_id === this.ping) {
      this.pinged = null;
      this.heardPing = performance.now();
      return;
    }
    this.told.event(event);
    const request = event.request_id === undefined ? undefined : this.waiting.get(event.request_id);
    if (request === undefined) return;
    if (ANSWERS[request.op].includes(event.event)) {
      if (event.more === true && event.event === "OrderListUpdated") request.parts.push(event);
      else this.settle(request, () => request.resolve(request.parts.length === 0 ? event : joined(request.parts, event)));
    } else if (REFUSALS.has(event.event) && !isPart(request, event)) {
      this.settle(request, () => request.reject(new NoAnswer("refused", event)));
    } else if (request.op === "SubmitOrder" && (event.event === "OrderExpired" || event.event === "OrderCanceled")) {
      this.settle(request, () => request.reject(new NoAnswer("ended", event)));
    }
  }

  settle(request, work) {
    clearTimeout(request.timer);
    this.waiting.delete(request.id);
    work();
  }

  /** Whether the engine takes this command from this page. */
  may(op) {
    return this.ready && (this.scope !== "read_only" || READING.test(op));
  }

  /** Sends a command and gives its answer; throws `NoAnswer`. */
  ask(op, fields = {}, id = this.id()) {
    if (!this.ready) return Promise.reject(new NoAnswer("lost"));
    if (!this.may(op)) return Promise.reject(new NoAnswer("forbidden"));
    return new Promise((resolve, reject) => {
      const request = { op, id, resolve, reject, parts: [] };
      const silent = () => this.settle(request, () => reject(new NoAnswer("silent")));
      request.timer = setTimeout(silent, LONG.has(op) ? LONG_MS : ANSWER_MS);
      this.waiting.set(id, request);
      this.send({ op, request_id: id, ...fields });
    });
  }

  /** Sends a command that has no answer. */
  tell(op, fields = {}) {
    if (this.may(op)) this.send({ op, request_id: this.id(), ...fields });
  }

  /** Gives a connection up that is silent or broken. */
  drop() {
    const socket = this.socket;
    this.closed("");
    socket?.close();
  }

  closed(reason) {
    this.socket = null;
    this.ready = false;
    for (const request of [...this.waiting.values()]) this.settle(request, () => request.reject(new NoAnswer("lost")));
    if (this.over) return;
    if (reason === "auth_failed" || reason === "signed_out") {
      this.end();
      this.told.ended(reason);
      return;
    }
    this.told.lost(reason);
    const wait = BACKOFF_MS[Math.min(this.tries, BACKOFF_MS.length - 1)];
    this.tries += 1;
    setTimeout(() => {
      if (!this.over) this.connect();
    }, wait);
  }

  /** No connection any more. */
  end() {
    this.over = true;
    this.ready = false;
    clearInterval(this.looks);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }
}

/** A refusal of one of many orders ends no cancel of all. */
function isPart(request, event) {
  const names = [event.client_order_id, event.instrument_id];
  return request.op === "CancelAllOrders" && event.event === "OrderRejected" && names.some((name) => name != null);
}

/** A list that came in several parts. */
function joined(parts, last) {
  return { ...last, orders: [...parts, last].flatMap(({ orders }) => orders) };
}
