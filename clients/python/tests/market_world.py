"""`kumiki sim market`, an engine that has its boards and trades there, and a client of the engine: what tests of orders
that meet a moving market share. The market stands until trades are posted, unless it is told to walk.

    with MarketWorld(tmp_path) as world:
        world.ready()                        # the engine, its logins, the second password
        world.boards()                       # boards of 7203 stream
        world.placed("one", price="2840")    # a person's order, at the broker
        world.gateway.trade("2840")          # a trade: it fills the order, then it is on the board
        world.restart()                      # kill -9, and another engine in the same folders
"""

import subprocess

from conftest import program
from engine_process import component
from live_world import QUICK, SPEC, World, check_log
from local_world import PASSWORD as GATEWAY_PASSWORD
from local_world import QUICK as GATEWAY_QUICK
from local_world import GatewayControl, logged_out
from plain_client import PATIENCE
from web_broker import AUTH_ID, PASSWORD, PRIVATE_KEY, SECOND_PASSWORD, USER, BrokerControl, dialect, first_line

#: A market that stands at 2,850 yen of 7203 until trades are posted.
STANDS = ("--still",)
#: Prices whose last yen tells the test's strategy what to do (guests/test/acts-by-price).
BUY, SELL, LIMIT, CANCEL_ALL, SELL_TWICE, HUNDRED, PANIC, NOTHING = (
    "2841", "2842", "2843", "2844", "2845", "2846", "2847", "2840")
#: A price at which the strategy's limit of 50 yen lower fills, and that tells it nothing.
LOW = "2790"
#: The strategy's id.
ID = "mine"


