//! What is odd or strange about a whole day: what is counted of its rows and of those of a day beside it, and from how
//! much on it is too much (rules E1 to E5, E8 to E12, E16 to E21, Z1 to Z3, Z6, Z8 and Z9 of the job).

use std::collections::{BTreeMap, BTreeSet};

use domain::instrument::{DailyLimits, TickTable};
use domain::{JstDate, Price};

use super::refusal::is_too_much;
use super::rules::days_between;
use super::seen::{Seen, SeenDay, far_volumes};
use crate::limits::{
    ALIKE_PERCENT_MAX, BESIDE_DAYS_MAX, BEYOND_PERCENT_MAX, EQUAL_PRICES_PERCENT_MAX, FAR_TIMES,
    FAR_VOLUMES_PERCENT_MAX, JUMP_WIDTH_PERCENT, JUMPS_PERCENT_MAX, LOST_ISSUES_MIN,
    MARKET_VOLUME_TIMES, ODD_DAY_ISSUES_MIN, OFF_TICK_PERCENT_MAX, REPEATED_PERCENT_MAX,
    SAME_CLOSES_PERCENT_MAX, SAME_VOLUMES_PERCENT_MAX, SPLITS_PERCENT_MAX,
    TRADED_SHARE_PERCENT_MIN, TURNOVER_TIMES, TURNOVERS_PERCENT_MAX, UNLISTED_PERCENT_MAX,
    VOLUME_PERCENT_MIN, VOLUME_TIMES,
};
use crate::row::{DailyRow, IssueCode};

/// What is odd about a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oddity {
    /// E1.
    Unlisted { rows: u64, listed: u64 },
    /// E1, where there is no list.
    Foreign { rows: u64, known: u64 },
    /// E2.
    OneYen { issues: u64, of: u64 },
    /// E3.
    Repeated { issues: u64, of: u64, day: JstDate },
    /// E3, of closes or of volumes.
    Same { value: Value, issues: u64, of: u64, day: JstDate },
    /// E4.
    NoVolume { issues: u64, with: u64 },
    /// E5.
    Splits { issues: u64, of: u64 },
    /// E6.
    Impossible { issues: u64, of: u64 },
    /// E8.
    Priceless(Priceless),
    /// E9.
    Jump(Jump),
    /// E10.
    Volumes(Volumes),
    /// E11.
    Far { issues: u64, of: u64 },
    /// E12.
    Turnovers { issues: u64, of: u64 },
    /// E16.
    Alike { issues: u64, of: u64 },
    /// E17.
    OffTick { issues: u64, of: u64, first: IssueCode },
    /// E18 and E19.
    Fewer(Fewer),
    /// E20.
    Replaced(Replaced),
    /// E21.
    Columns { what: Equal, issues: u64, of: u64, day: JstDate },
}

/// So many issues of another day have no row, and others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replaced {
    issues: u64,
    of: u64,
    day: JstDate,
}

impl std::fmt::Display for Replaced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { issues, of, day } = self;
        write!(f, "replaced: {issues} of the {of} issues of {day} have no row, and others have")
    }
}

/// What equals the close of few issues (rule E21).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Equal {
    Open,
    High,
    Low,
}

impl Equal {
    pub(super) const ALL: [Self; 3] = [Self::Open, Self::High, Self::Low];

    /// The other price beside the close: its place, and its name.
    const fn other(self) -> (usize, &'static str) {
        match self {
            Self::Open => (0, "open"),
            Self::High => (1, "high"),
            Self::Low => (2, "low"),
        }
    }
}

/// What of an issue is held against the day before (rule E3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Close,
    Volume,
}

/// What most issues that are traded have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usual {
    /// More than one price (rule E18).
    Moves,
    /// A turnover (rule E19).
    Turnover,
}

/// So many of the traded issues have what most have, and so many had it on another day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fewer {
    what: Usual,
    issues: u64,
    of: u64,
    day: JstDate,
    issues_then: u64,
    of_then: u64,
}

impl std::fmt::Display for Fewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, issues, of, day, issues_then, of_then } = self;
        let (word, have) = match what {
            Usual::Moves => ("flat", "have more than one price"),
            Usual::Turnover => ("no turnover", "have a turnover"),
        };
        write!(
            f,
            "{word}: {issues} of the {of} issues with a volume {have}, and on {day} {issues_then} of {of_then} had"
        )
    }
}

impl Oddity {
    /// How many issues are odd so.
    const fn issues(&self) -> u64 {
        match self {
            Self::Unlisted { rows, .. } | Self::Foreign { rows, .. } => *rows,
            Self::OneYen { issues, .. }
            | Self::Repeated { issues, .. }
            | Self::Same { issues, .. }
            | Self::Splits { issues, .. }
            | Self::Impossible { issues, .. }
            | Self::Far { issues, .. }
            | Self::Turnovers { issues, .. }
            | Self::Alike { issues, .. }
            | Self::OffTick { issues, .. } => *issues,
            Self::NoVolume { issues, with } => issues.saturating_sub(*with),
            Self::Priceless(found) => found.of.saturating_sub(found.priced),
            Self::Jump(found) => found.issues,
            Self::Volumes(found) => found.issues,
            Self::Fewer(found) => found.of.saturating_sub(found.issues),
            Self::Replaced(found) => found.issues,
            Self::Columns { issues, .. } => *issues,
        }
    }

    /// Whether a day that is odd so is odd by the same rule as another, and of no more issues: it is as one that was
    /// taken (rule E14).
    pub(super) fn is_no_odder_than(&self, known: &Self) -> bool {
        let is_same_rule = match (self, known) {
            (
                Self::Repeated { .. } | Self::Same { .. },
                Self::Repeated { .. } | Self::Same { .. },
            )
            | (
                Self::Unlisted { .. } | Self::Foreign { .. },
                Self::Unlisted { .. } | Self::Foreign { .. },
            ) => true,
            (Self::Fewer(found), Self::Fewer(known)) => found.what == known.what,
            (Self::Columns { what: found, .. }, Self::Columns { what: known, .. }) => {
                found == known
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(known),
        };
        is_same_rule && self.issues() <= known.issues()
    }
}

/// So many rows have a price, and so many had on another day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Priceless {
    priced: u64,
    of: u64,
    day: JstDate,
    priced_then: u64,
    of_then: u64,
}

