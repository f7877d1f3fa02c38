//! No result knows the future: data that is cut after any instant gives the same event log up to that
//! instant, whatever lies behind it. Files are cut, so everything between a folder and the log is held.
//!
//! `KUMIKI_SOAK_CUTS` says how many cuts are drawn; the seed is printed on a failure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use domain::account::PortfolioView;
use domain::digest::{Digest, EventLogDigest};
use domain::fault::{Fault, Identity};
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{
    Instrument, InstrumentIx, JstDate, Money, OrderCommand, OrderEvent, OrderModify, OrderRequest,
    OrderSide, OrderType, Price, Quantity, Random, TimeInForce, TsNanos,
};
use exchange::Preset;
use flate2::Compression;
use flate2::write::GzEncoder;
use replay::data_set::{DataRequest, Granularity};
use replay::instruments::InstrumentChoices;
use replay::{ReplayOptions, RunObserver, Unpaced, replay};
use results::sink::InMemory;

const CUTS: u64 = 25;
const CUTS_ENV: &str = "KUMIKI_SOAK_CUTS";
const CODES: [&str; 2] = ["72030", "99840"];
const DAYS: usize = 4;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// A trade: day, time in microseconds after midnight, code, price, shares.
#[derive(Debug, Clone, Copy)]
struct Row {
    day: usize,
    micros: u64,
    code: usize,
    price: Price,
    shares: u64,
}

/// Where the strategy's bars come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    Trades,
    Bars,
}

