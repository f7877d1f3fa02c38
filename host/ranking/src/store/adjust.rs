//! Splits in the reference statement, by the rules of [`crate::RankQuery::adjusted`]: a table of
//! factors for each lag, and the columns of earlier days scaled by them. Everything in the text is an
//! integer or a fixed word of ours.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pricestore::sql::{adjusted_price, adjusted_volume};

use crate::formula::{Column, column_alias};

/// A table `f_<lag>`: for each ranked day and code with a split within the lag, the products of the new
/// and old shares in the order of their days; null where one is not known, or where nobody knows whether there
/// was a split.
pub(super) fn factors(lag: u32, (first_day, last_day): (usize, usize)) -> String {
    let days = format!("(SELECT unnest(range({first_day}, {last_day} + 1)) d)");
    format!(
        "f_{lag} AS (SELECT d, code_id, {} shares_new, {} shares_old FROM (\n    \
         SELECT d, day_no, code_id, shares_new, shares_old FROM split CROSS JOIN {days} \
         WHERE day_no > d - {lag} AND day_no <= d\n    \
         UNION ALL SELECT d, first_day, code_id, NULL, NULL FROM unknown_days CROSS JOIN {days} \
         WHERE last_day > d - {lag} AND first_day <= d\n    \
         UNION ALL SELECT d, day_no, code_id, NULL, NULL FROM gap CROSS JOIN issue CROSS JOIN {days} \
         WHERE day_no > d - {lag} AND day_no <= d) GROUP BY d, code_id),\n",
        product("shares_new"),
        product("shares_old")
    )
}

/// The rows of `lined_up` with the columns of earlier days scaled; `values` are all that are in it.
pub(super) fn adjusted(lined_up: &str, values: &[(Column, u32)]) -> String {
    let mut columns = "l.day_no, l.code_id, l.present".to_owned();
    for (column, lag) in values {
        let name = column_alias(*column, *lag);
        let scaled = match (*lag, column) {
            (0, _) => format!("l.{name}"),
            (_, Column::Volume) => scaled(*lag, &name, adjusted_volume),
            (_, Column::Open | Column::High | Column::Low | Column::Close) => {
                scaled(*lag, &name, adjusted_price)
            }
        };
        // Writing to a string cannot fail.
        let _ = write!(columns, ",\n      {scaled} {name}");
    }
    let mut sql = format!("(SELECT {columns}\n      FROM (SELECT * FROM {lined_up}) l");
    let lags: BTreeSet<u32> = values.iter().map(|(_, lag)| *lag).filter(|lag| *lag > 0).collect();
    for lag in lags {
        let _ = write!(
            sql,
            "\n      LEFT JOIN f_{lag} ON f_{lag}.d = l.day_no AND f_{lag}.code_id = l.code_id"
        );
    }
    sql.push(')');
    sql
}

/// A value where its row has no split to look across, else the scaled one; columns hold no 0 and
/// nothing infinite.
fn scaled(lag: u32, name: &str, adjusted: fn(&str, &str, &str) -> String) -> String {
    let (new, old) = (format!("f_{lag}.shares_new"), format!("f_{lag}.shares_old"));
    let scaled = adjusted(&format!("l.{name}"), &new, &old);
    format!(
        "CASE WHEN f_{lag}.d IS NULL OR {new} = {old} THEN l.{name} \
         WHEN isfinite({scaled}) AND {scaled} <> 0 THEN {scaled} END"
    )
}

/// The product of a column's values in the order of their days, as exact as a double is; null where one is.
fn product(column: &str) -> String {
    format!(
        "CASE WHEN count({column}) = count(*) THEN \
         list_aggregate(list({column} ORDER BY day_no), 'product') END"
    )
}
