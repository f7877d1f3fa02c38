//! One day's columns.

use crate::model::{Column, Input};

/// One day: a value for each issue in each column that the formula declared.
#[derive(Debug, Clone, Copy)]
pub struct Day<'a> {
    inputs: &'a [Input],
    rows: usize,
    values: &'a [f64],
}

impl<'a> Day<'a> {
    /// A day over the values of all lags of all inputs, one after the other.
    ///
    /// # Panics
    /// When there are more or fewer values.
    #[must_use]
    pub fn new(inputs: &'a [Input], rows: usize, values: &'a [f64]) -> Self {
        let lags: usize = inputs.iter().map(|input| input.lags()).sum();
        assert_eq!(values.len(), lags * rows, "values for {lags} lags of {rows} issues");
        Self { inputs, rows, values }
    }

    /// Issues of the day.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A column `lag` business days before the day: a value for each issue, "not a number" for null.
    ///
    /// # Panics
    /// When the formula did not declare it among its inputs.
    #[must_use]
    pub fn column(&self, column: Column, lag: u32) -> &'a [f64] {
        let mut start = 0;
        for input in self.inputs {
            if input.column == column && (input.first_lag..=input.last_lag).contains(&lag) {
                let place = start + (lag - input.first_lag) as usize;
                return &self.values[place * self.rows..(place + 1) * self.rows];
            }
            start += input.lags();
        }
        panic!("{column:?} at lag {lag} is not among the inputs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_and_lag() {
        let inputs = [
            Input::at(Column::Close, 0),
            Input::window(Column::Volume, 1, 2),
            Input::at(Column::Close, 9),
        ];
        let values: Vec<f64> = (0..8).map(f64::from).collect();
        let day = Day::new(&inputs, 2, &values);
        assert_eq!(day.column(Column::Close, 0), [0.0, 1.0]);
        assert_eq!(day.column(Column::Volume, 1), [2.0, 3.0]);
        assert_eq!(day.column(Column::Volume, 2), [4.0, 5.0]);
        assert_eq!((day.column(Column::Close, 9), day.rows()), (&[6.0, 7.0][..], 2));
    }

    #[test]
    #[should_panic(expected = "Open at lag 1 is not among the inputs")]
    fn what_was_not_declared_is_not_there() {
        let _ = Day::new(&[Input::at(Column::Open, 0)], 1, &[1.0]).column(Column::Open, 1);
    }
}
