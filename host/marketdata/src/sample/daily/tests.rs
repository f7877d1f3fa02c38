//! Rows are the same for the same seed, and look like a market.

use super::series::Row;
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
fn the_first_issues_are_what_one_looks_for() {
    let market = Market::new(3, 300, 450);
    let days = |place| -> Vec<usize> { Series::new(&market, place).map(|row| row.day).collect() };
    assert_eq!(days(1).last(), Some(&134), "delisted");
    assert_eq!(days(2).first(), Some(&165), "listed");
    let rows: Vec<Row> = Series::new(&market, 3).collect();
    let split = rows.iter().position(|row| row.factor != 1.0).unwrap();
    assert_eq!((rows[split].factor, rows[split].day >= 150), (0.5, true));
    let close = |row: &Row| row.prices[3].unwrap();
    let jump = close(&rows[split]) / close(&rows[split - 1]);
    assert!((0.35..0.65).contains(&jump), "{jump}");
    assert!(rows.iter().filter(|row| row.factor != 1.0).count() == 1 && rows.len() > 290);
    // A reverse one, and a sample that is too short for any.
    let factors: Vec<f64> =
        Series::new(&market, 43).map(|row| row.factor).filter(|factor| *factor != 1.0).collect();
    assert_eq!(factors, [10.0]);
    let short = Market::new(3, 19, 450);
    assert!(Series::new(&short, 3).all(|row| row.factor == 1.0));
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