impl std::fmt::Display for Priceless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { priced, of, day, priced_then, of_then } = self;
        write!(
            f,
            "priceless: {priced} of its {of} rows have a price, and on {day} {priced_then} of {of_then} have"
        )
    }
}

/// So many issues have prices that are too far from the closes of another day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jump {
    range: Range,
    issues: u64,
    of: u64,
    day: JstDate,
    /// The first of them.
    first: IssueCode,
}

/// What prices may be after a close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    /// A close may be somewhat beyond the usual limits, as after days without a trade.
    Any,
    /// All prices may be within the limits of so many times the usual width.
    Daily { times: i64 },
}

/// So many volumes are too far from those of another day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Volumes {
    times: u64,
    issues: u64,
    of: u64,
    day: JstDate,
}

impl std::fmt::Display for Volumes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { times, issues, of, day } = self;
        write!(
            f,
            "volumes: those of {issues} of {of} issues are {times} times or more away from those of {day}"
        )
    }
}

impl std::fmt::Display for Jump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { range, issues, of, day, first } = self;
        match range {
            Range::Any => write!(
                f,
                "jump: the closes of {issues} of {of} issues are over one and a half daily limits away from those of \
                 {day}; the first is {first}"
            ),
            Range::Daily { .. } => write!(
                f,
                "jump: the prices of {issues} of {of} issues are beyond the daily limits around the closes of {day}; \
                 the first is {first}"
            ),
        }
    }
}

impl std::fmt::Display for Oddity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unlisted { rows, listed } => write!(
                f,
                "unlisted: it has {rows} rows of issues that are not among the {listed} which the vendor \
                 lists for this date, and {UNLISTED_PERCENT_MAX} % may be"
            ),
            Self::Foreign { rows, known } => write!(
                f,
                "unlisted: it has {rows} rows of issues that are not among the {known} of the days beside it, and \
                 {UNLISTED_PERCENT_MAX} % may be"
            ),
            Self::Impossible { issues, of } => write!(
                f,
                "impossible: {issues} of {of} issues would get prices beyond the daily limits around those that are \
                 published and those of the day before, or volumes {VOLUME_TIMES} times or more away from both"
            ),
            Self::Priceless(found) => found.fmt(f),
            Self::Jump(found) => found.fmt(f),
            Self::Volumes(found) => found.fmt(f),
            Self::Far { issues, of } => write!(
                f,
                "far: prices of {issues} of {of} issues are over {FAR_TIMES} times away from their last closes, \
                 splits counted in"
            ),
            Self::OneYen { issues, of } => {
                write!(f, "one yen: {issues} of the {of} issues with a price cost 1 yen")
            }
            Self::Repeated { issues, of, day } => write!(
                f,
                "repeated: {issues} of the {of} issues with a volume have the prices of {day}"
            ),
            Self::Same { value, issues, of, day } => {
                let values = match value {
                    Value::Close => "closes",
                    Value::Volume => "volumes",
                };
                write!(
                    f,
                    "repeated: {issues} of the {of} issues with a volume have the {values} of {day}"
                )
            }
            Self::OffTick { issues, of, first } => write!(
                f,
                "off tick: {issues} of {of} issues have prices that are on no tick of the exchange; the first is \
                 {first}"
            ),
            Self::Fewer(found) => found.fmt(f),
            Self::Replaced(found) => found.fmt(f),
            Self::Columns { what, issues, of, day } => write!(
                f,
                "columns: {issues} of the {of} issues that moved closed at their {}, far more than on {day}",
                what.other().1
            ),
            Self::Turnovers { issues, of } => write!(
                f,
                "turnovers: those of {issues} of {of} issues do not fit to their prices and volumes"
            ),
            Self::Alike { issues, of } => write!(
                f,
                "alike: {issues} of the {of} issues with a volume have the prices and the volume of another one"
            ),
            Self::NoVolume { issues, with } => {
                write!(f, "no volume: {issues} issues have a price, and {with} have a volume")
            }
            Self::Splits { issues, of } => write!(
                f,
                "splits: {issues} of {of} issues have an adjustment factor other than 1, and \
                 {SPLITS_PERCENT_MAX} % may have"
            ),
        }
    }
}

/// Whether issues are more than so many percent of all, and a market.
pub(super) const fn are_many(issues: u64, of: u64, percent: u64) -> bool {
    issues >= ODD_DAY_ISSUES_MIN && issues * 100 > of * percent
}

/// Whether so many of so many are under so many percent of what they would be with the share of another day, and a
/// market is missing.
const fn are_fewer((some, of): (u64, u64), (some_then, of_then): (u64, u64), percent: u64) -> bool {
    let expected = some_then * of / if of_then == 0 { 1 } else { of_then };
    expected.saturating_sub(some) >= ODD_DAY_ISSUES_MIN && some * 100 < expected * percent
}

/// Rows of issues that are not among the known ones, where they are too many, and how many are known (rule E1).
fn too_many_others(rows: &BTreeSet<IssueCode>, known: &BTreeSet<IssueCode>) -> Option<(u64, u64)> {
    let count = rows.difference(known).count() as u64;
    let of = known.len() as u64;
    let is_odd = count >= LOST_ISSUES_MIN as u64 && count * 100 > of * UNLISTED_PERCENT_MAX;
    is_odd.then_some((count, of))
}

/// The same beside a list.
pub(super) fn unlisted(rows: &BTreeSet<IssueCode>, listed: &BTreeSet<IssueCode>) -> Option<Oddity> {
    too_many_others(rows, listed).map(|(rows, listed)| Oddity::Unlisted { rows, listed })
}

/// The same beside the issues of other days.
pub(super) fn foreign(rows: &BTreeSet<IssueCode>, known: &BTreeSet<IssueCode>) -> Option<Oddity> {
    too_many_others(rows, known).map(|(rows, known)| Oddity::Foreign { rows, known })
}