/// One drawn case.
struct Case {
    seed: u64,
    dates: Vec<JstDate>,
    rows: Vec<Row>,
    granularity: Granularity,
    files: Files,
    start: Option<JstDate>,
    preset: Preset,
    window: u32,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(&[seed, 91]);
        // The third set was moved to dates whose official hours are shorter than its trades.
        let first = [(2025, 1, 6), (2024, 10, 31), (2013, 10, 7)][random.below(3) as usize];
        let first = JstDate::from_ymd_opt(first.0, first.1, first.2).unwrap();
        let calendar = domain::ExchangeCalendar::default();
        let open = first.iter_days().filter(|date| calendar.is_business_day(*date));
        let dates: Vec<JstDate> = open.take(DAYS).collect();
        let rows = rows(&mut random);
        let bars = [Granularity::Trade, Granularity::Minute, Granularity::Day];
        // Nine seeds have every granularity with every preset.
        let granularity = bars[(seed % 3) as usize];
        let files = if granularity != Granularity::Trade && random.chance(0.5) {
            Files::Bars
        } else {
            Files::Trades
        };
        let start = random.chance(0.5).then(|| dates[1]);
        let preset = Preset::ALL[(seed / 3 % 3) as usize];
        let window = [1, 64, 1_024][random.below(3) as usize];
        Self { seed, dates, rows, granularity, files, start, preset, window }
    }

    fn at(&self, row: &Row) -> TsNanos {
        TsNanos::from_jst(self.dates[row.day], row.micros * 1_000).unwrap()
    }

    /// An instant that the run reaches: at a row, between two of them, or after a day.
    fn cut(&self) -> TsNanos {
        let mut random = Random::new(&[self.seed, 92]);
        let first = self.start.map_or(0, |_| 1);
        let late: Vec<&Row> = self.rows.iter().filter(|row| row.day >= first).collect();
        // Both codes have rows before it.
        let both = late.iter().position(|row| row.code != late[0].code).unwrap() + 1;
        let row = late[both + random.below((late.len() - both) as u64) as usize];
        if self.granularity == Granularity::Day {
            // A day's bar is known with the last of its trades, late prints of the close included.
            return TsNanos::from_jst(self.dates[row.day], 20 * 3_600_000_000_000).unwrap();
        }
        self.at(row).plus_nanos(random.below(3) * 400_000_000)
    }

    /// Writes the vendor's files with everything up to an instant.
    fn write(&self, folder: &Path, until: TsNanos) {
        let rows: Vec<Row> =
            self.rows.iter().filter(|row| self.at(row) <= until).copied().collect();
        match (self.files, self.granularity) {
            (Files::Trades, _) => self.write_trades(folder, &rows),
            (Files::Bars, Granularity::Minute) => self.write_minutes(folder, until),
            (Files::Bars, _) => self.write_days(folder, until),
        }
    }

    fn write_trades(&self, folder: &Path, rows: &[Row]) {
        for (day, date) in self.dates.iter().enumerate() {
            let mut text =
                "Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId\n".to_owned();
            for (code, name) in CODES.iter().enumerate() {
                let mine = rows.iter().filter(|row| row.day == day && row.code == code);
                for (id, row) in mine.enumerate() {
                    let session = if row.micros < 12 * 3_600 * MICROS_PER_SECOND { 1 } else { 2 };
                    writeln!(
                        text,
                        "{date},{name},{},0{session},{},{},{:012}",
                        clock(row.micros),
                        row.price,
                        row.shares,
                        id + 1
                    )
                    .unwrap();
                }
            }
            put(folder, &format!("equities_trades_{}", date.format("%Y%m%d")), &text);
        }
    }

    /// The bars of a span that end up to an instant: open, high, low, close, shares by day, bar and code.
    fn bars(&self, minutes: u64, until: TsNanos) -> BTreeMap<(usize, u64, usize), [Price; 4]> {
        let mut bars: BTreeMap<(usize, u64, usize), [Price; 4]> = BTreeMap::new();
        for row in &self.rows {
            let minute = row.micros / (60 * MICROS_PER_SECOND);
            let end = if minutes == 1 { minute + 1 } else { 15 * 60 + 30 };
            let key = (row.day, if minutes == 1 { minute } else { 0 }, row.code);
            let end = end * 60 * MICROS_PER_SECOND * 1_000;
            if TsNanos::from_jst(self.dates[row.day], end).unwrap() > until {
                continue;
            }
            let [_, high, low, close] = bars.entry(key).or_insert([row.price; 4]);
            (*high, *low, *close) = ((*high).max(row.price), (*low).min(row.price), row.price);
        }
        bars
    }

    fn write_minutes(&self, folder: &Path, until: TsNanos) {
        let bars = self.bars(1, until);
        for (day, date) in self.dates.iter().enumerate() {
            let mut text = "Date,Time,Code,O,H,L,C,Vo,Va\n".to_owned();
            let mine = bars.iter().filter(|((of, ..), _)| *of == day);
            for ((_, minute, code), [open, high, low, close]) in mine {
                let (hour, minute) = (minute / 60, minute % 60);
                let name = CODES[*code];
                writeln!(
                    text,
                    "{date},{hour:02}:{minute:02},{name},{open},{high},{low},{close},700,1"
                )
                .unwrap();
            }
            put(folder, &format!("equities_bars_minute_{}", date.format("%Y%m%d")), &text);
        }
    }

    fn write_days(&self, folder: &Path, until: TsNanos) {
        let bars = self.bars(0, until);
        for (day, date) in self.dates.iter().enumerate() {
            let mut text = "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n".to_owned();
            let mine = bars.iter().filter(|((of, ..), _)| *of == day);
            for ((.., code), [open, high, low, close]) in mine {
                let name = CODES[*code];
                writeln!(text, "{date},{name},{open},{high},{low},{close},0,0,9000,1,1").unwrap();
            }
            put(folder, &format!("equities_bars_daily_{}", date.format("%Y%m%d")), &text);
        }
    }

    /// Everything that happened to orders, up to the end of the data, and the last row's time.
    fn run(&self, folder: &Path, cache: &Path) -> (Vec<OrderEvent>, TsNanos) {
        let request = DataRequest {
            folder: folder.to_owned(),
            cache: cache.to_owned(),
            instruments: CODES.map(|code| format!("{}.TSE", &code[..4]).parse().unwrap()).to_vec(),
            start: self.start,
            end: None,
            granularity: self.granularity,
            choices: InstrumentChoices::default(),
        };
        let data = request.load(&mut Nobody).unwrap();
        let options = ReplayOptions {
            instruments: data.instruments.clone(),
            cash: Money::from_yen(3_000_000),
            model: self.preset.model(),
            window: self.window,
            config_json: "{}".to_owned(),
            base_prices: data.base_prices.clone(),
            tick_changes: data.tick_changes.clone(),
            calendar: data.calendar.clone(),
            ex_rights: data.ex_rights.clone(),
            warnings_max: domain::GuestLimit::Warnings.default_value(),
            rejected_bytes_max: domain::GuestLimit::Rejected.default_value(),
            folder_bytes_max: domain::GuestLimit::Folder.default_value(),
            folder_bytes_per_day: domain::GuestLimit::FolderDay.default_value(),
        };
        let mut rows = InMemory::default();
        let mut strategy = AtRandom::new(self.seed);
        let totals =
            replay(data.series.days(), &mut strategy, &options, &mut rows, &mut Unpaced).unwrap();
        let last = totals.span.map_or(TsNanos::default(), |(_, last)| last);
        let mut events = rows.into_result(totals).order_events;
        let ends = |event: &OrderEvent| format!("{:?}", event.kind).contains("END_OF_DATA");
        events.truncate(events.iter().position(ends).unwrap_or(events.len()));
        (events, last)
    }
}

