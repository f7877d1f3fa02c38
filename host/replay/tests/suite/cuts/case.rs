//! Drawn cases: rows of a market, what the folder has besides, and the files up to an instant.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use domain::adjustment::Adjustment;
use domain::{JstDate, Money, OrderEvent, Price, Random, TsNanos};
use exchange::Preset;
use replay::data_set::{DataRequest, Granularity};
use replay::instruments::InstrumentChoices;
use replay::{ReplayOptions, Unpaced, replay};
use results::sink::InMemory;

use super::at_random::AtRandom;
use crate::common::folder::{Nobody, put};

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
pub(crate) enum Files {
    Trades,
    Bars,
}

/// What a folder has besides the rows.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// Daily files beside the trades or minutes: closes of the days before, and factors.
    pub(crate) daily: bool,
    /// Day, code and the factor of prices from that day on.
    pub(crate) splits: Vec<(usize, usize, &'static str)>,
    /// The instrument table: code, the days from which a row counts (none for always), lot, ticks.
    pub(crate) table: Vec<(usize, Option<usize>, u64, &'static str)>,
    /// The exchange's calendar, which has a closure of its own after the data.
    pub(crate) calendar: bool,
}

impl Extras {
    pub(crate) fn new(random: &mut Random, granularity: Granularity, files: Files) -> Self {
        // Daily bars would take the place of trades that bars are made from.
        let of_bars = files == Files::Bars && granularity == Granularity::Day;
        let daily = of_bars || granularity != Granularity::Day && random.chance(0.6);
        let mut extras = Self { daily, calendar: random.chance(0.5), ..Self::default() };
        for (day, code) in (1..DAYS).flat_map(|day| [(day, 0), (day, 1)]) {
            if daily && random.chance(0.25) {
                let factors = ["0.5", "0.33333333", "2", "0.90909091"];
                extras.splits.push((day, code, factors[random.below(4) as usize]));
            }
        }
        for code in 0..2 {
            if random.chance(0.4) {
                continue;
            }
            let row = |random: &mut Random, from| {
                let ticks = ["normal", "topix500", "etf", "0.5"][random.below(4) as usize];
                (code, from, [100, 100, 200, 50][random.below(4) as usize], ticks)
            };
            if random.chance(0.8) {
                extras.table.push(row(random, None));
            }
            for day in 1..DAYS {
                if random.chance(0.6) {
                    extras.table.push(row(random, Some(day)));
                }
            }
        }
        extras
    }

    /// The factor of prices of a day.
    fn factor(&self, day: usize, code: usize) -> &'static str {
        let split = self.splits.iter().find(|(of, whose, _)| (*of, *whose) == (day, code));
        split.map_or("1.0", |(.., factor)| factor)
    }
}

/// One drawn case.
pub(crate) struct Case {
    seed: u64,
    dates: Vec<JstDate>,
    rows: Vec<Row>,
    pub(crate) granularity: Granularity,
    pub(crate) files: Files,
    pub(crate) start: Option<JstDate>,
    pub(crate) preset: Preset,
    pub(crate) window: u32,
    pub(crate) extras: Extras,
}

