//! One order as the broker keeps it.

use domain::{JstDate, Money, Price};

/// The first order's number; the others follow it.
pub(crate) const FIRST_NUMBER: u64 = 20_000_001;

/// What a new order asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Which issue, by its place among them.
    pub(crate) issue: usize,
    /// `1` specific, `3` general, `5` NISA.
    pub(crate) tax: char,
    /// `sBaibaiKubun`: `1` sell, `3` buy, `5` genwatasi, `7` genbiki.
    pub(crate) side: char,
    /// `sCondition`: `0` none, `2` open, `4` close, `6` funari.
    pub(crate) condition: char,
    /// `sGenkinShinyouKubun`: `0` cash, `2` and `6` new, `4` and `8` repay.
    pub(crate) credit: char,
    /// Shares, what is filled included.
    pub(crate) quantity: u64,
    /// Limit; none: market.
    pub(crate) price: Option<Price>,
    /// Trigger of a stop.
    pub(crate) trigger: Option<Price>,
    /// Last day; none: today only.
    pub(crate) expires: Option<JstDate>,
    /// Margin positions that it closes, and shares of each.
    pub(crate) closes: Vec<(u64, u64)>,
}

impl Terms {
    pub(crate) fn is_buy(&self) -> bool {
        matches!(self.side, '3' | '7')
    }

    pub(crate) fn opens_position(&self) -> bool {
        matches!(self.credit, '2' | '6')
    }

    pub(crate) fn closes_position(&self) -> bool {
        matches!(self.credit, '4' | '8')
    }

    /// Whether a margin position is turned into shares, or shares given for it.
    pub(crate) fn is_settlement(&self) -> bool {
        matches!(self.side, '5' | '7')
    }

    /// `sOrderBensaiKubun` of the order and of positions that it opens.
    pub(crate) fn repayment(&self) -> &'static str {
        match self.credit {
            '2' | '4' => "26",
            '6' | '8' => "36",
            _ => "00",
        }
    }
}

/// A change that is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) quantity: Option<u64>,
    pub(crate) price: Option<Price>,
    pub(crate) trigger: Option<Price>,
    pub(crate) expires: Option<JstDate>,
}

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Working, and nothing was changed.
    Working,
    /// A change, a cancel is under way.
    Changing(Change),
    Canceling,
    /// Working; the last change was done, failed; the last cancel failed.
    Changed,
    ChangeFailed,
    CancelFailed,
    /// Over.
    Filled,
    Canceled,
    Lapsed,
    /// The exchange refused it.
    Refused,
}

impl State {
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Filled | Self::Canceled | Self::Lapsed | Self::Refused)
    }
}

/// Shares that were filled at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FillRow {
    pub(crate) price: Price,
    pub(crate) quantity: u64,
    pub(crate) time: String,
}

/// One order.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) number: u64,
    /// The business day that it belongs to now, and the one on which it was placed.
    pub(crate) day: JstDate,
    pub(crate) placed_on: JstDate,
    pub(crate) placed_at: String,
    /// Number of the request that placed it; none: it was placed elsewhere.
    pub(crate) p_no: Option<u64>,
    pub(crate) terms: Terms,
    pub(crate) state: State,
    pub(crate) filled: u64,
    pub(crate) filled_value: Money,
    pub(crate) fills: Vec<FillRow>,
    /// The stop has become an ordinary order.
    pub(crate) is_triggered: bool,
    pub(crate) is_carried: bool,
    /// Numbers of its notices, from 1.
    pub(crate) branch: u32,
}

impl Order {
    /// Shares that still work.
    pub(crate) fn leaves(&self) -> u64 {
        if self.state.is_final() { 0 } else { self.terms.quantity - self.filled }
    }

    /// Shares that ended without a fill.
    pub(crate) fn ended(&self) -> u64 {
        if self.state.is_final() { self.terms.quantity - self.filled } else { 0 }
    }

    pub(crate) fn is_waiting_stop(&self) -> bool {
        self.terms.trigger.is_some() && !self.is_triggered && !self.state.is_final()
    }

    /// It was placed through another channel.
    pub(crate) fn is_foreign(&self) -> bool {
        self.p_no.is_none()
    }

    /// `sOrderStatusCode` and its text.
    pub(crate) fn status(&self) -> (&'static str, &'static str) {
        let partly = self.filled > 0;
        match self.state {
            State::Changing(_) => ("3", "訂正中"),
            State::Canceling => ("6", "取消中"),
            State::Filled => ("10", "全部約定"),
            State::Canceled => ("7", "取消完了"),
            State::Refused => ("2", "受付エラー"),
            State::Lapsed if partly => ("11", "一部失効"),
            State::Lapsed if self.is_carried => ("19", "繰越失効"),
            State::Lapsed => ("12", "全部失効"),
            _ if partly => ("9", "一部約定"),
            State::Changed => ("4", "訂正完了"),
            State::ChangeFailed => ("5", "訂正失敗"),
            State::CancelFailed => ("8", "取消失敗"),
            State::Working if self.is_waiting_stop() => ("16", "逆指注文(未約定)"),
            State::Working => ("1", "未約定"),
        }
    }

    /// `sOrderYakuzyouStatus`.
    pub(crate) fn fill_status(&self) -> &'static str {
        match self.filled {
            0 => "0",
            filled if filled < self.terms.quantity => "1",
            _ => "2",
        }
    }
}
