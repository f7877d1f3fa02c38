"""Simulated days of a strategy with real orders, while the gateway, the broker, the disk and the engine fail: the real
engine at `kumiki sim market`. A seed decides what a day brings; the name of a test tells it.

After each step the broker has no order that the strategy did not send, none twice, and none beyond a limit. When a
fault is over the strategy holds what its orders filled at the broker. At the end of the day each journal gives the same
again.

`KUMIKI_SOAK_REAL_DAYS` is the number of days. The day of one seed: `-k 'faults[7]'`, with more days than that."""

import collections
import os
import random
import re
import time
from decimal import Decimal

import pytest
from bad_disk import bad_disk
from engine_process import ABORTED, replayed
from live_world import CANCEL, NEW, ROOT, SPEC, VENDOR
from market_world import BUY, CANCEL_ALL, HUNDRED, ID, LIMIT, LOW, NOTHING, SELL, SELL_TWICE, Real
from test_live_kill import POINTS
from websockets.exceptions import ConnectionClosed

DAYS = int(os.environ.get("KUMIKI_SOAK_REAL_DAYS", "1"))
INSTRUMENT = "7203.TSE"
#: Around a fill of a strategy's order.
FILL_POINTS = "fill_line_half fill_line_unsynced fill_line_synced fill_broadcast".split()
#: Points at which the engine dies in a day; all of them in some days.
POINTS_A_DAY = 12
#: The account's shares, which a person has bought, and how many of them a person sells.
ACCOUNT, BY_HAND = 300, 300


