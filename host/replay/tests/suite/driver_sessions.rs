//! Seeded sessions: a strategy and clients over several instruments, trades, minutes or days. What a
//! paced run did is made again by its script, in any window.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::paced::{TestClock, Witness};
use crate::common::{Market, Script, instrument, limit, lives, market, options, stop};
use domain::market::BarGranularity;
use domain::strategy::Action;
use domain::{
    InstrumentIx, OrderCommand, OrderModify, OrderRequest, OrderSide, OrderStatus, Origin,
    Quantity, Random, TimeInForce,
};
use marketdata::make_bars;
use replay::driver::{Paced, PositionKey, Recorded, Scripted, Watched};
use replay::{MarketDay, Multiplier, ReplayOptions, RunCommand, RunPosition, TradingDay};
use results::{RunResult, RunStatus};

/// Runs of the seeds below in one test; the soak takes them all.
const SESSIONS_ENV: &str = "KUMIKI_SOAK_SESSIONS";
const SESSIONS: u64 = 24;

/// Where in a run a client's command lies in the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before the row after so many.
    Row(u64),
    /// At the end of a day, counted from 1.
    DayEnd(u64),
}

impl When {
    fn is(self, at: RunPosition) -> bool {
        match self {
            Self::Row(rows_done) => at.next_row.is_some() && at.rows_done == rows_done,
            Self::DayEnd(days_done) => at.next_row.is_none() && at.days_done == days_done,
        }
    }
}

/// Somebody who sends commands: the ids that only it uses, and those that only the other one uses.
#[derive(Clone, Copy)]
struct Sender {
    own: char,
    other: char,
    instruments: u64,
    /// Whether it ever cancels all.
    cancels_all: bool,
}

