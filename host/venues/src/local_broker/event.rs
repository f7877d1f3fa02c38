//! Commands of clients to the venue and its events, in the host's own words.

use std::fmt;

use domain::market_update::Board;
use domain::{Money, TsNanos};

use super::account::{AccountOrder, AccountPosition};
use super::lifecycle::State;
use crate::OrderQuery;

/// What a client wants of the venue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The frames of a ticker, like `7203`.
    Subscribe(String),
    /// No more frames of a ticker.
    Unsubscribe(String),
    /// The board of a ticker, once.
    ReadBoard(String),
    /// Room: the symbol that was used longest ago leaves the register set.
    EvictLru,
    /// What orders may spend.
    ReadBuyingPower,
    /// The orders of the account.
    ListOrders(OrderQuery),
    /// The positions of the account.
    ListPositions,
    /// A login.
    Login,
    /// Where the connection stands.
    ReadState,
}

/// What is wrong, as a code of a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The command says something that is not possible.
    ValidationError,
    /// No more symbols can be registered.
    RegisterFull,
    /// Too many requests.
    RateLimited,
    /// There is no token that the gateway takes.
    TokenExpired,
    /// The gateway cannot be reached, or its answers cannot be used.
    LocalAppDown,
    /// The gateway refuses, or its answer cannot be used.
    GatewayError,
    /// The gateway refuses the login.
    LoginFailed,
    /// The venue is ready and shows no boards, because the gateway logs everybody out at that time
    /// (specification 4, P47).
    ForcedLogout,
}

impl ErrorCode {
    /// Its name in messages and in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ValidationError => "validation_error",
            Self::RegisterFull => "register_full",
            Self::RateLimited => "rate_limited",
            Self::TokenExpired => "token_expired",
            Self::LocalAppDown => "local_app_down",
            Self::GatewayError => "gateway_error",
            Self::LoginFailed => "login_failed",
            Self::ForcedLogout => "forced_logout",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the venue says. Where a command led to it, `request_id` is the command's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VenueEvent {
    /// A login began.
    LoginStarted {
        /// The command's id.
        request_id: Option<String>,
    },
    /// A login ended, because there is no password.
    LoginCancelled {
        /// The command's id.
        request_id: Option<String>,
    },
    /// The venue can be used.
    Ready {
        /// The command's id.
        request_id: Option<String>,
    },
    /// The venue cannot be used.
    Unusable {
        /// What is wrong.
        code: ErrorCode,
        /// In words.
        message: String,
    },
    /// Where the connection stands.
    State {
        /// The command's id.
        request_id: String,
        /// Where.
        state: State,
        /// What is wrong; none where nothing is.
        code: Option<ErrorCode>,
        /// Since when.
        since: TsNanos,
    },
    /// A command came to nothing, or a subscription does, long after its command.
    Error {
        /// The command's id.
        request_id: Option<String>,
        /// What is wrong.
        code: ErrorCode,
        /// In words.
        message: String,
    },
    /// A client gets the frames of a symbol.
    Subscribed {
        /// The command's id.
        request_id: String,
        /// The symbol.
        symbol: String,
        /// Name of the issue, where it is known.
        name: Option<String>,
    },
    /// A client gets no more frames of a symbol.
    Unsubscribed {
        /// The command's id.
        request_id: String,
        /// The symbol.
        symbol: String,
    },
    /// A symbol left the register set, for all clients.
    Evicted {
        /// The command's id.
        request_id: String,
        /// The symbol.
        symbol: String,
    },
    /// A board that was read once.
    Board {
        /// The command's id.
        request_id: String,
        /// The board.
        board: Board,
    },
    /// What orders may spend.
    BuyingPower {
        /// The command's id.
        request_id: String,
        /// In cash; none where the gateway has no amount, or one that cannot be read.
        cash: Option<Money>,
        /// On margin, likewise.
        margin: Option<Money>,
        /// When.
        at: TsNanos,
    },
    /// Orders of the account, one part of the list or all of it.
    Orders {
        /// The command's id.
        request_id: String,
        /// The orders.
        orders: Vec<AccountOrder>,
        /// Whether more parts follow; none where the list is one part.
        more: Option<bool>,
        /// Orders so far, where more follow.
        next: Option<u64>,
    },
    /// Positions of the account.
    Positions {
        /// The command's id.
        request_id: String,
        /// The positions.
        positions: Vec<AccountPosition>,
        /// When.
        at: TsNanos,
    },
    /// An order of the account cannot be read.
    UnreadableOrder {
        /// The broker's id of it, where it can be shown.
        venue_order_id: Option<String>,
        /// Why.
        message: String,
        /// When.
        at: TsNanos,
    },
}