/// Prices that walk, jump over night now and then, and leave their day's range now and then; the tick is
/// finer on some days than before.
fn rows(random: &mut Random) -> Vec<Row> {
    let mut prices = [10_000_000_i64, 25_000_000];
    let mut rows = Vec::new();
    for day in 0..DAYS {
        for (code, price) in prices.iter_mut().enumerate() {
            if random.chance(0.2) {
                *price = *price / 100 * (40 + random.below(140) as i64) / 10_000 * 10_000;
            }
            let tick = if random.chance(0.3) { 5_000 } else { 10_000 };
            // An issue may not trade on a day.
            let count = if random.chance(0.1) { 0 } else { 40 + random.below(80) };
            let mut times: Vec<u64> = (0..count).map(|_| time(random)).collect();
            times.sort_unstable();
            for micros in times {
                *price = (*price + tick * (random.below(9) as i64 - 4)).max(1_000_000);
                if random.chance(0.003) {
                    *price = *price / 10_000 * 15_000 / 10_000 * 10_000;
                }
                let shares = 100 * (1 + random.below(30));
                rows.push(Row { day, micros, code, price: Price::from_units(*price), shares });
            }
        }
    }
    // The first two days have both codes.
    for (day, code) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let micros = 9 * 3_600 * MICROS_PER_SECOND;
        let known = rows.iter().find(|row| row.day == day && row.code == code);
        let price = known.map_or(Price::from_yen(1_000), |row| row.price);
        rows.push(Row { day, micros, code, price, shares: 500 });
    }
    rows.sort_by_key(|row| (row.day, row.micros));
    rows
}

/// A time of both sessions, auctions and their late prints included.
fn time(random: &mut Random) -> u64 {
    let at = |hour: u64, minute: u64| (hour * 60 + minute) * 60 * MICROS_PER_SECOND;
    let half_second = |steps: u64| steps * MICROS_PER_SECOND / 2;
    match random.below(10) {
        0 => at(9, 0) + half_second(random.below(6)),
        1 => at(11, 30) + half_second(random.below(3)),
        2 => at(15, 30) + half_second(random.below(3)),
        3 => at(14, 59) + half_second(random.below(400)),
        4..=6 => at(9, 0) + half_second(random.below(17_000)),
        _ => at(12, 30) + half_second(random.below(20_900)),
    }
}

fn clock(micros: u64) -> String {
    let seconds = micros / MICROS_PER_SECOND;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{:06}", micros % MICROS_PER_SECOND)
}

