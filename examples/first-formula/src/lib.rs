//! Where in the range of the last `days` days an issue closed: 0 at the lowest price, 100 at the
//! highest.

use kumiki_formula_sdk::prelude::*;

/// The formula. Parameter: `days`.
pub struct ClosedHigh {
    days: u32,
}

impl Formula for ClosedHigh {
    const DESCRIPTION: Description = Description {
        name: "closed-high",
        version: env!("CARGO_PKG_VERSION"),
        summary: "Place of the close between the lowest and the highest price of the last days, in percent",
        parameters: &[Parameter {
            name: "days",
            description: "business days, today included",
            default: 20.0,
            minimum: 1.0,
            maximum: 100.0,
        }],
    };

    fn new(values: &Values) -> Result<Self, String> {
        Ok(Self { days: values.whole("days")? })
    }

    fn inputs(&self) -> Vec<Input> {
        let last = self.days - 1;
        vec![
            Input::at(Column::Close, 0),
            Input::window(Column::High, 0, last),
            Input::window(Column::Low, 0, last),
        ]
    }

    #[inline(always)]
    fn evaluate(&self, day: &Day) -> Vec<f64> {
        let value = |(issue, close): (usize, &f64)| {
            // `max` and `min` leave out days without a price, which are "not a number".
            let high = |lag| day.column(Column::High, lag)[issue];
            let low = |lag| day.column(Column::Low, lag)[issue];
            let highest = (0..self.days).map(high).fold(f64::NAN, f64::max);
            let lowest = (0..self.days).map(low).fold(f64::NAN, f64::min);
            if highest > lowest { (close - lowest) / (highest - lowest) * 100.0 } else { f64::NAN }
        };
        day.column(Column::Close, 0).iter().enumerate().map(value).collect()
    }
}

kumiki_formula_sdk::register_formula!(ClosedHigh);

#[cfg(test)]
mod tests {
    use super::*;
    use kumiki_formula_sdk::testing::TestDay;

    #[test]
    fn the_place_in_the_range_is_a_percentage() {
        let day = TestDay::new(2)
            .with(Column::Close, 0, &[105.0, 50.0])
            .with(Column::High, 0, &[106.0, 50.0])
            .with(Column::High, 1, &[110.0, f64::NAN])
            .with(Column::Low, 0, &[104.0, 50.0])
            .with(Column::Low, 1, &[100.0, f64::NAN]);
        let found = day.evaluate::<ClosedHigh>(&[("days", 2.0)]).unwrap();
        assert_eq!(found[0], 50.0);
        assert!(found[1].is_nan(), "a day without a range has no place in it");
    }
}
