//! Rows are the same for the same seed, and look like a market.

use super::*;

#[test]
fn the_same_seed_makes_the_same_rows() {
    let market = Market::new(3, 300, 450);
    let rows =
        |seed: u64, place| Series::new(&Market::new(seed, 300, 450), place).collect::<Vec<_>>();
    assert_eq!(Series::new(&market, 17).collect::<Vec<_>>(), rows(3, 17));
    assert_ne!(rows(3, 17), rows(4, 17));
    assert_ne!(rows(3, 17), rows(3, 18));
    // A twin.
    assert_eq!(
        rows(3, 399).last().map(|row| row.prices),
        rows(3, 398).last().map(|row| row.prices)
    );
    assert_eq!(Series::new(&market, 0).count(), 300);
}

#[test]
fn codes_are_different_and_in_order() {
    for count in [1, 2, 26, 4_000, DAILY_CODES_MAX] {
        let codes = codes(count);
        assert_eq!(codes.len(), count);
        assert!(codes.is_sorted_by(|a, b| a < b), "{count}");
        assert!(codes.iter().all(|code| code.len() == 4), "{count}");
    }
}

#[test]
fn ten_years_leave_prices_where_an_exchange_has_them() {
    let market = Market::new(7, 2_450, 200);
    let last: Vec<f64> = (0..200)
        .filter_map(|place| Series::new(&market, place).filter_map(|row| row.prices[3]).last())
        .collect();
    let below = |yen: f64| last.iter().filter(|close| **close < yen).count();
    assert!(below(20.0) < 10 && below(1_000.0) > 20 && below(20_000.0) > 150, "{last:?}");
}
