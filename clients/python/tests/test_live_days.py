"""Simulated days of strategies on paper, while the gateway, the engine and the disk fail: the real engine at the
simulated gateway of the local broker. A seed decides what a day brings; the name of a test tells it.

`KUMIKI_SOAK_LIVE_DAYS` is the number of days. The day of one seed: `-k 'faults[7]'`, with more days than that."""

import contextlib
import dataclasses
import datetime
import functools
import json
import os
import random
import shutil
import subprocess
import time

import pytest
from bad_disk import bad_disk
from conftest import program
from engine_process import EXECUTION, JAPAN, component, replayed
from local_world import SPEC, VENDOR, LocalWorld, venue_state
from plain_client import PATIENCE, Refused
from test_live_paper import DAY
from websockets.exceptions import ConnectionClosed

DAYS = int(os.environ.get("KUMIKI_SOAK_LIVE_DAYS", "4"))
TICKERS = ("7203", "9984")
#: In 1/10,000 yen, and in nanoseconds.
YEN, MINUTE = 10_000, 60 * 10**9
#: Morning and afternoon, in seconds of the day.
MORNING, LUNCH, AFTERNOON, CLOSE = 9 * 3600, 11 * 3600 + 1800, 12 * 3600 + 1800, 15 * 3600 + 1800
#: The longest time from a decision to the disk, unless the disk is slow (P112).
BEHIND = 1.0
#: Seconds in which the strategy has what clients were told; if it has not, the journal shows what is missing.
GIVEN_IN = 10
#: What becomes of a trade: the strategy gets it, may get it, or no frame tells it and the next one adds its shares.
GIVEN, MAYBE, UNTOLD = "given", "maybe", "untold"


@dataclasses.dataclass
class Traded:
    """A trade that the market made: price in 1/10,000 yen, shares, nanoseconds since 1970."""

    ticker: str
    price: int
    shares: int
    at: int
    fate: str

    @property
    def row(self):
        return self.price, self.shares, self.at


@dataclasses.dataclass
class Run:
    """A run on paper: what it was started with, where its events begin, and what was traded meanwhile."""

    folder: object
    config: dict
    since: int
    traded: list
    #: When the engine had told how many of them.
    told: list
    was_slow: bool = False

    @property
    def tickers(self):
        return [one.split(".")[0] for one in self.config.get("instrument_ids", [self.config["instrument_id"]])]

    def told_rows(self, client):
        """What clients were told of each ticker since the start: its trades as price, shares and time, and how many
        rows of gaps."""
        events = client.since(self.since)
        begin = next(at for at, event in enumerate(events) if event["event"] == "EngineStarted")
        found = {ticker: ([], []) for ticker in self.tickers}
        for event in events[begin:]:
            if event["event"] == "Trades" and event["ticker"] in found:
                for row in event["trades"]:
                    told = int(row["price"]) * YEN, int(row["qty"]), row["ts_ms"] * 10**6
                    found[event["ticker"]][row.get("after_gap", False)].append(told)
        return {ticker: (told, len(gaps)) for ticker, (told, gaps) in found.items()}