/// Writes a file of the vendor, which never has one without rows.
fn put(folder: &Path, name: &str, text: &str) {
    if text.lines().count() < 2 {
        return;
    }
    let file = std::fs::File::create(folder.join(format!("{name}.csv.gz"))).unwrap();
    let mut out = GzEncoder::new(file, Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap();
}

struct Nobody;

impl RunObserver for Nobody {}

/// Sends all kinds of orders, as a seeded generator and what it has seen tell it.
struct AtRandom {
    random: Random,
    instruments: Vec<Instrument>,
    /// Rows of the window, and how many of them it has seen.
    window: Vec<(TsNanos, InstrumentIx, Price)>,
    seen: usize,
    sent: u64,
}

impl AtRandom {
    fn new(seed: u64) -> Self {
        let random = Random::new(&[seed, 93]);
        Self { random, instruments: Vec::new(), window: Vec::new(), seen: 0, sent: 0 }
    }

    fn order(&mut self, now: TsNanos, instrument: InstrumentIx, last: Price) -> Action {
        self.sent += 1;
        let random = &mut self.random;
        let near = |random: &mut Random| {
            let ticks = random.below(41) as i64 - 20;
            Price::from_units((last.units() + ticks * 5_000).max(5_000))
        };
        let order_type = [
            OrderType::Market,
            OrderType::Market,
            OrderType::Limit,
            OrderType::Limit,
            OrderType::StopMarket,
            OrderType::StopLimit,
        ][random.below(6) as usize];
        let has_limit = matches!(order_type, OrderType::Limit | OrderType::StopLimit);
        let is_stop = matches!(order_type, OrderType::StopMarket | OrderType::StopLimit);
        let lives = if is_stop { 2 } else { 4 };
        let time_in_force =
            [TimeInForce::Day, TimeInForce::Gtd, TimeInForce::AtTheOpen, TimeInForce::AtTheClose]
                [random.below(lives) as usize];
        let ahead = random.below(4) * domain::time::NANOS_PER_DAY;
        // Far outside now and then, so that the day's range shows in the rejection.
        let far = if random.chance(0.1) { 3 } else { 1 };
        let price = has_limit.then(|| Price::from_units(near(random).units() * far));
        let funari = order_type == OrderType::Limit && time_in_force == TimeInForce::AtTheClose;
        let tags =
            if funari && random.chance(0.5) { vec!["close_strategy=funari"] } else { vec![] };
        Action::Order(OrderCommand::Submit(OrderRequest {
            client_order_id: format!("O-{}", self.sent).into(),
            instrument,
            side: if random.chance(0.6) { OrderSide::Buy } else { OrderSide::Sell },
            order_type,
            quantity: self.instruments[usize::from(instrument.0)].lot,
            price,
            trigger_price: is_stop.then(|| near(random)),
            trigger_type: None,
            time_in_force,
            expire_time: (time_in_force == TimeInForce::Gtd).then(|| now.plus_nanos(ahead)),
            post_only: false,
            reduce_only: false,
            tags: tags.into_iter().map(str::to_owned).collect(),
        }))
    }

    fn decide(&mut self, now: TsNanos, instrument: InstrumentIx, last: Price) -> Vec<Action> {
        if !self.random.chance(0.15) {
            return vec![];
        }
        if self.random.chance(0.2) && self.sent > 0 {
            let client_order_id = format!("O-{}", 1 + self.random.below(self.sent)).into();
            let change = OrderModify { price: Some(last), ..OrderModify::default() };
            let quantity = Some(Quantity::new(200));
            let change =
                if self.random.chance(0.5) { change } else { OrderModify { quantity, ..change } };
            return vec![Action::Order(OrderCommand::Modify { client_order_id, change })];
        }
        vec![self.order(now, instrument, last)]
    }
}

impl StrategyRuntime for AtRandom {
    fn identity(&self) -> Identity {
        Identity { component: "at random".into(), sha256: String::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn init(&mut self, _: &str, instruments: &[Instrument]) -> Result<(), Box<Fault>> {
        self.instruments = instruments.to_vec();
        Ok(())
    }

    fn start(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        // Before any trade: market orders need a close of the days before.
        let last = Price::from_yen(1_000);
        Ok((0..4).map(|number| self.order(now, InstrumentIx(number % 2), last)).collect())
    }

    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        let rows: Vec<_> = match window {
            Window::Resume => std::mem::take(&mut self.window),
            Window::OneTrade(trade) => vec![(trade.ts_event, trade.instrument, trade.price)],
            Window::Trades(rows) => (0..rows.ts_event.len())
                .map(|row| rows.trade(row))
                .map(|trade| (trade.ts_event, trade.instrument, trade.price))
                .collect(),
            Window::OneBar(bar) => vec![(bar.ts_event, bar.instrument, bar.close)],
            Window::Bars(bars) => {
                bars.iter().map(|bar| (bar.ts_event, bar.instrument, bar.close)).collect()
            }
        };
        if !matches!(window, Window::Resume) {
            self.seen = 0;
        }
        let mut actions = vec![];
        while self.seen < limit as usize && actions.is_empty() {
            let (now, instrument, last) = rows[self.seen];
            self.seen += 1;
            actions = self.decide(now, instrument, last);
        }
        self.window = rows;
        // At most the window's rows.
        Ok(Outcome { reached: self.seen as u32, actions })
    }

    fn on_order_events(&mut self, _: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn stop(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn set_portfolio(&mut self, _: &PortfolioView) {}

    fn take_log(&mut self) -> Vec<LogLine> {
        vec![]
    }
}

fn digest(events: &[OrderEvent]) -> Digest {
    let mut digest = EventLogDigest::default();
    events.iter().for_each(|event| digest.order_event(event));
    digest.digest()
}

#[test]
fn cutting_the_data_after_any_instant_changes_nothing_before_it() {
    let cuts = std::env::var(CUTS_ENV).ok().map_or(CUTS, |text| text.parse().unwrap());
    let (mut compared, mut fills, mut kinds) = (0, 0, BTreeMap::<String, u64>::new());
    for seed in 0..cuts {
        let case = Case::new(seed);
        let until = case.cut();
        let folder = tempfile::tempdir().unwrap();
        let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
        let cache = folder.path().join("cache");
        for (data, until) in [(&whole, TsNanos::MAX), (&part, until)] {
            std::fs::create_dir(data).unwrap();
            case.write(data, until);
        }
        let has_both = case.files == Files::Trades || {
            let first = case.start.map_or(0, |_| 1);
            let minutes = u64::from(case.granularity == Granularity::Minute);
            let bars = case.bars(minutes, until);
            (0..2).all(|code| bars.keys().any(|(day, _, of)| *of == code && *day >= first))
        };
        if !has_both {
            continue;
        }
        let (all, _) = case.run(&whole, &cache);
        let (mut known, last) = case.run(&part, &cache);
        // A bar that the cut has made incomplete ends after it.
        known.retain(|event| event.ts_event <= until);
        let what = format!(
            "seed {seed}, {:?} of {:?} from {:?}, {}, window {}, cut at {until}",
            case.granularity, case.files, case.start, case.preset, case.window
        );
        assert!(known.len() <= all.len(), "{what}: {} of {} events", known.len(), all.len());
        let same = known.iter().zip(&all).position(|(one, other)| one != other);
        if let Some(place) = same {
            panic!(
                "{what}: event {place} is {:?}, and {:?} with the rest",
                known[place], all[place]
            );
        }
        assert_eq!(digest(&known), digest(&all[..known.len()]), "{what}");
        let last = last.min(until);
        let early = all[known.len()..].iter().find(|event| event.ts_event < last);
        assert!(early.is_none(), "{what}: {early:?} is missing");
        compared += known.len();
        fills +=
            known.iter().filter(|event| format!("{:?}", event.kind).contains("Filled")).count();
        *kinds.entry(format!("{:?} {}", case.granularity, case.preset)).or_default() += 1;
    }
    assert!(
        compared > 20 * cuts as usize && fills > cuts as usize,
        "{compared} events, {fills} fills"
    );
    assert!(kinds.len() == 9 || cuts < 25, "every granularity and preset: {kinds:?}");
    println!("{cuts} cuts, {compared} events, {fills} fills: {kinds:?}");
}
