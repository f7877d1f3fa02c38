//! The probability of backtest overfitting, by combinatorially symmetric cross-validation (Bailey,
//! Borwein, Lopez de Prado and Zhu, 2015).
//!
//! Of the daily returns of a run only the mean and the squared deviations of each block of days are
//! kept: a Sharpe ratio over any choice of blocks follows from them, and memory does not grow with
//! the period.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{OVERFITTING_DAYS_MIN, RETURN_BLOCKS};

/// Blocks of one half.
const HALF: u32 = RETURN_BLOCKS as u32 / 2;
/// Deviations smaller than this part of the mean are rounding.
const ROUNDING: f64 = 1e-24;

/// The daily returns of a run, summed up in [`RETURN_BLOCKS`] blocks of neighbouring days.
#[derive(Debug, Clone, PartialEq)]
pub struct ReturnBlocks([ReturnBlock; RETURN_BLOCKS]);

/// Some days.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ReturnBlock {
    days: f64,
    mean: f64,
    /// Sum of the squares of the differences from the mean.
    squares: f64,
}

impl ReturnBlocks {
    /// The blocks of these returns; none of fewer than [`OVERFITTING_DAYS_MIN`] days. Where the days
    /// cannot be shared out evenly, the first blocks have one more.
    #[must_use]
    pub fn of(daily: &[f64]) -> Option<Self> {
        if daily.len() < OVERFITTING_DAYS_MIN {
            return None;
        }
        let (each, more) = (daily.len() / RETURN_BLOCKS, daily.len() % RETURN_BLOCKS);
        let mut rest = daily;
        let mut blocks = [ReturnBlock::default(); RETURN_BLOCKS];
        for (index, block) in blocks.iter_mut().enumerate() {
            let (days, after) = rest.split_at(each + usize::from(index < more));
            *block = ReturnBlock::of(days);
            rest = after;
        }
        Some(Self(blocks))
    }

    /// Mean per standard deviation of the days in the blocks of a half, not per year; 0 where the
    /// returns do not differ.
    fn sharpe(&self, half: &[usize]) -> f64 {
        let blocks = || half.iter().map(|index| &self.0[*index]);
        let days: f64 = blocks().map(|block| block.days).sum();
        let mean = blocks().map(|block| block.days * block.mean).sum::<f64>() / days;
        let squares: f64 = blocks()
            .map(|block| {
                let apart = block.mean - mean;
                block.squares + block.days * apart * apart
            })
            .sum();
        if squares <= ROUNDING * days * mean * mean {
            return 0.0;
        }
        mean / (squares / (days - 1.0)).sqrt()
    }
}

impl ReturnBlock {
    fn of(days: &[f64]) -> Self {
        let count = days.len() as f64;
        let mean = days.iter().sum::<f64>() / count;
        let square = |day: &f64| (day - mean) * (day - mean);
        Self { days: count, mean, squares: days.iter().map(square).sum() }
    }
}

/// Whether all runs have the same returns, as far as their blocks tell: there is nothing to choose.
#[must_use]
pub fn are_all_equal(runs: &[&ReturnBlocks]) -> bool {
    runs.windows(2).all(|pair| pair[0] == pair[1])
}

/// Of all ways to choose half of the blocks, those in which the best run of that half is in the lower
/// half of the runs on the other blocks; counted as `(of these, of all)`. None for fewer than two
/// runs.
#[must_use]
pub fn overfitted_choices(runs: &[&ReturnBlocks]) -> Option<(u32, u32)> {
    if runs.len() < 2 {
        return None;
    }
    let (mut overfitted, mut all) = (0, 0);
    // A choice and its complement look at the same two halves, so those with the first block give
    // all of them.
    for choice in (1_u32..1 << RETURN_BLOCKS).step_by(2).filter(|one| one.count_ones() == HALF) {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for index in 0..RETURN_BLOCKS {
            if choice >> index & 1 == 1 { one.push(index) } else { other.push(index) }
        }
        let sharpes = |half: &[usize]| -> Vec<f64> {
            runs.iter().map(|blocks| blocks.sharpe(half)).collect()
        };
        let (one, other) = (sharpes(&one), sharpes(&other));
        overfitted += u32::from(best_is_in_lower_half(&one, &other));
        overfitted += u32::from(best_is_in_lower_half(&other, &one));
        all += 2;
    }
    Some((overfitted, all))
}