/// Whether a turnover may be that of these prices and this volume; nothing where one of them is not told.
fn is_turnover_fitting(row: &DailyRow) -> Option<bool> {
    let volume = row.volume.filter(|volume| *volume > 0)? as f64;
    let of = |price: Price| price.units() as f64 * volume;
    let (low, high, turnover) = (of(row.low?), of(row.high?), row.turnover?.units() as f64);
    Some((low / TURNOVER_TIMES..=high * TURNOVER_TIMES).contains(&turnover))
}

/// Whether too many turnovers do not fit to their prices and volumes (rule E12).
pub(super) fn turnovers(rows: &[DailyRow]) -> Option<Oddity> {
    let fitting: Vec<bool> = rows.iter().filter_map(is_turnover_fitting).collect();
    let (of, fit) = (fitting.len() as u64, fitting.iter().filter(|fits| **fits).count() as u64);
    let issues = of - fit;
    let is_odd = are_many(issues, of, TURNOVERS_PERCENT_MAX);
    is_odd.then_some(Oddity::Turnovers { issues, of })
}

/// Whether too many closes, or volumes, are those of the day before (rule E3).
pub(super) fn same(
    value: Value,
    found: &SeenDay,
    (day, others): (JstDate, &SeenDay),
) -> Option<Oddity> {
    let percent = match value {
        Value::Close => SAME_CLOSES_PERCENT_MAX,
        Value::Volume => SAME_VOLUMES_PERCENT_MAX,
    };
    let (mut issues, mut of) = (0, 0);
    for (code, seen) in found.iter().filter(|(_, seen)| seen.is_traded()) {
        let Some(other) = others.get(code) else { continue };
        let (is_there, is_same) = match value {
            Value::Close => (other.close().is_some(), seen.close() == other.close()),
            Value::Volume => (other.is_traded(), seen.volume() == other.volume()),
        };
        of += u64::from(is_there);
        issues += u64::from(is_there && is_same);
    }
    let is_odd = are_many(issues, of, percent);
    is_odd.then_some(Oddity::Same { value, issues, of, day })
}

/// Traded issues that have what most have, and all that tell it.
fn usual(what: Usual, day: &SeenDay) -> (u64, u64) {
    let traded = day.values().filter(|seen| seen.is_traded());
    let told = traded.filter_map(|seen| match what {
        Usual::Moves => seen.has_moved(),
        Usual::Turnover => seen.has_turnover(),
    });
    told.fold((0, 0), |(issues, of), has| (issues + u64::from(has), of + 1))
}

/// The day with the greatest share of some among all.
pub(super) fn greatest_share(
    days: impl Iterator<Item = (JstDate, (u64, u64))>,
) -> Option<(JstDate, (u64, u64))> {
    let days = days.filter(|(_, (_, of))| *of > 0);
    // The first of those that have as many.
    days.reduce(|most, next| {
        let ((_, (some, of)), (_, (others, of_others))) = (most, next);
        if others * of > some * of_others { next } else { most }
    })
}

/// Whether far fewer of the traded issues have what most had on the one of the days before on which most had it
/// (rules E18 and E19).
pub(super) fn fewer<'a>(
    what: Usual,
    found: &SeenDay,
    before: impl Iterator<Item = (JstDate, &'a SeenDay)>,
) -> Option<Oddity> {
    let (day, (issues_then, of_then)) =
        greatest_share(before.map(|(day, others)| (day, usual(what, others))))?;
    let (issues, of) = usual(what, found);
    let is_odd = are_fewer((issues, of), (issues_then, of_then), TRADED_SHARE_PERCENT_MIN);
    is_odd.then_some(Oddity::Fewer(Fewer { what, issues, of, day, issues_then, of_then }))
}

/// Whether too many issues have prices that are on no tick, by the exchange's finest table for shares (rule E17).
pub(super) fn off_tick(rows: &[DailyRow]) -> Option<Oddity> {
    let (mut issues, mut of, mut first) = (0, 0, None);
    for row in rows.iter().filter(|row| !row.source.is_adjusted()) {
        let mut prices = row.prices().into_iter().flatten().peekable();
        of += u64::from(prices.peek().is_some());
        if prices.any(|price| !TickTable::Topix500.is_aligned(price)) {
            issues += 1;
            first.get_or_insert(row.code);
        }
    }
    let is_odd = are_many(issues, of, OFF_TICK_PERCENT_MAX);
    first.filter(|_| is_odd).map(|first| Oddity::OffTick { issues, of, first })
}

/// Whether issues of another day have no row and as many others have, more than so many percent and at least so many
/// (rules E20 and Z9). A market that only shrinks or grows is told by lists and counts.
pub(super) fn replaced(
    found: &SeenDay,
    (day, others): (JstDate, &SeenDay),
    percent: u64,
    least: u64,
) -> Option<Replaced> {
    let gone = others.keys().filter(|code| !found.contains_key(*code)).count() as u64;
    let new = found.keys().filter(|code| !others.contains_key(*code)).count() as u64;
    let (issues, of) = (gone.min(new), others.len() as u64);
    (issues >= least && issues * 100 > of * percent).then_some(Replaced { issues, of, day })
}

/// Of the issues that moved, those of which two prices are the same, and all.
fn equal(what: Equal, day: &SeenDay) -> (u64, u64) {
    let moved = day.values().filter(|seen| seen.is_traded() && seen.has_moved() == Some(true));
    moved.fold((0, 0), |(issues, of), seen| {
        let is_equal = seen.close().is_some() && seen.prices[what.other().0] == seen.close();
        (issues + u64::from(is_equal), of + 1)
    })
}

/// Whether two columns are the same for most issues, and were for far fewer on the day before (rule E21).
pub(super) fn columns(
    what: Equal,
    found: &SeenDay,
    (day, others): (JstDate, &SeenDay),
) -> Option<Oddity> {
    let ((issues, of), (issues_then, of_then)) = (equal(what, found), equal(what, others));
    let is_odd =
        are_many(issues, of, EQUAL_PRICES_PERCENT_MAX) && issues_then * of * 2 < issues * of_then;
    is_odd.then_some(Oddity::Columns { what, issues, of, day })
}