class Day(LocalWorld):
    """A gateway, an engine that runs strategies, and a client that hears everything."""

    def __init__(self, folder, seed, disk=True):
        self.random = random.Random(seed)
        self.script = []
        self.sign = folder / "the-disk-is-slow"
        slow = bad_disk(self.sign, folder / "the-disk-is-full") if disk else {}
        super().__init__(folder, form=self.random.choice([SPEC, VENDOR]), gateway=("--first-day", DAY),
                         environment=slow)
        self.has_slow_disk = slow != {}
        self.date = datetime.date.fromisoformat(DAY)
        self.clock = MORNING
        self.prices = dict.fromkeys(TICKERS, 2850)
        self.plain = self.run = None

    def close(self):
        self.leave()
        super().close()

    def leave(self):
        """Ends the connection of the client."""
        if self.plain:
            self.plain.socket.close()
        self.plain = None

    def note(self, what):
        """A line for whoever looks for an error."""
        self.script.append(f"{self.date} {datetime.timedelta(seconds=self.clock)} {what}")

    # --- The market.

    def trades(self, fate, count=None, tickers=TICKERS):
        """Commands for trades, and what they become."""
        commands = []
        for _ in range(count or self.random.randint(1, 8)):
            ticker = self.random.choice(tickers)
            self.clock += self.random.choice([1, 1, 1, 2, 7, 40])
            if LUNCH < self.clock < AFTERNOON:
                self.clock = AFTERNOON
            assert self.clock <= CLOSE, "the day is long enough"
            price = self.prices[ticker] = min(max(self.prices[ticker] + self.random.randint(-3, 3), 2700), 2990)
            shares = self.random.choice([100, 100, 200, 500, 1200, 7])
            hours, seconds = divmod(self.clock, 3600)
            clock = datetime.time(hours, seconds // 60, seconds % 60)
            at = int(datetime.datetime.combine(self.date, clock, JAPAN).timestamp()) * 10**9
            commands.append({"do": "trade", "symbol": ticker, "price": str(price), "quantity": shares,
                             "time": f"{clock:%H:%M:%S}"})
            if self.run:
                self.run.traded.append(Traded(ticker, price * YEN, shares, at, fate))
        return commands

    def trade(self, fate=GIVEN, count=None):
        self.gateway.control(*self.trades(fate, count))

    def settle(self):
        """Waits until the engine has told every trade that it must tell."""
        for ticker in TICKERS:
            at = max((one.at for one in self.run.traded if one.ticker == ticker and one.fate == GIVEN), default=0)
            if at:
                self.plain.wait("Trades", since=self.run.since, where=lambda event, ticker=ticker, at=at: any(
                    event["ticker"] == ticker and row["ts_ms"] * 10**6 >= at for row in event["trades"]))
        self.run.told.append((time.monotonic(), len(self.run.traded)))

    def recover(self):
        """Waits until the engine streams, and shows it a frame of each symbol, which may be no trade."""
        self.until(lambda: venue_state(self.plain)["push"] == "Streaming", "it streams")
        self.until(lambda: set(TICKERS) <= set(self.registered()), "the symbols are registered")
        for ticker in TICKERS:
            self.until(lambda ticker=ticker: self.shows(ticker), f"frames of {ticker} come")

    def shows(self, ticker):
        """Whether a trade's frame comes through."""
        since = len(self.plain.events)
        self.gateway.control(*self.trades(MAYBE, 1, [ticker]))
        price, ends = str(self.prices[ticker]), time.monotonic() + 0.3
        while time.monotonic() < ends:
            self.plain.take_all()
            if any(event["ticker"] == ticker and event["last_price"] == price
                   for event in self.plain.since(since, "DepthSnapshot")):
                return True
            time.sleep(0.01)
        return False

    # --- The engine.

    def log_in(self):
        """Connects, logs in and watches the market."""
        self.plain = self.client()
        self.plain.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        for ticker in TICKERS:
            self.plain.ask("Subscribe", "Subscribed", venue="local_broker", ticker=ticker)
        self.recover()

    def begin(self, **how):
        """Starts a strategy: one by the seed, but for what is said."""
        strategy, parameters = self.random.choice([
            ("trades-at-random", {"seed": self.random.randint(1, 99), "every": self.random.randint(1, 6)}),
            ("trades-at-random", {"seed": self.random.randint(1, 99), "every": self.random.randint(1, 6)}),
            ("sma-cross", {"fast": 2, "slow": 4}),
            ("orders-every-tick", {}),
        ])
        ids = [f"{ticker}.TSE" for ticker in TICKERS][:self.random.randint(1, len(TICKERS))]
        latency = self.random.choice([0, 0, 1_500_000_000, 30 * 10**9])
        config = {
            "instrument_id": ids[0], "strategy_file": component(strategy), "strategy_init_kwargs": parameters,
            "max_qty": self.random.choice([300, 1_000]), "max_notional_jpy": 10_000_000, "paper": True,
            "initial_cash": "10000000", "granularity": self.random.choice(["Trade", "Trade", "Trade", "Minute"]),
            "execution": self.random.choice([None, {**EXECUTION, "latency_ns": latency}]),
        }
        if len(ids) > 1:
            config["instrument_ids"] = ids
        config.update(how)
        self.note(f"run {config}")
        since = len(self.plain.events)
        started = self.plain.ask(
            "StartEngine", "EngineStarted", engine="Live", strategy_id="live-strategy", config=config)
        folder = self.engine.cache / "runs" / started["run_id"]
        assert manifest(folder)["partial"] is True
        self.run = Run(folder, config, since, [], [], self.sign.exists())

    def stop(self):
        """Ends the run, and looks at what it left."""
        self.settle()
        # A stop takes away what waits for the strategy (P86).
        ends = time.monotonic() + GIVEN_IN
        while not self.has_given() and time.monotonic() < ends:
            time.sleep(0.03)
        self.note("stop")
        stopped = self.plain.ask("StopEngine", "EngineStopped", strategy_id="live-strategy")
        assert (stopped["status"], stopped.get("fault")) == ("stopped", None), stopped
        run, self.run = self.run, None
        assert manifest(run.folder)["partial"] is False
        journal = Journal(run.folder)
        assert not journal.torn and stopped["rows_done"] == len(journal.rows)
        check_market(run, journal)
        check_told(run, journal, self.plain, is_whole=True)
        again(run.folder, self.engine.cache)

    def has_given(self):
        """Whether the strategy has got what clients were told."""
        told = self.run.told_rows(self.plain)
        if self.run.config["granularity"] == "Minute":
            # The last one grows until the run ends.
            rows = sum(max(len(bars_of(rows)) - 1, 0) for rows, _ in told.values())
        else:
            rows = sum(len(rows) for rows, _ in told.values())
        return self.plain.ask("GetSession", "Session")["rows_done"] >= rows

    def kill_engine(self):
        """P112: the engine ends at once, and nothing but a tail is lost. Another one begins another run."""
        if self.random.random() < 0.5:
            self.settle()
            time.sleep(BEHIND)
        self.trade(MAYBE)
        self.note("kill the engine")
        killed_at = time.monotonic()
        self.engine.kill()
        run, self.run = self.run, None
        with contextlib.suppress(ConnectionClosed):
            while True:
                self.plain.next()
        safe = max((count for at, count in run.told if at <= killed_at - BEHIND), default=0)
        for one in run.traded[0 if run.was_slow else safe:]:
            one.fate = MAYBE if one.fate == GIVEN else one.fate
        assert manifest(run.folder)["partial"] is True
        journal = Journal(run.folder)
        check_market(run, journal)
        check_told(run, journal, self.plain, is_whole=False)
        again(run.folder, self.engine.cache, journal.torn)
        self.cut(run.folder)
        self.leave()
        self.start_again()
        self.log_in()
        self.begin()

    def cut(self, folder):
        """A tail that is torn anywhere leaves a journal that gives the same."""
        cut = self.folder / f"cut-{folder.name}"
        shutil.copytree(folder, cut)
        last = Journal(cut).files[-1]
        data = last.read_bytes()
        line = len(data) - (data[:-1].rfind(b"\n") + 1)
        gone = self.random.randint(1, line)
        last.write_bytes(data[:-gone])
        if Journal(cut).files:
            again(cut, self.engine.cache, torn=gone < line)

    # --- What goes wrong.

    def drop(self):
        """The push breaks, with trades on their way."""
        self.gateway.control(*self.trades(MAYBE), {"do": "drop-push"}, *self.trades(MAYBE))
        self.recover()

    def half_open(self):
        """The push says nothing any more, then it breaks."""
        self.gateway.control({"do": "half-open"}, *self.trades(MAYBE))
        time.sleep(self.random.random() / 5)
        self.gateway.control(*self.trades(MAYBE), {"do": "drop-push"})
        self.recover()

    def reset(self):
        """Told volumes begin again, of one symbol or of all."""
        symbol = self.random.choice([{}, {"symbol": "7203"}, {"symbol": "9984"}])
        self.gateway.control(*self.trades(GIVEN), {"do": "volume-reset", **symbol}, *self.trades(GIVEN))

    def silence(self):
        """Nothing is pushed for a while, on a connection that stands."""
        self.gateway.control({"do": "fault", "name": "silent-push"}, *self.trades(UNTOLD))
        time.sleep(self.random.random() / 3)
        self.gateway.control(*self.trades(UNTOLD), {"do": "clear-faults", "name": "silent-push"},
                             *self.trades(GIVEN))

    def lose_frames(self):
        """Some frames are lost on the way."""
        count = self.random.randint(1, 5)
        self.gateway.control({"do": "fault", "name": "lost-frames", "times": count}, *self.trades(UNTOLD, count),
                             *self.trades(GIVEN))

    def noise(self):
        """Frames that tell nothing, or tell it twice."""
        names = self.random.sample(["duplicate-frames", "wrong-utf8", "binary-frames", "malformed-frames",
                                    "giant-frames", "unregistered-frames", "foreign-exchange-frames",
                                    "crossed-book", "one-sided-book", "unordered-levels"], 4)
        self.gateway.control(*({"do": "fault", "name": name, "times": self.random.randint(1, 3)} for name in names),
                             *self.trades(GIVEN, 6))

    def restart(self):
        """The gateway's application restarts."""
        self.gateway.control(*self.trades(MAYBE), {"do": "restart", "down_ms": self.random.choice([1, 100, 400])},
                             *self.trades(MAYBE))
        self.until(self.gateway.answers, "the gateway is back")
        self.recover()

    def kill_gateway(self):
        """The gateway is gone, and another one comes that knows nothing."""
        self.trade(MAYBE)
        self.gateway.kill()
        time.sleep(self.random.random() / 4)
        self.gateway_again()
        if f"{self.date}" != DAY:
            self.gateway.control({"do": "day", "date": f"{self.date}"})
        self.recover()

    def forced_logout(self):
        """Everybody is logged out, until somebody logs in."""
        self.gateway.control({"do": "log-out"}, *self.trades(MAYBE))
        with pytest.raises(Refused):
            self.plain.ask("GetBuyingPower", "BuyingPowerUpdated", venue="local_broker")
        self.gateway.control(*self.trades(MAYBE), {"do": "login-open"}, *self.trades(MAYBE))
        self.plain.ask("RequestVenueLogin", "VenueReady", venue="local_broker")
        self.recover()

    def end_token(self):
        """The token is dead, and no trade is lost by it."""
        self.gateway.control(*self.trades(GIVEN), {"do": "end-token"}, *self.trades(GIVEN))
        self.plain.ask("GetBuyingPower", "BuyingPowerUpdated", venue="local_broker")
        self.trade()

    def next_day(self):
        """The next business day, which begins with other volumes."""
        self.gateway.control({"do": "day"}, {"do": "volume-reset"})
        self.date = datetime.date.fromisoformat(self.gateway.view()["day"])
        self.clock = MORNING

    def disk(self):
        """The disk becomes slow, or fast again."""
        if not self.has_slow_disk:
            return
        if self.sign.exists():
            self.sign.unlink()
        else:
            self.sign.touch()
            self.run.was_slow = True

    def other_run(self):
        """The run ends, and another one begins."""
        self.stop()
        self.begin()

    FAULTS = (drop, half_open, reset, silence, lose_frames, noise, restart, kill_gateway, forced_logout, end_token,
              next_day, disk, other_run, kill_engine)
    #: With these, frames on their way may be lost.
    LOSING = (drop, half_open, restart, kill_gateway, forced_logout, kill_engine)


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


class Journal:
    """The rows and notes of a journal. Checksums are the program's business."""

    def __init__(self, folder):
        self.torn, self.rows, self.notes, self.days_ended = False, [], [], 0
        parts = {}
        for path in folder.glob("journal-*"):
            records = self.read(path)
            # The last file may have come to nothing.
            if records:
                parts[records[0]["header"]["part"]] = path, records
        self.files = [parts[part][0] for part in sorted(parts)]
        for part in sorted(parts):
            for record in parts[part][1]:
                if "row" in record:
                    self.rows.append(record["row"])
                elif record.get("host") == "end_of_day":
                    self.days_ended += 1
                elif isinstance(record.get("host"), dict) and "note" in record["host"]:
                    self.notes.append(record["host"]["note"])

    def read(self, path):
        *lines, tail = path.read_bytes().split(b"\n")
        self.torn |= tail != b""
        return [json.loads(line.partition(b" ")[2]) for line in lines]

    def of(self, instrument):
        """The rows of an instrument by its place."""
        rows = [next(iter(row.values())) for row in self.rows]
        return [row for row in rows if row["instrument"] == instrument]

    def noted(self, kind, ticker):
        return sum(note.startswith(f"{kind}: {ticker}.TSE ") for note in self.notes)


def check_market(run, journal):
    """No trade is invented, and what must be given is given: each row is a trade of the market, in its order. A frame
    after lost ones tells their shares as its own."""
    times = [next(iter(row.values()))["ts_event"] for row in journal.rows]
    assert times == sorted(times), "times never fall"
    assert journal.days_ended == 0, "no clock has come to the end of a day (P119)"
    for place, ticker in enumerate(run.tickers):
        traded = [one for one in run.traded if one.ticker == ticker]
        if run.config["granularity"] == "Minute":
            check_minutes(traded, journal.of(place))
            continue
        at = 0
        for row in journal.of(place):
            found = (row["price"], row["quantity"], row["ts_event"])
            skipped = at
            while at < len(traded) and found not in tellings(traded, at, skipped):
                at += 1
            assert at < len(traded), f"{ticker}: the market did not make {found}"
            left_out = [one for one in traded[skipped:at] if one.fate == GIVEN]
            assert not left_out, f"{ticker}: {left_out} came before {found}"
            at += 1
        left_out = [one for one in traded[at:] if one.fate == GIVEN]
        assert not left_out, f"{ticker}: {left_out} did not come"


def tellings(traded, at, first):
    """What a frame may tell of a trade: itself, or with all directly before it that no frame told."""
    one = traded[at]
    shares, place = one.shares, at - 1
    while place >= first and traded[place].fate == UNTOLD:
        shares += traded[place].shares
        place -= 1
    return one.row, (one.price, shares, one.at)


def check_minutes(traded, bars):
    """Each bar is of trades of a minute, in their order. One that came after those of other instruments has their time
    (P117)."""
    minutes = {}
    for one in traded:
        minutes.setdefault(one.at // MINUTE + 1, set()).add(one.price)
    ends = iter(minutes)
    for bar in bars:
        prices = {bar[name] for name in ("open", "high", "low", "close")}
        assert any(prices <= minutes[end] for end in ends if end * MINUTE <= bar["ts_event"]), bar


def check_told(run, journal, client, is_whole):
    """P88: the strategy gets what clients are told. After a kill one of them may know less."""
    errors = {event["code"] for event in client.since(run.since, "EngineError")}
    assert errors <= {"market_data_lost"}, errors
    for place, (ticker, (told, gaps)) in enumerate(run.told_rows(client).items()):
        given = journal.of(place)
        if run.config["granularity"] == "Trade":
            given = [(row["price"], row["quantity"], row["ts_event"]) for row in given]
        elif journal.noted("LATE", ticker):
            continue
        else:
            given = [tuple(bar[name] for name in ("open", "high", "low", "close", "volume")) for bar in given]
            # The last minute grows until the run ends.
            told = bars_of(told)[:-1]
            given = given[:len(told)]
        least = min(len(told), len(given))
        assert told[:least] == given[:least], ticker
        if is_whole:
            assert len(told) == len(given) and gaps == journal.noted("GAP", ticker), (ticker, gaps, journal.notes)


def bars_of(told):
    """The minutes of trades: open, high, low, close and volume."""
    minutes = {}
    for price, shares, at in told:
        minutes.setdefault(at // MINUTE, []).append((price, shares))
    return [(rows[0][0], max(rows)[0], min(rows)[0], rows[-1][0], sum(shares for _, shares in rows))
            for rows in minutes.values()]


@functools.cache
def compares():
    """Whether the program compares paper with a replay."""
    asked = [program(), "replay", "compare-live", "--help"]
    return subprocess.run(asked, capture_output=True, timeout=PATIENCE).returncode == 0


def again(folder, cache, torn=False):
    """P113, P120: the journal gives the same again, and a replay over its rows too."""
    made = replayed("journal", folder, cache)
    assert (made["identical"], made["first_difference"], made["torn"]) == (True, None, torn), made
    if compares():
        replayed("compare-live", folder, cache)


def test_p90_p119_a_later_day_begins_with_a_whole_minute(tmp_path):
    """The clock that has ended the day before ends neither the later day nor its first minute."""
    with Day(tmp_path, 1, disk=False) as day:
        day.log_in()
        day.begin(granularity="Minute")
        day.recover()
        day.trade()
        day.next_day()
        day.trade(count=1)
        day.settle()
        # The feed hears the clock a few times a second.
        time.sleep(1)
        day.trade()
        day.stop()


@pytest.mark.parametrize("seed", range(DAYS))
def test_p112_p113_p120_a_day_with_faults(tmp_path, seed):
    day = Day(tmp_path, seed)
    try:
        day.log_in()
        day.begin()
        # What counts from here is in frames after the start.
        day.recover()
        faults = [*Day.FAULTS, *day.random.sample(Day.FAULTS, 2)]
        day.random.shuffle(faults)
        for fault in faults:
            day.trade()
            if fault in Day.LOSING or day.random.random() < 0.5:
                day.settle()
            day.note(fault.__name__)
            fault(day)
        day.trade()
        day.stop()
    except BaseException:
        print(f"seed {seed}:", *day.script, sep="\n")
        print("what the engine said:", day.log()[-5000:])
        raise
    finally:
        day.close()
