//! When the trades of a day happen: many after the opening and before the close, few at noon.

use domain::JstDate;
use domain::session::{AFTERNOON_OPEN, CLOSE, MORNING_CLOSE, MORNING_OPEN, close_of};
use domain::time::NANOS_PER_MINUTE;

use domain::Random;

pub(super) const MICROS_PER_MINUTE: u64 = 60_000_000;
/// Since 2024-11-05 continuous trading ends five minutes before the closing auction.
const CLOSING_CALL_MINUTES: u64 = 5;

/// When a trade is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TradeTime {
    /// Microseconds after midnight in Japan.
    pub(super) micros: u64,
    /// Whether an auction printed then.
    pub(super) auction: bool,
}

/// How busy each minute of a day is.
#[derive(Debug)]
pub(super) struct DayShape {
    /// Minutes after midnight, each with the sum of all weights up to and including its own.
    minutes: Vec<(u64, u64)>,
    close_minute: u64,
}

impl DayShape {
    pub(super) fn of(date: JstDate) -> Self {
        let close = close_of(date);
        let close_minute = close / NANOS_PER_MINUTE;
        let call = if close == CLOSE { CLOSING_CALL_MINUTES } else { 0 };
        let end = close_minute - call;
        let morning = MORNING_OPEN / NANOS_PER_MINUTE..MORNING_CLOSE / NANOS_PER_MINUTE;
        let afternoon = AFTERNOON_OPEN / NANOS_PER_MINUTE..end;
        let mut sum = 0;
        let minutes = morning
            .clone()
            .chain(afternoon.clone())
            .map(|minute| {
                let after_open = minute - morning.start;
                let after_noon = minute.saturating_sub(afternoon.start);
                let is_afternoon = minute >= afternoon.start;
                sum += 100 + 15 * 30_u64.saturating_sub(after_open);
                if is_afternoon {
                    sum += 10 * 15_u64.saturating_sub(after_noon);
                    sum += 15 * 20_u64.saturating_sub(end - minute);
                }
                (minute, sum)
            })
            .collect();
        Self { minutes, close_minute }
    }

    /// So many times in rising order, the auctions among them; the closing auction is always the
    /// last one, the opening auction the first one of two or more.
    pub(super) fn times(&self, random: &mut Random, count: usize) -> Vec<TradeTime> {
        let minute_of = |nanos| nanos / NANOS_PER_MINUTE * MICROS_PER_MINUTE;
        let auctions = [
            self.close_minute * MICROS_PER_MINUTE + random.below(90_000),
            minute_of(MORNING_OPEN) + 20_000 + random.below(400_000),
            minute_of(MORNING_CLOSE) + random.below(60_000),
            minute_of(AFTERNOON_OPEN) + 1_000 + random.below(200_000),
        ];
        let opening = auctions[1];
        let mut times: Vec<TradeTime> = auctions
            .into_iter()
            .take(count)
            .map(|micros| TradeTime { micros, auction: true })
            .collect();
        for _ in times.len()..count {
            times.push(TradeTime {
                micros: self.continuous(random).max(opening + 1),
                auction: false,
            });
        }
        times.sort_unstable_by_key(|time| (time.micros, time.auction));
        times
    }

    fn continuous(&self, random: &mut Random) -> u64 {
        let total = self.minutes.last().map_or(1, |(_, sum)| *sum);
        let drawn = random.below(total);
        let index = self.minutes.partition_point(|(_, sum)| *sum <= drawn);
        let minute = self.minutes.get(index).map_or(0, |(minute, _)| *minute);
        // Rows that meet are moved on by microseconds later; the margin keeps them in their minute.
        minute * MICROS_PER_MINUTE + random.below(MICROS_PER_MINUTE - 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str, count: usize) -> Vec<TradeTime> {
        let shape = DayShape::of(text.parse().unwrap());
        shape.times(&mut Random::new(&[1]), count)
    }

    #[test]
    fn days_have_four_auctions_and_two_busy_ends() {
        for (date, end) in [("2024-11-01", 15 * 60), ("2024-11-05", 15 * 60 + 30)] {
            let times = day(date, 10_000);
            let minutes: Vec<u64> =
                times.iter().map(|time| time.micros / MICROS_PER_MINUTE).collect();
            let auctions = times.iter().filter(|time| time.auction);
            let auctions: Vec<u64> = auctions.map(|time| time.micros / MICROS_PER_MINUTE).collect();
            assert_eq!(auctions, [540, 690, 750, end]);
            assert!(times[0].auction && times[9_999].auction);
            let between =
                |from, to| minutes.iter().filter(|minute| (from..to).contains(*minute)).count();
            assert!(between(540, 550) > 2 * between(600, 610));
            assert!(between(end - 15, end) > between(800, 815));
            assert_eq!(between(691, 750), 0);
            assert_eq!(minutes.len(), 10_000);
        }
        assert_eq!(day("2025-01-06", 1)[0].micros / MICROS_PER_MINUTE, 15 * 60 + 30);
    }
}