/// How far the closes of half of all issues are from those of an earlier day, where that is further than markets
/// move (rule Z8).
pub(super) fn market_move(
    found: &SeenDay,
    (day, others): (JstDate, &SeenDay),
    percent: u64,
    is_young: bool,
) -> Option<String> {
    let moves = found.iter().filter_map(|(code, seen)| {
        let base = base_of(others.get(code)?, seen, is_young)?.units();
        let move_ = (seen.close()?.units() - base) as f64 * 100.0 / base as f64;
        (base > 0).then_some(move_)
    });
    let mut moves: Vec<f64> = moves.collect();
    let half = moves.len() / 2;
    if (moves.len() as u64) < ODD_DAY_ISSUES_MIN {
        return None;
    }
    let (_, median, _) = moves.select_nth_unstable_by(half, f64::total_cmp);
    (median.abs() > percent as f64).then(|| {
        format!("market: half of the closes are {median:+.1} % or more away from those of {day}")
    })
}

/// Whether too many issues have the prices and the volume of another one (rule E16).
pub(super) fn alike(rows: &[DailyRow]) -> Option<Oddity> {
    let mut found: BTreeMap<_, u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.volume.is_some_and(|volume| volume > 0)) {
        *found.entry((row.prices(), row.volume)).or_default() += 1;
    }
    let (of, issues) = (found.values().sum(), found.values().filter(|count| **count > 1).sum());
    let is_odd = are_many(issues, of, ALIKE_PERCENT_MAX);
    is_odd.then_some(Oddity::Alike { issues, of })
}

/// What is odd about the rows of a day by themselves (rules E2, E4 and E5).
pub(super) fn odd_rows(rows: &[DailyRow]) -> Vec<Oddity> {
    let mut odd = Vec::new();
    let count =
        |is_so: &dyn Fn(&DailyRow) -> bool| rows.iter().filter(|row| is_so(row)).count() as u64;
    let is_many = |issues: u64| issues >= ODD_DAY_ISSUES_MIN;
    let priced = count(&|row| row.close.is_some());
    let one_yen = count(&|row| row.close == Some(Price::from_yen(1)));
    if is_many(one_yen) && one_yen * 2 > priced {
        odd.push(Oddity::OneYen { issues: one_yen, of: priced });
    }
    let with_volume = count(&|row| row.volume.is_some_and(|volume| volume > 0));
    if is_many(priced) && with_volume * 100 < priced * VOLUME_PERCENT_MIN {
        odd.push(Oddity::NoVolume { issues: priced, with: with_volume });
    }
    let split = count(&|row| row.adjustment_factor.is_some_and(|factor| factor != 1.0));
    let of = rows.len() as u64;
    if are_many(split, of, SPLITS_PERCENT_MAX) {
        odd.push(Oddity::Splits { issues: split, of });
    }
    odd
}

/// Whether so many rows have other prices than known ones of the same issues that the day may be another one.
pub(super) fn are_others(rows: &[DailyRow], known: &[DailyRow]) -> bool {
    let known: BTreeMap<IssueCode, [Option<Price>; 4]> =
        known.iter().map(|row| (row.code, row.prices())).collect();
    let is_other = |row: &&DailyRow| known.get(&row.code).is_some_and(|one| *one != row.prices());
    let others = rows.iter().filter(is_other).count() as u64;
    are_many(others, rows.len() as u64, REPEATED_PERCENT_MAX)
}

/// Prices without a volume of over 1 % of the priced issues (rule Z6).
pub(super) fn without_volume(found: &SeenDay) -> Option<Oddity> {
    let (issues, _) = priced(found);
    let with = found.values().filter(|seen| seen.close().is_some() && seen.is_traded());
    let with = with.count() as u64;
    let is_so = is_too_much((issues - with) as usize, issues);
    is_so.then_some(Oddity::NoVolume { issues, with })
}

/// Whether what was traded is that of another day (rule E3).
pub(super) fn repeated(found: &SeenDay, (day, others): (JstDate, &SeenDay)) -> Option<Oddity> {
    let traded = || found.iter().filter(|(_, seen)| seen.is_traded());
    let of = traded().count() as u64;
    // So many that are not alike tell already that days are not.
    let most = of * (100 - REPEATED_PERCENT_MAX) / 100;
    let (mut issues, mut unlike) = (0, 0);
    for (code, seen) in traded() {
        match others.get(code).is_some_and(|other| seen.is_as(other)) {
            true => issues += 1,
            false if unlike >= most => return None,
            false => unlike += 1,
        }
    }
    let is_odd = are_many(issues, of, REPEATED_PERCENT_MAX);
    is_odd.then_some(Oddity::Repeated { issues, of, day })
}

/// Rows with a price, and all rows.
pub(super) fn priced(day: &SeenDay) -> (u64, u64) {
    let count = day.values().filter(|seen| seen.close().is_some()).count();
    (count as u64, day.len() as u64)
}

/// Far fewer rows with a price than on another day, which had so many of so many (rules E8 and Z1).
pub(super) fn priceless(
    found: &SeenDay,
    (day, (priced_then, of_then)): (JstDate, (u64, u64)),
    percent: u64,
) -> Option<Priceless> {
    let (priced, of) = priced(found);
    let is_so = are_fewer((priced, of), (priced_then, of_then), percent);
    is_so.then_some(Priceless { priced, of, day, priced_then, of_then })
}

/// The close of an earlier day as it compares with a row; nothing where nobody knows what compares. Of a day of the
/// last week a source that adjusts its prices has had little to adjust, and its own prices always compare.
fn base_of(before: &Seen, seen: &Seen, is_young: bool) -> Option<Price> {
    let factor = match seen.is_adjusted() {
        true => (is_young || before.is_adjusted()).then_some(1.0),
        // Without a factor nobody knows what compares: hundreds of issues have been merged on one day.
        false => seen.factor().filter(|_| !before.is_adjusted()),
    };
    // Prices are at most millions of yen: a float holds them well enough for this.
    Some(Price::from_units((before.close()?.units() as f64 * factor?).round() as i64))
}

