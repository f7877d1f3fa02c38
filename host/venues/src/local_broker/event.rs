//! Commands of clients to the venue and the venue's events, in the host's own types.

use std::fmt;

use domain::market_update::Board;
use domain::{Money, TsNanos};

use super::account::{AccountOrder, AccountPosition};
use super::lifecycle::State;
use crate::OrderQuery;

/// A client's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Subscribe to the frames of a ticker, like `7203`.
    Subscribe(String),
    /// Unsubscribe from the frames of a ticker.
    Unsubscribe(String),
    /// Read the board of a ticker once.
    ReadBoard(String),
    /// Make room: remove the least recently used symbol from the register set.
    EvictLru,
    /// Read the money that orders may spend.
    ReadBuyingPower,
    /// List the orders of the account.
    ListOrders(OrderQuery),
    /// List the positions of the account.
    ListPositions,
    /// Log in.
    Login,
    /// Report the state of the connection.
    ReadState,
}

/// The code of an error, from a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The command is not valid.
    ValidationError,
    /// No more symbols can be registered.
    RegisterFull,
    /// Too many requests.
    RateLimited,
    /// The gateway accepts no token.
    TokenExpired,
    /// The gateway cannot be reached, or its answers cannot be used.
    LocalAppDown,
    /// The gateway refuses, or its answer cannot be used.
    GatewayError,
    /// The gateway refuses the login.
    LoginFailed,
    /// The venue is ready, but no boards come, because the gateway logs out all programs at that time
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

/// An event of the venue. If a command caused it, `request_id` is the command's.
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
        /// The code of the error.
        code: ErrorCode,
        /// In words.
        message: String,
    },
    /// The state of the connection.
    State {
        /// The command's id.
        request_id: String,
        /// The state.
        state: State,
        /// The code of the last error; `None` if all is well.
        code: Option<ErrorCode>,
        /// Since when.
        since: TsNanos,
    },
    /// A command failed, or a subscription did, long after its command.
    Error {
        /// The command's id.
        request_id: Option<String>,
        /// The code of the error.
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
    /// The money that orders may spend.
    BuyingPower {
        /// The command's id.
        request_id: String,
        /// In cash; `None` if the gateway has no amount, or an unreadable one.
        cash: Option<Money>,
        /// On margin, likewise.
        margin: Option<Money>,
        /// When.
        at: TsNanos,
    },
    /// Orders of the account: the whole list or a part of it.
    Orders {
        /// The command's id.
        request_id: String,
        /// The orders.
        orders: Vec<AccountOrder>,
        /// Whether more parts follow; `None` if the list is one part.
        more: Option<bool>,
        /// Orders so far, if more follow.
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
        /// The broker's id of it, if it may be shown.
        venue_order_id: Option<String>,
        /// Why.
        message: String,
        /// When.
        at: TsNanos,
    },
}
