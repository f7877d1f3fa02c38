//! Distance of the close to the daily price limit: issues about to hit a limit are at 0 percent.

use kumiki_formula_sdk::prelude::*;

/// The formula. Parameter: `side` (1 the upper limit, -1 the lower, 0 the nearer of the two).
#[derive(Debug)]
pub struct LimitDistance {
    side: i32,
}

/// The exchange's daily price limits: for base prices below the first number, the second is how far
/// the day may go either way (yen).
const WIDTHS: [(f64, f64); 33] = [
    (100.0, 30.0),
    (200.0, 50.0),
    (500.0, 80.0),
    (700.0, 100.0),
    (1e3, 150.0),
    (1.5e3, 300.0),
    (2e3, 400.0),
    (3e3, 500.0),
    (5e3, 700.0),
    (7e3, 1e3),
    (1e4, 1.5e3),
    (1.5e4, 3e3),
    (2e4, 4e3),
    (3e4, 5e3),
    (5e4, 7e3),
    (7e4, 1e4),
    (1e5, 1.5e4),
    (1.5e5, 3e4),
    (2e5, 4e4),
    (3e5, 5e4),
    (5e5, 7e4),
    (7e5, 1e5),
    (1e6, 1.5e5),
    (1.5e6, 3e5),
    (2e6, 4e5),
    (3e6, 5e5),
    (5e6, 7e5),
    (7e6, 1e6),
    (1e7, 1.5e6),
    (1.5e7, 3e6),
    (2e7, 4e6),
    (3e7, 5e6),
    (5e7, 7e6),
];
/// How far the day may go above the last line of the table.
const WIDEST: f64 = 1e7;
/// The smallest price, 1/10,000 yen.
const LOWEST: f64 = 0.0001;

/// The lowest and the highest price of a day, by the previous close.
fn limits(base: f64) -> (f64, f64) {
    // Nearly all prices are on the first lines.
    let line = WIDTHS.iter().find(|(below, _)| base < *below);
    let width = line.map_or(WIDEST, |(_, width)| *width);
    ((base - width).max(LOWEST), base + width)
}

impl Formula for LimitDistance {
    const DESCRIPTION: Description = Description {
        name: "limit-distance",
        version: env!("CARGO_PKG_VERSION"),
        summary: "Distance of the close to the daily price limit, in percent of the close; the limit \
                  follows from the previous close, and null stays null",
        parameters: &[Parameter {
            name: "side",
            description: "1 for the upper limit, -1 for the lower, 0 for the nearer of the two",
            default: 0.0,
            minimum: -1.0,
            maximum: 1.0,
        }],
    };

    fn new(values: &Values) -> Result<Self, String> {
        match values.get("side") {
            0.0 => Ok(Self { side: 0 }),
            side if side.abs() == 1.0 => Ok(Self { side: side as i32 }),
            side => Err(format!("parameter `side` is {side}; it must be -1, 0 or 1")),
        }
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::window(Column::Close, 0, 1)]
    }

    #[inline(always)]
    fn evaluate(&self, day: &Day) -> Vec<f64> {
        let distance = |(close, base): (&f64, &f64)| {
            if close.is_nan() || base.is_nan() {
                return f64::NAN;
            }
            let (low, high) = limits(*base);
            let yen = match self.side {
                0 => (close - low).min(high - close),
                1 => high - close,
                _ => close - low,
            };
            yen / close * 100.0
        };
        day.column(Column::Close, 0)
            .iter()
            .zip(day.column(Column::Close, 1))
            .map(distance)
            .collect()
    }
}

kumiki_formula_sdk::register_formula!(LimitDistance);

#[cfg(test)]
mod tests {
    use super::*;
    use kumiki_formula_sdk::testing::TestDay;

    fn distances(side: f64, closes: [f64; 3], before: [f64; 3]) -> Vec<f64> {
        let day = TestDay::new(3).with(Column::Close, 0, &closes).with(Column::Close, 1, &before);
        day.evaluate::<LimitDistance>(&[("side", side)]).unwrap()
    }

    #[test]
    fn distances_follow_the_table() {
        // 1,674 yen may move by 400 yen; 999 by 150 and 1,000 by 300.
        assert_eq!(limits(1_674.0), (1_274.0, 2_074.0));
        assert_eq!((limits(999.0).1, limits(1_000.0).1), (1_149.0, 1_300.0));
        assert_eq!((limits(6e7), limits(20.0).0), ((5e7, 7e7), LOWEST));
        let closes = [2_074.0, 2_000.0, 1_300.0];
        let upper = [0.0, 74.0 / 2_000.0 * 100.0, 774.0 / 1_300.0 * 100.0];
        assert_eq!(distances(1.0, closes, [1_674.0; 3]), upper);
        assert_eq!(distances(-1.0, closes, [1_674.0; 3])[2], 2.0);
        assert_eq!(distances(0.0, closes, [1_674.0; 3]), [0.0, upper[1], 2.0]);
    }

    #[test]
    fn null_stays_null() {
        let found = distances(0.0, [f64::NAN, 100.0, 100.0], [100.0, f64::NAN, 100.0]);
        assert!(found[0].is_nan() && found[1].is_nan() && found[2] == 50.0, "{found:?}");
    }

    #[test]
    fn the_side_is_one_of_three() {
        let refused = TestDay::new(0).evaluate::<LimitDistance>(&[("side", 0.5)]);
        assert_eq!(refused, Err("parameter `side` is 0.5; it must be -1, 0 or 1".to_owned()));
    }
}