impl Range {
    /// Whether a row is beyond it; nothing where it has no price.
    pub(super) fn is_left(self, base: Price, seen: &Seen) -> Option<bool> {
        match self {
            Self::Any => {
                // Exact: the width is whole yen.
                let width = DailyLimits::around(base).high.units() - base.units();
                let away = (seen.close()?.units() - base.units()).abs();
                Some(away * 100 > width * JUMP_WIDTH_PERCENT)
            }
            Self::Daily { times } => {
                let limits = DailyLimits::around_by(base, times);
                let mut prices = seen.prices().peekable();
                prices.peek()?;
                Some(prices.any(|price| !limits.contains(price)))
            }
        }
    }
}

/// Prices that are too far from the closes of an earlier day (rules E9 and Z2).
pub(super) fn jump(
    found: &SeenDay,
    (day, others): (JstDate, &SeenDay),
    range: Range,
    is_young: bool,
) -> Option<Jump> {
    let (mut issues, mut of, mut first) = (0, 0, None);
    for (code, seen) in found {
        let base = others.get(code).and_then(|before| base_of(before, seen, is_young));
        let jumps = base.and_then(|base| range.is_left(base, seen));
        of += u64::from(jumps.is_some());
        if jumps == Some(true) {
            issues += 1;
            first.get_or_insert(*code);
        }
    }
    first.map(|first| Jump { range, issues, of, day, first })
}

impl Jump {
    /// Whether they are too many for any market (rule E9).
    pub(super) const fn is_odd(&self) -> bool {
        are_many(self.issues, self.of, JUMPS_PERCENT_MAX)
    }

    /// Whether they are more than those whose limits are wider on most days (rule Z2).
    pub(super) const fn is_strange(&self) -> bool {
        self.issues >= LOST_ISSUES_MIN as u64 && self.issues * 100 > self.of * BEYOND_PERCENT_MAX
    }
}

/// Whether volumes of more than so many percent of the issues, at least 30, are so many times away from those of a day
/// before (rules E10 and Z3).
pub(super) fn volumes(
    found: &SeenDay,
    (day, others): (JstDate, &SeenDay),
    times: u64,
    percent: u64,
) -> Option<Volumes> {
    let (issues, of) = far_volumes(found, others, times);
    are_many(issues, of, percent).then_some(Volumes { times, issues, of, day })
}

/// Whether they are too many for any market (rule E10).
pub(super) fn odd_volumes(found: &SeenDay, beside: (JstDate, &SeenDay)) -> Option<Volumes> {
    let far = volumes(found, beside, VOLUME_TIMES, FAR_VOLUMES_PERCENT_MAX);
    far.or_else(|| volumes(found, beside, MARKET_VOLUME_TIMES, 50))
}

/// Whether a complete day is near enough to be held against.
pub(super) fn is_beside(day: JstDate, date: JstDate) -> bool {
    days_between(day, date) <= BESIDE_DAYS_MAX
}

#[cfg(test)]
mod tests {
    use std::iter::once;

    #[test]
    fn doubts_are_told_with_their_figures() {
        let told = [
            Oddity::Unlisted { rows: 41, listed: 4_000 }.to_string(),
            Oddity::Foreign { rows: 41, known: 4_000 }.to_string(),
            Oddity::OneYen { issues: 7, of: 60 }.to_string(),
            Oddity::Alike { issues: 7, of: 60 }.to_string(),
            Oddity::NoVolume { issues: 60, with: 7 }.to_string(),
            Oddity::Splits { issues: 7, of: 60 }.to_string(),
        ];
        let expected = [
            "unlisted: it has 41 rows of issues that are not among the 4000 which the vendor lists for this date, and 1 % may be",
            "unlisted: it has 41 rows of issues that are not among the 4000 of the days beside it, and 1 % may be",
            "one yen: 7 of the 60 issues with a price cost 1 yen",
            "alike: 7 of the 60 issues with a volume have the prices and the volume of another one",
            "no volume: 60 issues have a price, and 7 have a volume",
            "splits: 7 of 60 issues have an adjustment factor other than 1, and 20 % may have",
        ];
        assert_eq!(told, expected);
    }

    use domain::{Money, Price};

    use super::super::seen::seen;
    use super::*;
    use crate::limits::{
        MARKET_MOVE_PERCENT_MAX, ODD_PRICED_PERCENT_MIN, PRICED_PERCENT_MIN,
        STRANGE_VOLUMES_PERCENT_MAX,
    };
    use crate::row::SourceKind;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    fn rows(count: u32, change: impl Fn(&mut DailyRow, u32)) -> Vec<DailyRow> {
        let row = |number: u32| {
            let code = (1_300 + number).to_string().parse().unwrap();
            let mut row = DailyRow::bare(date("2026-01-09"), code, SourceKind::Vendor);
            let price = Some(Price::from_yen(100 + i64::from(number)));
            (row.open, row.high, row.low, row.close) = (price, price, price, price);
            let turnover = Money::from_yen(100 * (100 + i64::from(number)));
            (row.volume, row.turnover) = (Some(100), Some(turnover));
            row.adjustment_factor = Some(1.0);
            change(&mut row, number);
            row
        };
        (0..count).map(row).collect()
    }

    fn odd_rows(rows: &[DailyRow]) -> Option<Oddity> {
        super::odd_rows(rows).first().copied()
    }

    #[test]
    fn rows_by_themselves_are_odd_by_three_rules() {
        let one_yen = |first: u32| {
            rows(100, |row, number| {
                if number < first {
                    row.close = Some(Price::from_yen(1));
                }
            })
        };
        let odd = Oddity::OneYen { issues: 51, of: 100 };
        assert_eq!((odd_rows(&one_yen(50)), odd_rows(&one_yen(51))), (None, Some(odd)), "E2");
        let no_volume = rows(100, |row, _| row.volume = Some(0));
        assert_eq!(odd_rows(&no_volume), Some(Oddity::NoVolume { issues: 100, with: 0 }), "E4");
        let volume_of = |first: u32| {
            odd_rows(&rows(100, |row, number| row.volume = Some(u64::from(number < first))))
        };
        let odd = Oddity::NoVolume { issues: 100, with: 89 };
        assert_eq!((volume_of(90), volume_of(89)), (None, Some(odd)), "E4");
        assert_eq!(odd_rows(&rows(100, |row, _| (row.volume, row.close) = (None, None))), None);
        let split = |of: u32, first: u32| {
            let row = |row: &mut DailyRow, number: u32| {
                row.adjustment_factor = Some(if number < first { 0.5 } else { 1.0 });
            };
            odd_rows(&rows(of, row))
        };
        let odd = Oddity::Splits { issues: 41, of: 200 };
        assert_eq!((split(200, 40), split(200, 41), split(29, 29)), (None, Some(odd), None), "E5");
        assert_eq!(odd_rows(&rows(29, |row, _| row.volume = Some(0))), None, "no market");
    }