impl Sender {
    fn order(self, random: &mut Random, id: &str) -> OrderRequest {
        let side = if random.below(2) == 0 { OrderSide::Buy } else { OrderSide::Sell };
        let lots = 100 * (1 + random.below(4));
        let price = (993 + random.below(15)).to_string();
        let action = match random.below(8) {
            0 | 1 => market(id, side, lots),
            2 => stop(id, side, lots, &price),
            3 => lives(TimeInForce::AtTheClose, limit(id, side, lots, &price)),
            4 => lives(TimeInForce::AtTheOpen, market(id, side, lots)),
            _ => limit(id, side, lots, &price),
        };
        match action {
            Action::Order(OrderCommand::Submit(request)) => {
                let instrument = InstrumentIx(random.below(self.instruments) as u16);
                OrderRequest { instrument, ..request }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Every other id is used by the strategy and by clients alike.
    fn id(self, number: u64) -> String {
        let letter = if number.is_multiple_of(2) { 'O' } else { self.own };
        format!("{letter}-{number}")
    }

    fn command(self, random: &mut Random, number: u64) -> OrderCommand {
        let earlier = random.below(number + 1);
        let client_order_id = match random.below(4) {
            0 => format!("{}-{}", self.other, earlier | 1),
            _ => self.id(earlier),
        };
        match random.below(10) {
            0 | 1 => OrderCommand::Cancel { client_order_id: client_order_id.into() },
            2 if self.cancels_all => OrderCommand::CancelAll {
                instrument: (random.below(2) == 0)
                    .then(|| InstrumentIx(random.below(self.instruments) as u16)),
                side: None,
            },
            3 => OrderCommand::Modify {
                client_order_id: client_order_id.into(),
                change: OrderModify {
                    quantity: Some(Quantity::new(100 * (1 + random.below(6)))),
                    ..OrderModify::default()
                },
            },
            _ => OrderCommand::Submit(self.order(random, &self.id(number))),
        }
    }
}

/// A market, a strategy and clients that are drawn from a seed.
struct Session {
    seed: u64,
    /// The trades of each day, by instrument.
    days: Vec<Vec<Market>>,
    options: ReplayOptions,
    /// Bars in place of trades.
    granularity: Option<BarGranularity>,
    cancels_all: bool,
}

impl Session {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(&[seed, 1]);
        let granularity =
            [None, Some(BarGranularity::Minute), Some(BarGranularity::Day)][seed as usize % 3];
        let instruments = 1 + random.below(3);
        let is_daily = granularity == Some(BarGranularity::Day);
        let dates = if is_daily { 6..26 } else { 6..9 };
        let trades_max = if is_daily { 5 } else { 400 / instruments };
        let days = dates.map(|date| {
            let of_instrument = |_| {
                let (mut trades, mut second) = (Market::default(), 0.0);
                for _ in 0..random.below(trades_max) {
                    second += [0.0, 0.001, 0.02, 0.4, 3.0, 50.0][random.below(6) as usize];
                    let price = (995 + random.below(11)).to_string();
                    trades = trades.trade(date, second, &price, (1 + random.below(8)) * 100);
                }
                trades
            };
            (0..instruments).map(of_instrument).collect()
        });
        let days = days.collect();
        let mut options = options();
        let names = ["7203.TSE", "9984.TSE", "6758.TSE"];
        options.instruments =
            names[..instruments as usize].iter().map(|id| instrument(id)).collect();
        options.model.latency_ns = [0, 0, 3_000_000, 700_000_000][random.below(4) as usize];
        options.model.participation_percent = [100, 20][random.below(2) as usize];
        options.model.queue_ahead = [None, Some(0), Some(500)][random.below(3) as usize];
        Self { seed, days, options, granularity, cancels_all: random.below(2) == 0 }
    }

    fn days(&self) -> Vec<MarketDay<'_>> {
        let day = |markets: &'_ Vec<Market>| self.granularity.map(|of| bars(of, markets));
        let trades = |markets| MarketDay::Trades(parts(markets));
        self.days.iter().map(|markets| day(markets).unwrap_or_else(|| trades(markets))).collect()
    }

    fn rows(&self) -> u64 {
        self.days().iter().map(|day| day.len() as u64).sum()
    }

    fn sender(&self, own: char, other: char) -> Sender {
        let instruments = self.options.instruments.len() as u64;
        Sender { own, other, instruments, cancels_all: self.cancels_all }
    }

    /// What the strategy does after which row.
    fn actions(&self) -> Vec<(u64, OrderCommand)> {
        let mut random = Random::new(&[self.seed, 2]);
        let sender = self.sender('S', 'C');
        let rows = self.rows();
        let row = |random: &mut Random| 1 + random.below(rows.max(1));
        (0..60).map(|number| (row(&mut random), sender.command(&mut random, number))).collect()
    }

    fn strategy(&self) -> Script {
        let actions = self.actions().into_iter();
        actions.fold(Script::default(), |script, (row, command)| {
            script.after(row, Action::Order(command))
        })
    }

    fn client(random: &mut Random, sender: Sender, number: u64) -> RunCommand {
        let speed = Multiplier::from_thousandths(500 + random.below(20_000)).unwrap();
        match random.below(12) {
            0 => RunCommand::SetSpeed(speed),
            1 => RunCommand::ReportBuyingPower,
            _ => RunCommand::Order(sender.command(random, number)),
        }
    }

    /// What clients do at times of the wall clock, in the middle of waits; the earliest last.
    fn in_waits(&self) -> Vec<(Duration, RunCommand)> {
        let (mut random, sender) = (Random::new(&[self.seed, 3]), self.sender('C', 'S'));
        let mut commands: Vec<(Duration, RunCommand)> = (0..60)
            .map(|number| {
                let time = Duration::from_micros(random.below(9_000_000));
                (time, Self::client(&mut random, sender, number))
            })
            .collect();
        if random.below(5) == 0 {
            commands.push((Duration::from_micros(random.below(20_000_000)), RunCommand::Stop));
        }
        commands.sort_by_key(|(time, _)| Reverse(*time));
        commands
    }

    /// What lies in the channel at rows, with or without a wait before them, and at days' ends.
    fn in_channel(&self) -> Vec<(When, RunCommand)> {
        let (mut random, sender) = (Random::new(&[self.seed, 4]), self.sender('C', 'S'));
        let (rows, days) = (self.rows().max(1), self.days.len() as u64);
        let mut commands: Vec<(When, RunCommand)> = (60..120)
            .map(|number| {
                let when = match random.below(3) {
                    0 => When::DayEnd(1 + random.below(days)),
                    _ => When::Row(random.below(rows)),
                };
                (when, Self::client(&mut random, sender, number))
            })
            .collect();
        if random.below(8) == 0 {
            commands.push((When::DayEnd(1 + random.below(days)), RunCommand::Stop));
        }
        commands
    }

    /// The run at the wall clock's pace.
    fn paced(&self) -> Live {
        let mut clock = TestClock { commands: self.in_waits(), ..TestClock::default() };
        let (sender, receiver) = channel();
        let mut in_channel = self.in_channel();
        let (mut row_before, mut at_one_instant) = (None, 0);
        let watch = |at: RunPosition| {
            in_channel.retain(|(when, command)| {
                let is_now = when.is(at);
                if is_now {
                    sender.send(command.clone()).unwrap();
                    at_one_instant += u32::from(at.next_row.is_some() && at.next_row == row_before);
                }
                !is_now
            });
            row_before = at.next_row;
            None
        };
        let paced = Paced::new("3".parse().unwrap(), receiver, &mut clock);
        let mut driver = Recorded::new(Watched::new(paced, watch));
        let (mut strategy, mut witness) = (self.strategy(), Witness::default());
        let result = witness.run(self.days(), &mut strategy, &self.options, &mut driver);
        let commands = driver.into_commands();
        Live { result, witness, told: strategy.told, commands, at_one_instant }
    }
}

/// One day of several instruments.
pub(crate) fn parts(markets: &[Market]) -> Vec<TradingDay<'_>> {
    markets.iter().map(part).collect()
}

