//! The normal distribution, to some fifteen digits, from nothing but `exp` and arithmetic.

/// Terms after which either expansion has long converged where it is used.
const TERMS: u32 = 200;
/// From here on the continued fraction converges faster than the series.
const TAIL_FROM: f64 = 3.0;
/// Halvings of an interval that leave neighbouring numbers.
const HALVINGS: u32 = 200;
/// Beyond this many deviations no tail is left in floating point.
const FARTHEST: f64 = 38.0;

/// The share of a standard normal distribution above `x`.
pub(super) fn upper_tail(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - upper_tail(-x);
    }
    let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    if x < TAIL_FROM {
        return 0.5 - density * odd_series(x);
    }
    // Mills' ratio 1 / (x + 1 / (x + 2 / (x + ...))), from its far end.
    let far_end = (1..=TERMS).rev().fold(x, |rest, term| x + f64::from(term) / rest);
    density / far_end
}

/// `x + x^3 / 3 + x^5 / (3 * 5) + ...`
fn odd_series(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for step in 1..=TERMS {
        term *= x * x / f64::from(2 * step + 1);
        sum += term;
    }
    sum
}

/// The number above which a share of `tail` of the distribution lies; above 0 up to 0.5.
pub(super) fn above_which(tail: f64) -> f64 {
    debug_assert!(tail > 0.0 && tail <= 0.5, "{tail}");
    let (mut low, mut high) = (0.0, FARTHEST);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if upper_tail(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of tables, which any statistics package gives too.
    #[test]
    fn tails_are_those_of_tables() {
        for (x, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (1.959_963_984_540_054, 0.025),
            (2.999_999, 0.001_349_902_464),
            (3.0, 0.001_349_898_031_630_094_6),
            (6.0, 9.865_876_450_376_98e-10),
        ] {
            let found = upper_tail(x);
            assert!((found / tail - 1.0).abs() < 1e-9, "{x}: {found}, not {tail}");
            assert!((upper_tail(-x) + found - 1.0).abs() < 1e-15, "{x}");
        }
    }

    #[test]
    fn the_two_expansions_meet() {
        let (series, fraction) = (upper_tail(TAIL_FROM - 1e-13), upper_tail(TAIL_FROM));
        assert!((series / fraction - 1.0).abs() < 1e-11, "{series} {fraction}");
    }

    #[test]
    fn quantiles_are_the_inverse() {
        for tail in [0.5, 0.25, 0.1, 0.025, 1e-3, 1e-6, 1e-7] {
            let x = above_which(tail);
            assert!((upper_tail(x) / tail - 1.0).abs() < 1e-10, "{tail}: {x}");
        }
        assert!((above_which(0.025) - 1.959_963_984_540_054).abs() < 1e-12);
    }
}