class Day(Real):
    """A market, an engine, and a strategy of which each fill is counted twice: here and there."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.script, self.begun = [], time.monotonic()
        self.slow, self.full = folder / "the-disk-is-slow", folder / "the-disk-is-full"
        self.disk = bad_disk(self.slow, self.full)
        super().__init__(folder, form=(SPEC, VENDOR)[seed % 2], environment=self.disk)
        self.limits = {"max_qty": self.random.choice([100, 200]), "max_position_qty": self.random.choice([300, 500]),
                       "max_notional_jpy": self.random.choice([350_000, 700_000]),
                       "max_open_orders": self.random.choice([3, 10]), "max_orders_per_minute": 1_000}
        #: Numbers of a person's orders, and of orders that filled on a full disk before a kill.
        self.people, self.unlogged = set(), set()
        #: How many orders prices told the strategy to send.
        self.told = 0
        self.note(f"{self.form} {self.limits}")

    def note(self, what):
        """A line for whoever looks for an error."""
        self.script.append(f"{time.monotonic() - self.begun:6.2f} {what}")

    # --- The strategy.

    def start_run(self):
        """Starts the strategy. What cannot be known a person decides, by what the broker has."""
        started = self.begin(**self.limits)
        if started["event"] == "EngineStarted":
            return
        self.note(f"not settled: {started['message']}")
        assert (started["code"], started["message"].split(":")[0]) == ("orders_unsettled", "UNKNOWN_ORDERS"), started
        for name in re.search(r"whether the broker has (.+?); look", started["message"])[1].split(", "):
            unknown = [order["number"] for order in self.unknown()]
            self.client.ask("SettleOrder", "OrderSettled", client_order_id=name, origin="strategy",
                            venue_order_id=unknown[0] if unknown else None)
        started = self.begin(**self.limits)
        assert started["event"] == "EngineStarted", started

    def come_back(self, **environment):
        """Another engine in the folders of one that has ended, and the strategy in it."""
        self.ready(**environment)
        self.boards()
        self.start_run()

    def act(self, price):
        """A trade that has the strategy send an order. Gives how that ends, and holds that there is one order, or none
        where it ended with a refusal."""
        before, since = len(self.own()), self.mark()
        self.told += 1
        self.trade(price)
        end = self.wait_for_end(since)
        self.note(f"{price}: {end['event']} {end.get('reason_text', '')}")
        sent = len(self.own()) - before
        assert sent == (end["event"] == "OrderAccepted"), (end, sent)
        self.check_limits()
        return end

    def wait_for_end(self, since):
        """Waits until it is known whether the broker has the strategy's newest order."""
        return self.client.wait("OrderAccepted", "OrderRejected", since=since, origin="strategy")

    def fill(self, price=NOTHING, **other):
        """A trade that fills orders and tells the strategy nothing."""
        self.gateway.trade(price, **other)
        self.check_limits()

    def has_room(self):
        """Whether no limit refuses another BUY."""
        return self.at_broker() + self.open_buys() + 100 <= self.limits["max_position_qty"]

    def buys_or_sells(self):
        """The price for an order that no limit refuses."""
        return BUY if self.has_room() and (self.at_broker() < 100 or self.random.random() < 0.6) else SELL

    def trades(self):
        """An order at the market and its fill."""
        self.act(self.buys_or_sells())
        self.fill()

    def limit(self):
        """A limit order that works, where one may; its number."""
        if not self.has_room():
            self.cancel_own()
            while not self.has_room():
                self.act(SELL)
                self.fill()
                self.settle()
        end = self.act(LIMIT)
        assert end["event"] == "OrderAccepted", end
        return end["venue_order_id"]

    def cancel_own(self):
        """The strategy cancels what works."""
        self.trade(CANCEL_ALL)
        self.until(lambda: not self.working(), "nothing works")

    # --- What the broker has.

    def open_buys(self):
        return sum(order["leaves"] for order in self.own() if order["content"]["side"] == "3")

    def check_limits(self):
        """P95, P96, P114, P123: of what the broker has nothing is beyond a limit; and no order is there that no price
        has told the strategy to send."""
        own = self.own()
        working = [order for order in own if order["leaves"]]
        buying = sum(order["leaves"] for order in working if order["content"]["side"] == "3")
        assert 0 <= self.at_broker() <= self.limits["max_position_qty"] - buying, own
        assert len(working) <= self.limits["max_open_orders"], working
        assert len(own) <= self.told
        for order in own:
            content = order["content"]
            assert content["quantity"] <= self.limits["max_qty"], order
            prices = [content["price"]] if content["price"] else [fill["price"] for fill in order["fills"]]
            for price in prices:
                assert Decimal(price) * content["quantity"] <= self.limits["max_notional_jpy"], order

    def settle(self):
        """Waits until the engine holds what the broker has filled (P100)."""
        self.until(lambda: self.positions().get((ID, INSTRUMENT), 0) == self.at_broker(), "all fills are counted")

    def recover(self):
        """Waits until the strategy gets trades again; the first frames may be none."""
        self.until(self.gateway.answers, "the gateway is there")
        self.until(self.streams, "boards stream")

        def comes():
            assert self.session()["state"] == "Running"
            seen = self.session()["rows_done"]
            self.fill()
            ends = time.monotonic() + 0.3
            while time.monotonic() < ends:
                if self.session()["rows_done"] > seen:
                    return True
            return False

        self.until(comes, "the strategy gets trades")

    # --- What goes wrong at the gateway.

    def drop_push(self):
        """The push breaks, with an order at work and trades on their way."""
        self.limit()
        self.gateway.control({"do": "drop-push"})
        self.fill(LOW)
        self.recover()

    def restart_gateway(self):
        """The gateway's application restarts."""
        self.act(self.buys_or_sells())
        self.gateway.control({"do": "restart", "down_ms": self.random.choice([1, 100, 400])})
        self.until(self.gateway.answers, "the gateway is back")
        self.recover()

    def log_out(self):
        """The gateway's forced logout."""
        self.gateway.control({"do": "log-out"})
        self.fill()
        self.gateway.control({"do": "login-open"})
        self.client.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        self.recover()

    # --- What goes wrong at the broker.

    def cut_stream(self):
        """The stream of notices breaks, and an order fills meanwhile."""
        number = self.limit()
        self.broker.control({"do": "disconnect-events", **self.random.choice([{}, {"errno": 2}])})
        self.fill(LOW)
        self.wait("OrderFilled", venue_order_id=number)

    def lose_answer(self):
        """The answer to an order is lost, or breaks off, or means nothing, or the order never came."""
        name = self.random.choice(["drop-answer", "half-answer", "garbage", "drop-before"])
        self.fault(name, request=NEW, times=1)
        self.note(name)
        self.trades()

    def late_answer(self):
        """The order fills before its answer comes."""
        price, since = self.buys_or_sells(), self.mark()
        self.fault("delay-answer", value=self.random.choice([300, 800]), request=NEW, times=1)
        self.told += 1
        before = len(self.own())
        self.trade(price)
        self.until(lambda: len(self.own()) > before, "the order is at the broker")
        self.fill()
        assert self.wait_for_end(since)["event"] == "OrderAccepted"
        assert len(self.own()) == before + 1

    def late_lists(self):
        """Lists are late, and an answer is lost."""
        self.fault("late-lists", value=600)
        self.lose_answer()
        self.settle()
        self.broker.control({"do": "clear-faults", "name": "late-lists"})

    def hold_notices(self):
        """Notices come late, in another order, or twice."""
        name = self.random.choice(["hold-notices", "reorder-notices"])
        self.fault("duplicate-notices", times=3)
        self.fault(name, **({"times": 2} if name == "reorder-notices" else {}))
        self.trades()
        self.trades()
        self.broker.control({"do": "release-notices"})

    def refuse_later(self):
        """The exchange refuses what the broker took."""
        self.fault("refuse-later", times=1)
        since = self.mark()
        self.act(self.buys_or_sells())
        self.wait("OrderRejected", since, origin="strategy")
        self.broker.control({"do": "clear-faults", "name": "refuse-later"})

    def fill_in_cancel(self):
        """All or a part fills while the order is being cancelled; what is left fills after it was cancelled."""
        if self.limits["max_qty"] >= 200 and self.limits["max_notional_jpy"] >= 700_000:
            self.cancel_own()
            while self.at_broker() < 200:
                self.act(BUY)
                self.fill()
                self.settle()
            number = self.act(SELL_TWICE)["venue_order_id"]
        else:
            number = self.limit()
        self.fault("hold-changes")
        asked = len(self.requests(CANCEL))
        # Too few shares for a fill.
        self.trade(CANCEL_ALL, quantity=50)
        self.until_seen(CANCEL, asked + 1)
        self.fill(LOW)
        self.broker.control({"do": "release-changes"})
        self.until(lambda: not self.working(), "nothing works")
        order, = (order for order in self.own() if order["number"] == number)
        if order["filled"] < order["content"]["quantity"]:
            self.wait("OrderCanceled", venue_order_id=number)
            self.broker.control({"do": "late-fill", "number": number, "price": LOW})
        self.check_limits()

    def freeze(self):
        """The session is over (P99): orders are refused until somebody logs in."""
        self.limit()
        price = self.buys_or_sells()
        self.broker.control({"do": "end-session"})
        self.fill(LOW)
        for _ in range(2):
            assert self.act(price)["reason_code"] == "SESSION_EXPIRED"
        self.log_in()

    def log_in(self):
        self.login()
        # A login may have cleared it.
        self.password()
        self.settle()

    def forget_password(self):
        """P97: nothing leaves without the second password."""
        self.client.send("ForgetSecondPassword")
        assert self.act(self.buys_or_sells())["reason_code"] == "SECOND_PASSWORD_REQUIRED"
        self.password()
        self.trades()

    def people_trade(self):
        """A person has an order of the same id, cancels everything, and sells own shares elsewhere."""
        name = f"O-{len(self.people) + 1}"
        self.limit()
        self.people.add(self.placed(name, price="2700"))
        done = self.cancel_all()
        assert done["event"] == "CancelAllResult", done
        self.until(lambda: not self.working(), "the strategy's are cancelled too")
        # No order of the strategy looks like it.
        self.sell_by_hand(BY_HAND)
        self.fill(quantity=BY_HAND)

    def flood(self):
        """A hundred orders at once: those within the limits leave."""
        before, since = len(self.own()), self.mark()
        self.told += 100
        self.trade(HUNDRED)
        self.until(lambda: self.session() and self.ends(since) >= 100, "each has an end")
        assert len(self.own()) - before == self.ends(since, "OrderAccepted")
        self.check_limits()
        self.fill(quantity=1_000)

    def ends(self, since, *names):
        return len(self.client.since(since, *names or ("OrderAccepted", "OrderRejected")))

    def sell_twice(self):
        """An order of 200 shares, which the strategy may not have."""
        since = self.mark()
        held_before = self.at_broker()
        end = self.act(SELL_TWICE)
        assert end["event"] == "OrderRejected" or held_before >= 200
        self.fill()
        assert not self.client.since(since, "EngineStopped")

    # --- What goes wrong here.

    def slow_disk(self):
        """The disk is slow, and maybe the engine is killed meanwhile."""
        self.slow.touch()
        self.trades()
        self.trades()
        if self.random.random() < 0.5:
            self.kill()
        self.slow.unlink()

    def full_disk(self):
        """P128: the run ends, and no order leaves; what was filled counts when there is room again."""
        if not self.disk:
            return
        number = self.limit()
        before, since = len(self.own()), self.mark()
        self.full.touch()
        self.fill(LOW)
        self.fill(BUY)
        stopped = self.wait("EngineStopped", since)
        assert stopped["status"] == "fault" and re.match("JOURNAL: |POSITION_FILE: ", stopped["fault"]["message"])
        assert len(self.own()) == before, "an order has left"
        if self.random.random() < 0.5:
            # No log says that its fill was told.
            self.unlogged.add(number)
            self.kill_engine()
            self.full.unlink()
            self.come_back()
        else:
            self.full.unlink()
            self.start_run()

    def stop_and_start(self):
        """A run ends as it should, and another one begins."""
        self.limit()
        self.end_run()
        self.start_run()

    def end_run(self):
        since = self.mark()
        stopped = self.stop()
        assert (stopped["status"], stopped.get("fault")) == ("stopped", None), stopped
        errors = [event for event in self.client.since(since, "EngineError") if event["code"] == "orders_working"]
        assert not self.working() and not errors, (self.working(), errors)
        self.settle()

    def kill(self):
        """kill -9 at some moment of an order, of a cancel or of a fill."""
        if self.random.random() < 0.5:
            self.limit()
            self.gateway.trade(self.random.choice([CANCEL_ALL, LOW]))
        elif self.random.random() < 0.5:
            self.act(self.buys_or_sells())
            self.gateway.trade(NOTHING)
        self.told += 1
        self.gateway.trade(self.buys_or_sells())
        time.sleep(self.random.random() / 30)
        self.kill_engine()
        if self.random.random() < 0.5:
            self.fill(LOW)
        self.come_back()

    def die_at(self, point):
        """The next engine dies at a point of an order's path, or of a fill's, maybe at its start already."""
        try:
            self.come_back(KUMIKI_KILL_AT=point)
            if self.random.random() < 0.3:
                self.fault(self.random.choice(["drop-answer", "delay-answer"]), value=200, request=NEW, times=1)
            # Some points are on the path of a BUY alone.
            for _ in range(3):
                self.act(BUY if self.has_room() else SELL)
                self.fill()
                self.trade(NOTHING)
        except (ConnectionClosed, AssertionError):
            if self.client.socket.close_code is None:
                raise
        self.client.to_the_end()
        assert self.engine.process.wait(30) == ABORTED, f"it did not die at {point}"
        self.check_limits()

    FAULTS = (drop_push, restart_gateway, log_out, cut_stream, lose_answer, late_answer, late_lists, hold_notices,
              refuse_later, fill_in_cancel, freeze, forget_password, people_trade, flood, sell_twice, slow_disk,
              full_disk, stop_and_start, kill)

    # --- What holds at the end.

    def check_day(self):
        """No order twice, no fill lost, none counted twice, and every journal gives the same again."""
        self.settle()
        self.check(alone=False)
        assert self.unknown() == []
        lines, own = self.lines(), self.own()
        submits = [line for line in lines if line["phase"] == "submit"]
        assert all((line.get("origin"), line.get("strategy_id")) in (("strategy", ID), (None, None)) for line in lines)
        ids = [line["client_order_id"] for line in submits if line.get("origin")]
        assert len(ids) == len(set(ids)), "an id that an order had before (P92)"
        assert len(self.requests(NEW)) <= len(submits), "no order is sent a second time"
        numbers = collections.defaultdict(set)
        for line in lines:
            if line["phase"] == "accepted":
                numbers[line.get("origin"), line["client_order_id"]].add(line["venue_order_id"])
        assert all(len(each) == 1 for each in numbers.values()), numbers
        of_strategy = [number for (origin, _), each in numbers.items() if origin for number in each]
        assert sorted(of_strategy) == sorted(order["number"] for order in own)
        self.check_fills(own, [line for line in lines if line["phase"] == "filled" and line.get("origin")])
        assert self.held() == ACCOUNT - BY_HAND + self.at_broker()
        for folder in sorted((self.engine.cache / "runs").iterdir()):
            made = replayed("journal", folder, self.engine.cache)
            assert (made["identical"], made["first_difference"]) == (True, None), (folder, made)

    def check_fills(self, own, written):
        """P101, P130: the log has the broker's fills, each once, and clients were told none twice."""
        of_broker = collections.Counter()
        for order in own:
            of_broker[order["number"]] += order["filled"]
        of_log = collections.Counter()
        for line in written:
            of_log[line["venue_order_id"]] += int(line["last_qty"])
        assert +of_log == +of_broker
        told = collections.Counter(
            (event["venue_order_id"], event["trade_id"]) for client in self.clients for event in client.events
            if event["event"] == "OrderFilled" and event.get("origin") == "strategy")
        assert not [fill for fill, count in told.items() if count > 1 and fill[0] not in self.unlogged]
        assert set(told) <= {(line["venue_order_id"], line["trade_id"]) for line in written}


