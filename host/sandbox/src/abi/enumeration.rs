//! Enumerations, by the number that each case has in the contract.

use domain::formula::Column;
use domain::market::BarGranularity;
use domain::strategy::{LogLevel, SignalKind};
use domain::{OrderSide, OrderStatus, OrderType, TimeInForce, TriggerType};

/// An enumeration of the contract.
pub(crate) trait Enumeration: Copy + Sized + 'static {
    /// The cases in the order of the contract.
    const CASES: &'static [Self];

    /// The number of a case.
    fn code(self) -> u8;

    /// The case of a number.
    fn of_code(code: u8) -> Option<Self> {
        Self::CASES.get(usize::from(code)).copied()
    }
}

/// The cases in the order of `wit/strategy` and `wit/formula`.
macro_rules! enumeration {
    ($type:ty { $($case:ident),+ $(,)? }) => {
        impl Enumeration for $type {
            const CASES: &'static [Self] = &[$(Self::$case),+];

            #[inline]
            fn code(self) -> u8 {
                enum Code { $($case),+ }
                match self { $(Self::$case => Code::$case as u8),+ }
            }
        }
    };
}

enumeration!(OrderSide { Buy, Sell });
enumeration!(OrderType { Market, Limit, StopMarket, StopLimit, MarketIfTouched, LimitIfTouched });
enumeration!(TimeInForce { Day, Gtc, Gtd, Ioc, Fok, AtTheOpen, AtTheClose });
enumeration!(TriggerType { Last });
enumeration!(OrderStatus {
    Initialized,
    Submitted,
    Accepted,
    PartiallyFilled,
    Filled,
    PendingUpdate,
    PendingCancel,
    Canceled,
    Expired,
    Rejected,
});
enumeration!(SignalKind { EntryLong, EntryShort, Exit, Annotate });
enumeration!(BarGranularity { Minute, Day });
enumeration!(LogLevel { Debug, Info, Warn, Error, Panic });
enumeration!(Column { Open, High, Low, Close, Volume });
