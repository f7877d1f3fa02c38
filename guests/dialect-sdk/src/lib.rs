//! Write dialects of brokers and of local gateways in Rust.
//!//! A dialect of a broker translates orders into the broker's fields, and the broker's answers back. It is a type
//!that implements [`Dialect`]; [`register_dialect!`] makes it a component. It is a function: it must keep nothing
//!from one call to the next, because the host may make a new instance at any time.
//!//! A dialect names the hosts it is made for ([`Dialect::scope`]): the host sends its requests to these and to this
//!machine only. It also finds the fills in the broker's details of an order ([`Dialect::list_fills`]), so that fills
//!whose notice was lost have their prices. Both belong to version 1.1 of the contract. A dialect of 1.0 still loads,
//!for this machine alone and without these details.
//!
//! [`web_broker`] has what the dialects of the web broker share: the registry of tags and the vendor's
//! tables. [`text`] reads decimals and dates. Test a dialect without wasm with [`testing`].
//!
//! [`gateway`] is the same for the contract of a local gateway: errors and boards.

pub mod gateway;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod text;
#[doc(hidden)]
pub mod wasm;
pub mod web_broker;

use wasm::bindings::exports::kumiki::order_mapping::{guest, venue};

pub use guest::{
    Accepted, Account, Allocation, Answer, Change, Description, Field, FieldList, Fill, Frame,
    Funding, Notice, NoticeKind, Order, OrderPlan, OrderRow, OrderStatus, OrderType, Outcome,
    ReasonCode, Refusal, Request, Side, TimeInForce, VenuePhase, Verdict,
};
pub use venue::{ListedFill, Scope};

/// Everything that a dialect needs.
pub mod prelude {
    pub use crate::text::{field, of};
    pub use crate::{
        Accepted, Account, Allocation, Answer, Change, Description, Dialect, Field, FieldList,
        Fill, Frame, Funding, ListedFill, Notice, NoticeKind, Order, OrderPlan, OrderRow,
        OrderStatus, OrderType, Outcome, ReasonCode, Refusal, Request, Scope, Side, TimeInForce,
        VenuePhase, Verdict,
    };
}

/// The dialect of a broker. Every answer depends on the arguments alone.
////// Functions with a body here belong to version 1.1 of the contract. For a dialect without [`Dialect::scope`] the
///host sends requests to this machine alone, and never asks the broker for the fills of an order.
pub trait Dialect {
    /// Describes the dialect.
    fn describe() -> Description;

    /// Says for which hosts the dialect is, and where an answer has the fills of an order. Name a host only if it
    /// understands every order of [`Self::new_order`] correctly: if it writes stops in another way, a stop may become
    /// an order that works at once.
    #[must_use]
    fn scope() -> Scope {
        Scope { hosts: Vec::new(), fill_rows: None }
    }

    /// /// The request for the fills of an order. The host asks for it if a list has filled shares without a notice.
    /// It never does so without [`Scope::fill_rows`].
    ///
    /// # Errors
    /// Why the order cannot be named to the broker.
    fn list_fills(venue_order_id: &str, business_day: Option<&str>) -> Result<Request, Refusal> {
        let _ = (venue_order_id, business_day);
        let words = "the dialect has no request for the fills of an order";
        Err(Refusal::new(ReasonCode::VenueUnsupported, "NO_DETAILS", words))
    }

    /// Reads a row of the fills of an order.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_fill(row: &[Field]) -> Result<ListedFill, String> {
        let _ = row;
        Err("the dialect does not read fills".to_owned())
    }

    /// Judges a new order by its type, its times and its tags, and says what it needs.
    ///
    /// # Errors
    /// Why the broker does not take the order.
    fn plan(order: &Order) -> Result<OrderPlan, Refusal>;

    /// The request for a new order. `account` is the login's own account in the broker's code,
    /// `allocations` what each margin position gives.
    ///
    /// # Errors
    /// As [`Self::plan`].
    fn new_order(
        order: &Order,
        account: &str,
        allocations: &[Allocation],
    ) -> Result<Request, Refusal>;

    /// The request for a change.
    ///
    /// # Errors
    /// Why the order cannot be changed so.
    fn modify_order(change: &Change) -> Result<Request, Refusal>;

    /// The request for a cancel.
    ///
    /// # Errors
    /// Why the order cannot be named to the broker.
    fn cancel_order(venue_order_id: &str, business_day: Option<&str>) -> Result<Request, Refusal>;

    /// The request that cancels every open order of the account.
    fn cancel_all() -> Request;

    /// The request for the list of orders.
    fn list_orders() -> Request;

    /// Judges an answer.
    fn judge(answer: &Answer) -> Outcome;

    /// Reads a row of the list of orders.
    ///
    /// # Errors
    /// Why it is none: `order NUMBER: FIELD ...`, where it has a number. The host leaves the row out and tells
    /// this, with the number as that of the order.
    fn read_order(row: &[Field]) -> Result<OrderRow, String>;

    /// Reads a frame of the stream of events.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_frame(fields: &[Field]) -> Result<Frame, String>;
}

impl Refusal {
    /// A refusal: what stands before the colon, and the words after it, on one line.
    #[must_use]
    pub fn new(code: ReasonCode, tag: &str, words: &str) -> Self {
        Self { code, text: text::reason(tag, words) }
    }
}

/// Makes a [`Dialect`] the component's dialect. Use it once, at the top level of the crate.
#[macro_export]
macro_rules! register_dialect {
    ($dialect:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Component = $dialect;

    $crate::wasm::export!(Component with_types_in $crate::wasm::bindings);
        };
    };
}