    #[test]
    fn issues_do_not_have_the_rows_of_others() {
        let check = |of: u32, first: u32| {
            alike(&rows(of, |row, number| {
                if number < first {
                    let price = Some(Price::from_yen(90));
                    (row.open, row.high, row.low, row.close) = (price, price, price, price);
                }
            }))
        };
        let odd = Oddity::Alike { issues: 41, of: 200 };
        assert_eq!((check(200, 40), check(200, 41), check(29, 29)), (None, Some(odd), None), "E16");
    }

    #[test]
    fn a_day_is_as_odd_as_one_that_was_taken() {
        let day = date("2026-01-08");
        let turnovers = |issues| Oddity::Turnovers { issues, of: 200 };
        assert!(turnovers(50).is_no_odder_than(&turnovers(50)));
        assert!(turnovers(49).is_no_odder_than(&turnovers(50)));
        assert!(!turnovers(51).is_no_odder_than(&turnovers(50)));
        let other = Oddity::Repeated { issues: 1, of: 200, day };
        assert!(!other.is_no_odder_than(&turnovers(50)));
        let priceless = |priced| {
            Oddity::Priceless(Priceless { priced, of: 200, day, priced_then: 200, of_then: 200 })
        };
        assert!(priceless(90).is_no_odder_than(&priceless(90)));
        assert!(!priceless(89).is_no_odder_than(&priceless(90)));
    }

    #[test]
    fn turnovers_fit_to_prices_and_volumes() {
        let of = |few: u32, yen: i64| {
            turnovers(&rows(200, |row, number| {
                if number < few {
                    row.turnover = Some(Money::from_yen(yen));
                }
            }))
        };
        let odd = Some(Oddity::Turnovers { issues: 41, of: 200 });
        assert_eq!((of(40, 1), of(41, 1), of(41, 100_000_000)), (None, odd, odd), "E12");
        // A fifth less and a quarter more than what 100 shares at 100 to 140 yen are worth.
        assert_eq!((of(41, 11_200), of(41, 12_500)), (None, None));
        assert_eq!((of(41, 7_900), of(41, 17_600)), (odd, odd));
        let untold = rows(200, |row, _| row.turnover = None);
        assert_eq!(turnovers(&untold), None);
    }

    #[test]
    fn closes_are_not_those_of_the_day_before() {
        let day = date("2026-01-08");
        let before = seen(&rows(200, |_, _| {}));
        let check = |count: u32| {
            let found = seen(&rows(200, |row, number| {
                if number >= count {
                    row.close = Some(Price::from_yen(1_000));
                }
            }));
            same(Value::Close, &found, (day, &before))
        };
        let odd = Some(Oddity::Same { value: Value::Close, issues: 81, of: 200, day });
        assert_eq!((check(80), check(81)), (None, odd), "E3");
        let volumes = |count: u32| {
            let found = seen(&rows(200, |row, number| {
                row.close = Some(Price::from_yen(1_000));
                row.volume = Some(if number < count { 100 } else { 101 });
            }));
            same(Value::Volume, &found, (day, &before))
        };
        let odd = Some(Oddity::Same { value: Value::Volume, issues: 81, of: 200, day });
        assert_eq!((volumes(80), volumes(81)), (None, odd), "E3");
    }

    #[test]
    fn as_many_traded_issues_move_and_have_a_turnover_as_the_day_before() {
        let day = date("2026-01-08");
        let moved = |count: u32, moving: u32| {
            seen(&rows(count, |row, number| {
                if number < moving {
                    row.high = Some(Price::from_yen(1_000));
                }
            }))
        };
        let check = |moving| fewer(Usual::Moves, &moved(200, moving), once((day, &moved(100, 80))));
        let odd = |what, issues, issues_then, of_then| {
            Some(Oddity::Fewer(Fewer { what, issues, of: 200, day, issues_then, of_then }))
        };
        assert_eq!((check(80), check(79)), (None, odd(Usual::Moves, 79, 80, 100)), "E18");
        let told = |source: SourceKind, with: u32| {
            seen(&rows(200, |row, number| {
                (row.source, row.turnover) = (source, row.turnover.filter(|_| number < with));
            }))
        };
        let check = |source, with| {
            fewer(Usual::Turnover, &told(source, with), once((day, &told(SourceKind::Vendor, 200))))
        };
        let found = [100, 99].map(|with| check(SourceKind::Vendor, with));
        assert_eq!(found, [None, odd(Usual::Turnover, 99, 200, 200)], "E19");
        // The public source never tells one.
        assert_eq!(check(SourceKind::Public, 0), None);
        let few = |moving| fewer(Usual::Moves, &moved(40, moving), once((day, &moved(40, 40))));
        assert_eq!((few(11), few(10).is_some()), (None, true), "thirty are a market");
        // Those of the day on which most had it, so that nothing sinks from day to day.
        let (most, less) = (moved(200, 160), moved(200, 90));
        let check = |moving| {
            let before = [(date("2026-01-09"), &less), (day, &most)];
            fewer(Usual::Moves, &moved(200, moving), before.into_iter())
        };
        assert_eq!((check(80), check(79)), (None, odd(Usual::Moves, 79, 160, 200)));
    }

