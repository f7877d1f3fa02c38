//! Business days without any price: holes of the data, which an answer shows as days without rows.

use std::collections::BTreeSet;

use domain::JstDate;
use domain::formula::Column;
use pricestore::DatasetStatus;

use super::snapshot::Snapshot;

/// The business days from `first` to `last`, both included, of which the snapshot has no close. Days that
/// the update job has told as missing are among them where the snapshot's calendar does not have them.
pub(super) fn find(
    snapshot: &Snapshot,
    dataset: Option<&DatasetStatus>,
    (first, last): (JstDate, JstDate),
) -> Vec<JstDate> {
    let days = snapshot.grid.days();
    let has_prices =
        |day: usize| snapshot.grid.stripe(day, Column::Close).iter().any(|close| !close.is_nan());
    let is_asked = |date: &JstDate| (first..=last).contains(date);
    let asked = days.iter().enumerate().filter(|(_, date)| is_asked(date));
    let empty = asked.filter(|(day, _)| !has_prices(*day)).map(|(_, date)| *date);
    let told = dataset.into_iter().flat_map(|dataset| {
        dataset.gaps.iter().chain(dataset.incomplete.iter().map(|day| &day.date))
    });
    let told = told.filter_map(|date| date.parse::<JstDate>().ok());
    // What was published since has its own say.
    let told = told.filter(|date| is_asked(date) && days.binary_search(date).is_err());
    empty.chain(told).collect::<BTreeSet<_>>().into_iter().collect()
}