class Market:
    """`kumiki sim market`. `gateway` and `broker` are the control endpoints of its two servers."""

    def __init__(self, folder, *arguments, form=SPEC, market=STANDS):
        folder.mkdir(parents=True)
        command = [program(), "sim", "market", "--gateway-port", "0", "--broker-port", "0", "--format", "json",
                   "--broker-dialect", form, "--user", USER, "--password", PASSWORD,
                   "--second-password", SECOND_PASSWORD, "--gateway-password", GATEWAY_PASSWORD,
                   "--until-stdin-closes", *market, *arguments]
        if form == "web-broker-v4r10":
            command += ["--auth-id", AUTH_ID, "--private-key", PRIVATE_KEY]
        self.stderr = folder / "market.err"
        with self.stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=folder)
        self.told = first_line(self.process)
        self.gateway, self.broker = GatewayControl(), BrokerControl()
        self.gateway.address = self.told["gateway"]["base_url"]
        self.broker.port, self.broker.url = self.told["broker"]["listening"], self.told["broker"]["base_url"]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class MarketWorld(World):
    """A market, an engine, and a client: as `live_world.World`, with boards. `engine` are arguments of the engine,
    `market` says how the market moves, `simulator` are other arguments of it."""

    def __init__(self, folder, *engine, form=SPEC, market=STANDS, simulator=(), environment=()):
        for name in (form, "local-broker-spec"):
            dialect(name)
        self.folder, self.form, self.secret = folder, form, SECOND_PASSWORD
        self.engine = self.client = None
        self.clients, self.engines = [], []
        self.market = Market(folder / "market", *simulator, form=form, market=market)
        self.gateway, self.broker = self.market.gateway, self.market.broker
        self.address = self.broker.url
        # Nobody is logged out now, whatever the time is.
        of_gateway = (*GATEWAY_QUICK, logged_out(720, 721), f"base_url={self.gateway.address}",
                      "dialect=local-broker-spec")
        settings = [word for setting in of_gateway for word in ("--local-broker", setting)]
        self.arguments = (*QUICK, *settings, *engine)
        self.environment = {"DEV_LOCALBROKER_API_PASSWORD": GATEWAY_PASSWORD, **dict(environment)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def restart(self):
        """Kills the engine as a crash does, and starts another one in its folders, which logs in again."""
        self.kill_engine()
        return self.ready()

    def boards(self, *tickers):
        """Logs in at the gateway, and waits until boards of the tickers stream."""
        tickers = tickers or ("7203",)
        self.client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        for ticker in tickers:
            self.client.ask("Subscribe", "Subscribed", venue="local_broker", ticker=ticker)

        self.until(lambda: self.streams(*tickers), "boards stream")

    def streams(self, *tickers):
        """Whether boards of the tickers come."""
        state = self.client.ask("GetVenueState", "VenueState", venue="local_broker")
        pushed = {entry["Symbol"] for entry in self.gateway.view()["registered"]}
        return state["push"] == "Streaming" and set(tickers or ("7203",)) <= pushed

    def run(self):
        """Lets the market walk, or go on with its files."""
        self.gateway.control({"do": "market", "run": True})

    def next_day(self, keep_session=True, **splits):
        """The next business day of both, overnight one share has become so many: `next_day(**{"7203": 2})`."""
        if not keep_session:
            self.broker.control({"do": "end-session"})
        self.gateway.control({"do": "day", "splits": splits})

    def sell_by_hand(self, quantity, symbol="7203", **other):
        """Somebody sells shares of the account elsewhere; gives the order's number."""
        order = {"do": "order", "issue": symbol, "side": "sell", "quantity": quantity, **other}
        return self.broker.control(order)["number"]

    def held(self, symbol="7203"):
        """Shares that the account holds."""
        return sum(row["quantity"] for row in self.broker.view()["holdings"] if row["issue"] == symbol)

    def lines(self):
        """The lines of the engine's log of orders."""
        return check_log(self.folder / "engine" / "config" / "web_broker_orders.jsonl")

    def received(self, name):
        """The orders of the broker that the engine's log has under a client_order_id. One at most is right."""
        numbers = {line["venue_order_id"] for line in self.lines()
                   if line["phase"] == "accepted" and line["client_order_id"] == name}
        return [order for order in self.broker.orders() if order["number"] in numbers]

    def unknown(self):
        """The orders that the broker got by a request and that stand under no id of the engine's log."""
        numbers = {line["venue_order_id"] for line in self.lines() if line["phase"] == "accepted"}
        return [order for order in self.broker.orders()
                if not order["foreign"] and order["number"] not in numbers]

    def close(self):
        for client in self.clients:
            client.socket.close()
        for engine in self.engines:
            engine.kill()
        self.market.kill()


class Real(MarketWorld):
    """A market, an engine, and a strategy with real orders. `people` are the numbers of a person's orders."""

    people = frozenset()

    def begin(self, strategy_id=ID, instrument="7203.TSE", **config):
        """Starts the strategy. Gives its start or its refusal."""
        config = {"instrument_id": instrument, "strategy_file": component("acts-by-price"), "max_qty": 1_000,
                  "max_notional_jpy": 10_000_000, **config}
        since = len(self.client.events)
        request_id = self.client.send("StartEngine", engine="Live", strategy_id=strategy_id, config=config)
        self.started = self.client.wait(
            "EngineStarted", "EngineError", "Error", "EngineBusy", since=since,
            where=lambda event: event.get("request_id") == request_id)
        if self.started["event"] == "EngineStarted":
            self.until(lambda: "7203" in {row["Symbol"] for row in self.gateway.view()["registered"]}, "registered")
            # The first frame of a session is no trade.
            self.gateway.trade(NOTHING)
            self.trade(NOTHING)
        return self.started

    def trade(self, *prices, **other):
        """Trades, each of which the strategy has seen before the next comes."""
        for price in prices:
            seen = self.session()["rows_done"]
            self.gateway.trade(price, **other)
            self.until(lambda seen=seen: self.session()["rows_done"] > seen, f"a trade at {price}")

    def session(self):
        return self.client.ask("GetSession", "Session")

    def wait(self, name, since=0, **fields):
        return self.client.wait(name, since=since, **fields)

    def stop(self, strategy_id=ID):
        since = len(self.client.events)
        self.client.send("StopEngine", strategy_id=strategy_id)
        return self.client.wait("EngineStopped", since=since)

    def positions(self):
        """What each strategy holds: shares by strategy and instrument."""
        told = self.client.ask("GetStrategyPositions", "StrategyPositions")["positions"]
        return {(row["strategy_id"], row["instrument_id"]): int(row["quantity"]) for row in told}

    def filled(self, side, since=0):
        """Waits for the whole fill of one of the strategy's orders."""
        return self.client.wait("OrderFilled", since=since, origin="strategy", order_side=side,
                                where=lambda event: event["leaves_qty"] == "0")

    def bought(self):
        """Has the strategy buy 100 shares, and waits until it holds them."""
        since = self.mark()
        self.trade(BUY)
        self.wait("OrderAccepted", since, origin="strategy")
        self.trade(NOTHING)
        return self.filled("BUY", since)

    def mark(self):
        return len(self.client.events)

    def own(self):
        """The strategy's orders at the broker."""
        return [order for order in self.broker.orders()
                if not order["foreign"] and order["number"] not in self.people]

    def working(self):
        """Those of them that work."""
        return [order for order in self.own() if order["leaves"]]

    def at_broker(self):
        """The shares that the strategy's orders have made there."""
        return sum(order["filled"] if order["content"]["side"] == "3" else -order["filled"] for order in self.own())

    def log_of(self, run_id):
        return (self.engine.cache / "runs" / run_id / "log.csv").read_text(encoding="utf-8")


def end_market(market):
    """Ends a market as the program that holds it does; gives its exit code."""
    market.process.stdin.close()
    code = market.process.wait(PATIENCE)
    market.process.stdout.close()
    return code