    #[test]
    fn the_issues_of_a_day_are_those_of_the_day_before() {
        let day = date("2026-01-08");
        let before = seen(&rows(400, |_, _| {}));
        let check = |others: u32, percent, least| {
            let found = seen(&rows(400, |row, number| {
                if number < others {
                    row.code = (9_000 + number).to_string().parse().unwrap();
                }
            }));
            replaced(&found, (day, &before), percent, least)
        };
        let found = |issues| Some(Replaced { issues, of: 400, day });
        assert_eq!((check(40, 10, 30), check(41, 10, 30)), (None, found(41)), "E20");
        assert_eq!((check(8, 2, 3), check(9, 2, 3)), (None, found(9)), "Z9");
        assert_eq!(check(9, 2, 10), None);
        let few = seen(&rows(300, |_, _| {}));
        assert_eq!(replaced(&few, (day, &before), 2, 3), None);
        assert_eq!(replaced(&before, (day, &few), 2, 3), None);
    }

    #[test]
    fn closes_are_not_the_highs_of_the_market() {
        let day = date("2026-01-08");
        let of = |count: u32| {
            seen(&rows(200, |row, number| {
                let yen = |yen: u32| Some(Price::from_yen(i64::from(yen + number)));
                (row.low, row.open, row.high) = (yen(98), yen(99), yen(101));
                row.close = if number < count { row.high } else { yen(100) };
            }))
        };
        let check = |count, then| columns(Equal::High, &of(count), (day, &of(then)));
        let odd = Some(Oddity::Columns { what: Equal::High, issues: 121, of: 200, day });
        assert_eq!((check(120, 0), check(121, 60), check(121, 61)), (None, odd, None), "E21");
        assert_eq!(columns(Equal::Open, &of(200), (day, &of(0))), None);
    }

    #[test]
    fn prices_are_on_ticks() {
        let of = |few: u32, source| {
            off_tick(&rows(200, |row, number| {
                let price = if number < few { "1000.1" } else { "1000.5" };
                (row.low, row.source) = (Some(price.parse().unwrap()), source);
            }))
        };
        let first = "1300".parse().unwrap();
        let odd = Some(Oddity::OffTick { issues: 41, of: 200, first });
        let found = [40, 41].map(|few| of(few, SourceKind::Files));
        assert_eq!(found, [None, odd], "E17");
        assert_eq!(of(200, SourceKind::Public), None, "adjusted");
    }

    #[test]
    fn a_market_moves_by_less_than_a_twelfth() {
        let day = date("2026-01-08");
        let before = seen(&rows(200, |row, _| row.close = Some(Price::from_yen(1_000))));
        let check = |few: u32, close: i64, factor: f64| {
            let found = seen(&rows(200, |row, number| {
                row.close = Some(Price::from_yen(if number < few { close } else { 1_000 }));
                row.adjustment_factor = Some(if number < few { factor } else { 1.0 });
            }));
            market_move(&found, (day, &before), MARKET_MOVE_PERCENT_MAX, true)
        };
        assert_eq!(
            (check(200, 1_080, 1.0), check(100, 1_081, 1.0)),
            (None, check(101, 1_081, 1.0))
        );
        assert!(check(200, 919, 1.0).is_some_and(|told| told.contains("-8.1 %")), "Z8");
        assert_eq!(check(200, 500, 0.5), None, "splits counted in");
        assert_eq!(market_move(&seen(&rows(29, |_, _| {})), (day, &before), 8, true), None);
    }

    #[test]
    fn a_day_repeats_another_where_over_a_tenth_is_the_same() {
        let (first, second) = (date("2026-01-08"), seen(&rows(400, |_, _| {})));
        let check = |same: u32| {
            let others = rows(400, |row, number| {
                if number >= same {
                    row.volume = Some(101);
                }
            });
            repeated(&second, (first, &seen(&others)))
        };
        let odd = Oddity::Repeated { issues: 41, of: 400, day: first };
        assert_eq!((check(40), check(41)), (None, Some(odd)), "E3");
        // Wherever they are: a vendor that is half-way through loading a day has the first ones anew.
        let others = rows(400, |row, number| {
            if number < 200 {
                row.volume = Some(101);
            }
        });
        let half_way = repeated(&second, (first, &seen(&others)));
        assert_eq!(half_way, Some(Oddity::Repeated { issues: 200, of: 400, day: first }), "E3");
        // Four prices that moved are the same by chance only, whatever the volume.
        let moved = |volume| {
            seen(&rows(400, |row, _| {
                (row.high, row.volume) = (Some(Price::from_yen(1_000)), Some(volume));
            }))
        };
        let odd = Some(Oddity::Repeated { issues: 400, of: 400, day: first });
        assert_eq!(repeated(&moved(100), (first, &moved(200))), odd);
        // What was not traded is the same by itself, and a few issues are no market.
        let quiet = seen(&rows(400, |row, _| row.volume = Some(0)));
        assert_eq!(repeated(&quiet, (first, &quiet)), None);
        let few = seen(&rows(29, |_, _| {}));
        assert_eq!(repeated(&few, (first, &few)), None);
    }

    #[test]
    fn a_day_has_as_many_prices_as_the_day_beside() {
        let (first, all) = (date("2026-01-08"), seen(&rows(800, |_, _| {})));
        let of = |count: u32, prices: u32| {
            seen(&rows(count, |row, number| row.close = row.close.filter(|_| number < prices)))
        };
        let beside = (first, priced(&all));
        let check = |prices: u32, percent| priceless(&of(800, prices), beside, percent);
        let found = |priced| {
            Some(Priceless { priced, of: 800, day: first, priced_then: 800, of_then: 800 })
        };
        let [strange, odd] = [PRICED_PERCENT_MIN, ODD_PRICED_PERCENT_MIN];
        assert_eq!((check(760, strange), check(759, strange)), (None, found(759)), "Z1");
        assert_eq!((check(400, odd), check(399, odd), check(0, odd)), (None, found(399), found(0)));
        // A short answer is not complete, which is another rule, and thirty prices are no market.
        assert_eq!(priceless(&of(40, 40), beside, strange), None);
        let few = |prices| priceless(&of(100, prices), (first, (100, 100)), strange).is_some();
        assert_eq!([71, 70].map(few), [false, true]);
        assert_eq!(priceless(&of(400, 60), (first, (60, 400)), strange), None);
    }