fn part(Market { ts, price, quantity }: &Market) -> TradingDay<'_> {
    TradingDay::split(ts, price, quantity).next().unwrap_or_else(TradingDay::empty)
}

fn bars(granularity: BarGranularity, markets: &[Market]) -> MarketDay<'static> {
    let mut made = Vec::new();
    for (index, Market { ts, price, quantity }) in markets.iter().enumerate() {
        make_bars(granularity, InstrumentIx(index as u16), ts, price, quantity, &mut made);
    }
    MarketDay::bars(made.into_iter().map(|made| made.bar).collect())
}

/// A session that was run, and what clients did in it.
struct Live {
    result: RunResult,
    witness: Witness,
    told: Vec<String>,
    commands: Vec<(PositionKey, RunCommand)>,
    /// Commands that came between two rows of the same instant, where nothing waits.
    at_one_instant: u32,
}

impl Live {
    /// The same run out of its script.
    fn assert_again(&self, session: &Session, window: u32) {
        let options = ReplayOptions { window, ..session.options.clone() };
        let (mut strategy, mut witness) = (session.strategy(), Witness::default());
        let mut driver = Scripted::new(self.commands.clone());
        let again = witness.run(session.days(), &mut strategy, &options, &mut driver);
        let (live, what) = (&self.result, format!("seed {}, window {window}", session.seed));
        assert_eq!(live.totals.digest, again.totals.digest, "{what}");
        assert_eq!(live.totals.status, again.totals.status, "{what}");
        assert_eq!(live.totals.trades_seen, again.totals.trades_seen, "{what}");
        assert_eq!(live.fills, again.fills, "{what}");
        assert_eq!(live.order_events, again.order_events, "{what}");
        assert_eq!(live.equity, again.equity, "{what}");
        assert_eq!(self.told, strategy.told, "{what}");
        assert_eq!(self.witness.stream, witness.stream, "{what}");
        assert_eq!(self.witness.market, witness.market, "{what}");
        assert_eq!(self.witness.buying_power, witness.buying_power, "{what}");
    }

    /// An order is cancelled only by the one who sent it.
    fn assert_own_cancels(&self, session: &Session) {
        let client = self.commands.iter().filter_map(|(_, command)| match command {
            RunCommand::Order(command) => Some(command.clone()),
            _ => None,
        });
        let strategy = session.actions().into_iter().map(|(_, command)| command);
        let cancels = [Cancels::of(strategy), Cancels::of(client)];
        for order in &self.result.orders {
            let Cancels { ids, all } = &cancels[usize::from(order.origin == Origin::Client)];
            let id = &*order.request.client_order_id;
            // Who ends a run ends all orders.
            let was_ended = self.result.totals.status == RunStatus::Interrupted;
            let may_be = was_ended || *all || ids.contains(id);
            let is = order.status == OrderStatus::Canceled;
            assert!(may_be || !is, "seed {}: {} {id}", session.seed, order.origin);
        }
    }
}

/// What somebody cancels.
struct Cancels {
    ids: BTreeSet<String>,
    all: bool,
}

impl Cancels {
    fn of(commands: impl Iterator<Item = OrderCommand>) -> Self {
        let mut cancels = Self { ids: BTreeSet::new(), all: false };
        for command in commands {
            match command {
                OrderCommand::Cancel { client_order_id } => {
                    cancels.ids.insert(client_order_id.to_string());
                }
                OrderCommand::CancelAll { .. } => cancels.all = true,
                OrderCommand::Submit(_) | OrderCommand::Modify { .. } => {}
            }
        }
        cancels
    }
}

#[test]
fn a_script_of_a_paced_session_gives_the_same_run_in_any_window() {
    let sessions = std::env::var(SESSIONS_ENV).ok().map_or(SESSIONS, |text| text.parse().unwrap());
    let (mut filled, mut stopped, mut at_day_ends, mut at_one_instant) = ([0; 3], 0, 0, 0);
    let mut others = 0;
    for seed in 0..sessions {
        let session = Session::new(seed);
        let live = session.paced();
        for window in [1, 64, 1_024] {
            live.assert_again(&session, window);
        }
        live.assert_own_cancels(&session);
        filled[seed as usize % 3] += live.result.fills.len();
        stopped += u32::from(live.result.totals.status == RunStatus::Interrupted);
        at_day_ends += live.commands.iter().filter(|(at, _)| !at.is_before_row).count();
        at_one_instant += live.at_one_instant;
        let is_others = |line: &&String| line.starts_with("warning S-");
        others += live.witness.events.iter().filter(is_others).count();
    }
    println!(
        "{sessions} sessions, {filled:?} fills over trades, minutes and days, {stopped} stopped, \
         {at_day_ends} commands at days' ends, {at_one_instant} inside an instant, {others} for \
         orders of the strategy"
    );
    let alive = filled.iter().all(|fills| *fills > sessions as usize);
    assert!(alive, "{filled:?} fills: the sessions are alive");
    assert!(at_day_ends > 0 && at_one_instant > 0 && others > 0, "clients come everywhere");
}