impl Case {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(&[seed, 91]);
        // The third set was moved to dates whose official hours are shorter than its trades.
        let first = [(2025, 1, 6), (2024, 10, 31), (2013, 10, 7)][random.below(3) as usize];
        let first = JstDate::from_ymd_opt(first.0, first.1, first.2).unwrap();
        let calendar = domain::ExchangeCalendar::default();
        let open = first.iter_days().filter(|date| calendar.is_business_day(*date));
        let dates: Vec<JstDate> = open.take(DAYS).collect();
        let mut of_rows = random.clone();
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
        let extras = Extras::new(&mut Random::new(&[seed, 94]), granularity, files);
        let rows = rows(&mut of_rows, &extras);
        Self { seed, dates, rows, granularity, files, start, preset, window, extras }
    }

    /// Whether a day has begun at an instant.
    fn has_begun(&self, day: usize, at: TsNanos) -> bool {
        TsNanos::from_jst(self.dates[day], 0).unwrap() <= at
    }

    fn at(&self, row: &Row) -> TsNanos {
        TsNanos::from_jst(self.dates[row.day], row.micros * 1_000).unwrap()
    }

    /// An instant that the run reaches: at a row, between two of them, or after a day.
    pub(crate) fn cut(&self) -> TsNanos {
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
    pub(crate) fn write(&self, folder: &Path, until: TsNanos) {
        let rows: Vec<Row> =
            self.rows.iter().filter(|row| self.at(row) <= until).copied().collect();
        match (self.files, self.granularity) {
            (Files::Trades, _) => self.write_trades(folder, &rows),
            (Files::Bars, Granularity::Minute) => self.write_minutes(folder, until),
            (Files::Bars, _) => {}
        }
        if self.extras.daily {
            self.write_days(folder, until);
        }
        if !self.extras.table.is_empty() {
            self.write_table(folder, until);
        }
        if self.extras.calendar {
            self.write_calendar(folder);
        }
    }

    /// A row of the table, and that another ends, is known when its day begins.
    fn write_table(&self, folder: &Path, until: TsNanos) {
        let mut text = "code,name,market,lot,ticks,from,to\n".to_owned();
        let has_begun = |from: Option<usize>| from.is_none_or(|day| self.has_begun(day, until));
        let known: Vec<_> =
            self.extras.table.iter().filter(|(_, from, ..)| has_begun(*from)).collect();
        for (place, (code, from, lot, ticks)) in known.iter().enumerate() {
            let date = |day: usize| self.dates[day].to_string();
            let next = known.get(place + 1).filter(|next| next.0 == *code).and_then(|next| next.1);
            let to = next.and_then(|day| self.dates[day].pred_opt());
            let (from, to) = (from.map(date), to.map(|to| to.to_string()));
            let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
            writeln!(text, "{},,0111,{lot},{ticks},{from},{to}", CODES[*code]).unwrap();
        }
        std::fs::write(folder.join("instruments.csv"), text).unwrap();
    }

    /// The calendar is known ahead of time, so it is never cut.
    fn write_calendar(&self, folder: &Path) {
        let by_law = domain::ExchangeCalendar::default();
        let last = self.dates[DAYS - 1];
        let closure = last.iter_days().skip(2).find(|date| by_law.is_business_day(*date));
        let mut text = "Date,HolDiv\n".to_owned();
        for date in self.dates[0].iter_days().take(50) {
            let is_open = by_law.is_business_day(date) && Some(date) != closure;
            writeln!(text, "{date},{}", u8::from(is_open)).unwrap();
        }
        std::fs::write(folder.join("markets_calendar.csv"), text).unwrap();
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
    pub(crate) fn bars(
        &self,
        minutes: u64,
        until: TsNanos,
    ) -> BTreeMap<(usize, u64, usize), [Price; 4]> {
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

    /// A day's factor is known when it begins, its prices when it is over.
    fn write_days(&self, folder: &Path, until: TsNanos) {
        let bars = self.bars(0, until);
        for (day, date) in self.dates.iter().enumerate() {
            let mut text = "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n".to_owned();
            for (code, name) in CODES.iter().enumerate() {
                let factor = self.extras.factor(day, code);
                match bars.get(&(day, 0, code)) {
                    Some([open, high, low, close]) => {
                        writeln!(
                            text,
                            "{date},{name},{open},{high},{low},{close},0,0,9000,1,{factor}"
                        )
                    }
                    None if self.has_begun(day, until) => {
                        writeln!(text, "{date},{name},,,,,0,0,0,0.0,{factor}")
                    }
                    None => Ok(()),
                }
                .unwrap();
            }
            put(folder, &format!("equities_bars_daily_{}", date.format("%Y%m%d")), &text);
        }
    }

    /// Everything that happened to orders, up to the end of the data, and the last row's time.
    pub(crate) fn run(&self, folder: &Path, cache: &Path) -> Seen {
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
            unit_changes: data.unit_changes.clone(),
            split_dates_known: data.split_dates_known.clone(),
            calendar: data.calendar.clone(),
            dates: Some(data.range),
            ex_rights: data.ex_rights.clone(),
            warnings_max: domain::GuestLimit::Warnings.default_value(),
            rejected_bytes_max: domain::GuestLimit::Rejected.default_value(),
            folder_bytes_max: u64::MAX,
            folder_bytes_per_day: 0,
        };
        let mut rows = InMemory::default();
        let mut strategy = AtRandom::new(self.seed);
        let totals =
            replay(data.series.days(), &mut strategy, &options, &mut rows, &mut Unpaced).unwrap();
        let last = totals.span.map_or(TsNanos::default(), |(_, last)| last);
        let result = rows.into_result(totals);
        let positions = result.position_events.iter().map(|row| (row.ts_event, format!("{row:?}")));
        let equity = result.equity.iter().map(|row| (row.ts_event, format!("{row:?}")));
        let rows = positions.chain(equity).collect();
        let mut events = result.order_events;
        let ends = |event: &OrderEvent| format!("{:?}", event.kind).contains("END_OF_DATA");
        events.truncate(events.iter().position(ends).unwrap_or(events.len()));
        Seen { events, rows, last }
    }
}

/// What a run has seen and done.
pub(crate) struct Seen {
    /// What became of its orders, but for the end of the data.
    pub(crate) events: Vec<OrderEvent>,
    /// Positions that were opened and closed, and the account minute by minute, with their times.
    pub(crate) rows: Vec<(TsNanos, String)>,
    /// The last row of its data.
    pub(crate) last: TsNanos,
}

/// Prices that walk, jump over night now and then, and leave their day's range now and then; the tick is
/// finer on some days than before.
fn rows(random: &mut Random, extras: &Extras) -> Vec<Row> {
    let mut prices = [10_000_000_i64, 25_000_000];
    let mut rows = Vec::new();
    for day in 0..DAYS {
        for (code, price) in prices.iter_mut().enumerate() {
            if random.chance(0.2) {
                *price = *price / 100 * (40 + random.below(140) as i64) / 10_000 * 10_000;
            }
            let split = Adjustment::of_price_factor(extras.factor(day, code)).unwrap();
            if !split.is_none() {
                *price = split.price(Price::from_units(*price)).units() / 10_000 * 10_000;
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