    #[test]
    fn closes_stay_within_price_limits_of_the_day_beside() {
        let earlier = date("2026-01-08");
        let before = seen(&rows(200, |row, _| row.close = Some(Price::from_yen(1_000))));
        let after = |count: u32, yen: i64, factor: f64| {
            seen(&rows(200, |row, number| {
                let price = Some(Price::from_yen(if number < count { yen } else { 1_100 }));
                (row.open, row.high, row.low, row.close) = (price, price, price, price);
                row.adjustment_factor = Some(if number < count { factor } else { 1.0 });
            }))
        };
        let held = |found: &SeenDay, before, is_young| {
            jump(found, (earlier, before), Range::Any, is_young).map(|jump| (jump.issues, jump.of))
        };
        let check = |count, close, factor| held(&after(count, close, factor), &before, true);
        assert_eq!((check(1, 1_450, 1.0), check(1, 1_451, 1.0)), (None, Some((1, 200))), "Z2");
        assert_eq!((check(1, 550, 1.0), check(1, 549, 1.0)), (None, Some((1, 200))));
        assert_eq!(
            (check(3, 100, 0.1), check(3, 1_000, 0.1)),
            (None, Some((3, 200))),
            "splits count"
        );
        let found = jump(&after(2, 1_601, 1.0), (earlier, &before), Range::Any, true).unwrap();
        assert!(found.to_string().ends_with("the first is 1300"), "{found}");
        let beyond = |count: u32, close: i64, times: i64| {
            let found = after(count, close, 1.0);
            let found = jump(&found, (earlier, &before), Range::Daily { times }, true);
            found.map(|jump| (jump.is_odd(), jump.is_strange()))
        };
        let checked = [2, 3, 29, 30, 40, 41].map(|count| beyond(count, 1_301, 1).unwrap());
        let (no, strange, odd) = ((false, false), (false, true), (true, true));
        assert_eq!(checked, [no, strange, strange, strange, strange, odd], "E9, Z2");
        assert_eq!(
            (beyond(41, 1_300, 1), beyond(41, 699, 1), beyond(41, 700, 1)),
            (None, Some(odd), None)
        );
        assert_eq!(
            (beyond(41, 1_601, 2), beyond(41, 1_600, 2)),
            (Some(odd), None),
            "after a missing day"
        );
        // Any of its prices, not only the close.
        let mut high = after(0, 0, 1.0);
        high.values_mut().for_each(|seen| seen.prices[1] = Some(Price::from_yen(1_301)));
        let daily = Range::Daily { times: 1 };
        assert!(jump(&high, (earlier, &before), daily, true).is_some_and(|jump| jump.is_odd()));
        // Below 100 yen a price limit is 30 yen.
        let cheap = seen(&rows(200, |row, number| {
            row.close = Some(Price::from_yen(if number < 30 { 10 } else { 1_000 }));
        }));
        let check = |close| held(&after(30, close, 1.0), &cheap, true);
        assert_eq!((check(1), check(55), check(56)), (None, None, Some((30, 200))));
        // Where no factor is told nobody knows what compares.
        let untold = seen(&rows(200, |row, _| {
            (row.close, row.adjustment_factor) = (Some(Price::from_yen(9)), None);
        }));
        assert_eq!(held(&untold, &before, true), None);
        // A source that adjusts its prices has adjusted those of the last week by next to nothing.
        let public = |close: i64| {
            seen(&rows(200, |row, _| {
                row.close = Some(Price::from_yen(close));
                (row.source, row.adjustment_factor) = (SourceKind::Public, None);
            }))
        };
        let all = Some((200, 200));
        assert_eq!(
            (held(&public(9), &before, true), held(&public(1_100), &before, true)),
            (all, None)
        );
        assert_eq!(held(&public(9), &before, false), None);
        // Its own prices compare whenever they were.
        let earlier_public = public(1_000);
        assert_eq!(held(&public(9), &earlier_public, false), all);
        // Nor is anything known of raw prices after adjusted ones.
        assert_eq!(held(&after(30, 100_000, 1.0), &earlier_public, true), None);
    }

    #[test]
    fn volumes_are_those_of_a_day_after_another() {
        let day = date("2026-01-08");
        let of = |count: u32, few: u32, volume: u64| {
            seen(&rows(count, |row, number| {
                row.volume = Some(if number < few { volume } else { 10_001 });
            }))
        };
        let before = of(200, 0, 0);
        let odd = |times, issues| Some(Volumes { times, issues, of: 200, day });
        let check = |found: &SeenDay| odd_volumes(found, (day, &before));
        let found = [40, 41].map(|few| check(&of(200, few, 100)));
        assert_eq!(found, [None, odd(VOLUME_TIMES, 41)], "E10");
        let found = [100, 101].map(|few| check(&of(200, few, 1_000)));
        assert_eq!(found, [None, odd(MARKET_VOLUME_TIMES, 101)], "E10");
        assert_eq!(odd_volumes(&before, (day, &of(200, 41, 100))), odd(VOLUME_TIMES, 41));
        assert_eq!(check(&of(200, 200, 1_001)), None);
        assert_eq!(odd_volumes(&of(29, 29, 1), (day, &before)), None);
        let strange = |few| {
            let percent = STRANGE_VOLUMES_PERCENT_MAX;
            volumes(&of(600, few, 100), (day, &of(600, 0, 0)), VOLUME_TIMES, percent).is_some()
        };
        assert_eq!([29, 30, 31].map(strange), [false, false, true], "Z3");
    }

    #[test]
    fn few_rows_of_issues_that_are_not_listed_are_let_pass() {
        let codes = |count| rows(count, |_, _| {}).iter().map(|row| row.code).collect();
        let check = |rows, listed| unlisted(&codes(rows), &codes(listed));
        assert_eq!((check(22, 20), check(202, 200)), (None, None));
        assert_eq!(check(203, 200), Some(Oddity::Unlisted { rows: 3, listed: 200 }), "E1");
        assert_eq!(check(100, 200), None);
    }
}
