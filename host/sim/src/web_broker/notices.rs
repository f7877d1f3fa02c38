//! Notices of orders (`EC`), in the vendor's layout.

use domain::Price;

use super::broker::Broker;
use super::config::Form;
use super::event_log::EventKind;
use super::order::State;
use super::{times, wire};

/// A price with six decimals.
pub(crate) fn six(price: Price) -> String {
    let units = price.units();
    format!("{}.{:04}00", units / 10_000, units % 10_000)
}

/// A price with four decimals.
pub(crate) fn four(price: Price) -> String {
    let units = price.units();
    format!("{}.{:04}", units / 10_000, units % 10_000)
}

impl Broker {
    /// Puts down a notice of an order: `kind` is `p_NT`.
    pub(crate) fn notice(&mut self, index: usize, kind: &'static str, fill: Option<(Price, u64)>) {
        let now = times::second(self.clock());
        self.orders[index].branch += 1;
        let order = &self.orders[index];
        let (terms, text) = (&order.terms, |text: &str| text.to_owned());
        let issue = &self.issues[terms.issue];
        let (canceled, lapsed) = match order.state {
            State::Canceled => (order.ended(), 0),
            State::Lapsed | State::Refused => (0, order.ended()),
            _ => (0, 0),
        };
        let accepted = match order.state {
            State::Refused => "2",
            State::Lapsed if order.filled > 0 => "3",
            State::Lapsed if order.is_carried => "5",
            State::Lapsed => "4",
            _ => "1",
        };
        let price_kind = if terms.price.is_some() { "2" } else { "1" };
        let happened = matches!(kind, "11" | "12" | "13");
        let lasts = terms.expires.map_or_else(|| text("00000000"), times::day);
        let mut items = vec![
            ("p_NT", text(kind)),
            ("p_ON", order.number.to_string()),
            ("p_ED", times::day(order.day)),
            ("p_ST", text("1")),
            ("p_IC", issue.symbol.clone()),
            ("p_MC", text("00")),
            ("p_BBKB", terms.side.to_string()),
            ("p_THKB", terms.credit.to_string()),
            ("p_CRSJ", terms.condition.to_string()),
            ("p_CRPRKB", text(price_kind)),
            ("p_CRPR", six(terms.price.unwrap_or_default())),
            ("p_CRSR", terms.quantity.to_string()),
            ("p_CRTKSR", canceled.to_string()),
            ("p_CREPSR", lapsed.to_string()),
            ("p_CREXSR", order.filled.to_string()),
            ("p_ODST", text(accepted)),
            ("p_KOFG", text(if order.is_carried { "1" } else { "0" })),
            ("p_TTST", text("0")),
            ("p_EXST", text(order.fill_status())),
            ("p_LMIT", lasts),
            ("p_EPRC", String::new()),
            ("p_EXPR", fill.map(|(price, _)| six(price)).unwrap_or_default()),
            ("p_EXSR", fill.map(|(_, shares)| shares.to_string()).unwrap_or_default()),
            ("p_EXRC", text(if order.state == State::Refused { "0001" } else { "" })),
            ("p_EXDT", if happened { now } else { String::new() }),
            ("p_IN", wire::base64(&wire::shift_jis(&issue.name))),
        ];
        if self.config.form == Form::Spec {
            items.insert(0, ("p_eda_no", order.branch.to_string()));
        }
        self.log.push(EventKind::Ec, items);
        self.keep_books();
    }
}