/// Whether the best by `chosen_on` (of equal ones the first) ranks in the lower half by `tested_on`:
/// its logit ln(w / (1 - w)) is at most 0, with w its rank from below per number of runs and one.
/// Equal ones share the mean of their ranks.
fn best_is_in_lower_half(chosen_on: &[f64], tested_on: &[f64]) -> bool {
    let mut best = 0;
    for (run, sharpe) in chosen_on.iter().enumerate() {
        if *sharpe > chosen_on[best] {
            best = run;
        }
    }
    let value = tested_on[best];
    let below = tested_on.iter().filter(|other| **other < value).count();
    let equal = tested_on.iter().filter(|other| **other == value).count();
    // The rank is below + (equal + 1) / 2, and w <= 1/2 when twice the rank is at most runs + 1.
    2 * below + equal <= tested_on.len()
}

/// In files: means and squares of the blocks in turn, and the days of each, as the shortest texts that
/// give the same bits again.
impl Serialize for ReturnBlocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text =
            |block: &ReturnBlock| format!("{} {:e} {:e}", block.days, block.mean, block.squares);
        self.0.iter().map(text).collect::<Vec<_>>().join(",").serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReturnBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("these are no blocks of returns");
        let mut blocks = [ReturnBlock::default(); RETURN_BLOCKS];
        let mut parts = text.split(',');
        for block in &mut blocks {
            let mut numbers = parts.next().ok_or_else(wrong)?.split(' ');
            let mut number = || -> Option<f64> { numbers.next()?.parse().ok() };
            let (days, mean, squares) = (number(), number(), number());
            *block = ReturnBlock {
                days: days.ok_or_else(wrong)?,
                mean: mean.ok_or_else(wrong)?,
                squares: squares.ok_or_else(wrong)?,
            };
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(Self(blocks)) }
    }
}

impl JsonSchema for ReturnBlocks {
    fn schema_name() -> Cow<'static, str> {
        "ReturnBlocks".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "The daily returns in 16 blocks of neighbouring days: of each its days, \
                the mean, and the sum of the squared differences from it; blanks between the \
                numbers, commas between the blocks.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Random;

    fn returns(seed: u64, days: usize, drift: f64) -> Vec<f64> {
        let mut random = Random::of_seed(seed);
        (0..days).map(|_| drift + (random.below(20_001) as f64 - 10_000.0) / 1e6).collect()
    }

    fn share(runs: &[Vec<f64>]) -> f64 {
        let blocks: Vec<ReturnBlocks> =
            runs.iter().map(|run| ReturnBlocks::of(run).unwrap()).collect();
        let (overfitted, all) = overfitted_choices(&blocks.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(all, 12_870);
        f64::from(overfitted) / f64::from(all)
    }

    #[test]
    fn fewer_days_than_two_in_a_block_say_nothing() {
        assert!(ReturnBlocks::of(&returns(1, OVERFITTING_DAYS_MIN - 1, 0.0)).is_none());
        assert!(ReturnBlocks::of(&returns(1, OVERFITTING_DAYS_MIN, 0.0)).is_some());
    }

    #[test]
    fn a_run_that_is_better_everywhere_is_not_overfitted_and_noise_is() {
        let noise: Vec<Vec<f64>> = (0..12).map(|seed| returns(seed, 90, 0.0)).collect();
        let mut skilled = noise.clone();
        skilled.push(returns(99, 90, 0.02));
        assert_eq!(share(&skilled), 0.0);
        assert!(share(&noise) > 0.1, "{}", share(&noise));
        assert!(overfitted_choices(&[]).is_none());
    }

    #[test]
    fn runs_that_do_the_same_are_in_the_middle() {
        let same = vec![returns(5, 40, 0.001); 4];
        assert_eq!(share(&same), 1.0, "a rank in the middle is no better than half");
        let flat = vec![vec![0.0; 40]; 3];
        assert_eq!(share(&flat), 1.0);
    }

    #[test]
    fn blocks_survive_their_text_to_the_last_bit() {
        for seed in 0..50 {
            let blocks = ReturnBlocks::of(&returns(seed, 32 + seed as usize, 1e-7)).unwrap();
            let text = serde_json::to_string(&blocks).unwrap();
            assert_eq!(serde_json::from_str::<ReturnBlocks>(&text).unwrap(), blocks);
        }
        for wrong in ["\"\"", "\"1 2 3\"", "7"] {
            assert!(serde_json::from_str::<ReturnBlocks>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn blocks_give_the_sharpe_ratio_of_their_days() {
        let daily = returns(3, 37, 0.0005);
        let blocks = ReturnBlocks::of(&daily).unwrap();
        // 37 days are five blocks of three days and eleven of two.
        let first: Vec<f64> = daily[..6].iter().chain(&daily[15..17]).copied().collect();
        let wanted = results::statistics::sharpe_of(&first).unwrap() / 252.0_f64.sqrt();
        let found = blocks.sharpe(&[0, 1, 5]);
        assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
    }
}