def test_the_points_of_a_fill_are_those_of_the_program():
    source = (ROOT / "host" / "orders" / "src" / "kill.rs").read_text(encoding="utf-8")
    named = re.search(r"FILL_POINTS: \[&str; \d+\] =\s+\[(.*?)\];", source, re.DOTALL)
    assert re.findall(r'"(\w+)"', named[1]) == FILL_POINTS


@pytest.mark.parametrize("seed", range(DAYS))
def test_p91_to_p130_a_day_of_real_orders_with_faults(tmp_path, seed):
    with Day(tmp_path, seed) as day:
        try:
            day.come_back()
            faults = list(Day.FAULTS)
            day.random.shuffle(faults)
            for fault in faults:
                day.note(f"--- {fault.__name__}")
                fault(day)
                day.trades()
                day.settle()
            points = day.random.sample([*POINTS, *FILL_POINTS], POINTS_A_DAY)
            day.note("--- kill points")
            day.kill_engine()
            for point in points:
                day.note(point)
                day.die_at(point)
            day.come_back()
            day.trades()
            day.end_run()
            day.check_day()
        except BaseException:
            print(f"seed {seed}:", *day.script, sep="\n")
            print("what the engine said:", day.engine.stderr.read_text(encoding="utf-8", errors="replace")[-5000:])
            raise
