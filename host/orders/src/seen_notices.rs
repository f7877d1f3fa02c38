//! Detects duplicate notices: at each connection the broker sends those of the day again.
//!
//! Each notice is applied once. Fills have numbers of their own, by which their orders know them.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher as _;

use domain::JstDate;
use domain::order_mapping::{BrokerNotice, Field};
use venues::web_broker::frame;

use crate::limits::NOTICES_KNOWN_MAX;

/// Whether a notice has arrived before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It has not.
    First,
    /// It has.
    Again,
    /// Unknown: there is no room for one more.
    Unknown,
}

/// The notices of today and of the day before, by the hash of their identity.
#[derive(Debug, Default)]
pub(crate) struct SeenNotices {
    hasher: RandomState,
    /// The day on which each arrived first.
    notices: HashMap<u64, JstDate>,
    today: Option<JstDate>,
}

impl SeenNotices {
    /// Remembers a notice, which was read from these fields.
    pub(crate) fn take(
        &mut self,
        notice: &BrokerNotice,
        fields: &[Field],
        today: JstDate,
    ) -> Arrival {
        if self.today != Some(today) {
            // A business day lasts past midnight.
            self.notices.retain(|_, came| Some(*came) >= today.pred_opt());
            self.today = Some(today);
        }
        let pairs: Vec<(&str, &str)> = frame::identity(fields)
            .into_iter()
            .map(|field| (field.name.as_str(), field.value.as_str()))
            .collect();
        let hash = self.hasher.hash_one((notice.kind as u8, &notice.venue_order_id, pairs));
        let is_full = self.notices.len() >= NOTICES_KNOWN_MAX;
        match self.notices.entry(hash) {
            Entry::Occupied(_) => Arrival::Again,
            Entry::Vacant(_) if is_full => Arrival::Unknown,
            Entry::Vacant(place) => {
                place.insert(today);
                Arrival::First
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::order_mapping::NoticeKind;

    use super::*;

    fn notice(kind: NoticeKind) -> BrokerNotice {
        BrokerNotice {
            kind,
            venue_order_id: "1".into(),
            business_day: None,
            symbol: "7203".into(),
            side: None,
            quantity: None,
            fill: None,
            time: None,
            reason: None,
        }
    }

    fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
        pairs.iter().map(|(name, value)| Field::new(*name, *value)).collect()
    }

    fn day(day: u32) -> JstDate {
        JstDate::from_ymd_opt(2026, 11, day).unwrap()
    }

    #[test]
    fn a_notice_is_known_again_by_its_number_or_by_all_of_its_fields() {
        let mut seen = SeenNotices::default();
        let mut take =
            |kind, pairs: &[(&str, &str)]| seen.take(&notice(kind), &fields(pairs), day(20));
        let done = NoticeKind::Updated;
        let numbered = [("p_no", "1"), ("p_ALT", "1"), ("p_ED", "20261120"), ("p_ENO", "7")];
        assert_eq!(take(done, &numbered), Arrival::First);
        let again = [("p_ED", "20261120"), ("p_ENO", "7"), ("p_ALT", "0"), ("p_CRSR", "100")];
        assert_eq!(take(done, &again), Arrival::Again);
        assert_eq!(take(NoticeKind::Canceled, &again), Arrival::First, "it tells something else");
        let next_day = [("p_ED", "20261121"), ("p_ENO", "7")];
        assert_eq!(take(done, &next_day), Arrival::First);
        let bare = [("p_no", "1"), ("p_date", "x"), ("p_ALT", "1"), ("p_CRSR", "100")];
        assert_eq!(take(done, &bare), Arrival::First);
        let bare = [("p_no", "9"), ("p_CRSR", "100"), ("p_date", "y"), ("p_ALT", "0")];
        assert_eq!(take(done, &bare), Arrival::Again);
        assert_eq!(take(done, &[("p_CRSR", "200")]), Arrival::First);
    }

    #[test]
    fn notices_are_known_until_their_business_day_is_over_and_in_a_limited_number() {
        let mut seen = SeenNotices::default();
        let notice = notice(NoticeKind::Updated);
        let numbered = |number: usize| fields(&[("p_ED", "1"), ("p_ENO", &number.to_string())]);
        for number in 0..NOTICES_KNOWN_MAX {
            assert_eq!(seen.take(&notice, &numbered(number), day(20)), Arrival::First);
        }
        assert_eq!(seen.take(&notice, &numbered(NOTICES_KNOWN_MAX), day(20)), Arrival::Unknown);
        assert_eq!(seen.take(&notice, &numbered(1), day(21)), Arrival::Again);
        assert_eq!(seen.take(&notice, &numbered(1), day(22)), Arrival::First);
    }
}
