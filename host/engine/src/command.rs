//! A client's command, decoded once into a command of the one that takes it: the session, a venue, the order desk's
//! password, or what the desk knows of strategies.

use ipc::{
    AdjustStrategyPosition, CancelAllOrders, CancelOrder, Command, GetHistory, LoadReplayData,
    ModifyOrder, Multiplier, OrderListFilter, SettleOrder, StartEngine, SubmitOrder,
};

/// A command, by who takes it.
#[derive(Debug)]
pub(crate) enum ClientCommand {
    Session(SessionCommand),
    /// For the venue that it names; only [`AccountCommand::VenueState`] may name none.
    Venue(VenueCommand),
    Password(PasswordCommand),
    Strategies(StrategiesCommand),
    Console(ConsoleCommand),
}

/// For the connection, the process and the replay.
#[derive(Debug)]
pub(crate) enum SessionCommand {
    Hello,
    Ping,
    Shutdown,
    GetSession,
    Load(LoadReplayData),
    Start(Box<StartEngine>),
    /// Ends the run of a strategy.
    Stop(String),
    SetSpeed(Multiplier),
}

/// For a venue: a broker, a gateway or the replay.
#[derive(Debug)]
pub(crate) enum VenueCommand {
    Order(OrderInstruction),
    Account(AccountCommand),
    Market(MarketCommand),
}

/// Sends, changes or cancels orders.
#[derive(Debug)]
pub(crate) enum OrderInstruction {
    Submit(SubmitOrder),
    Modify(ModifyOrder),
    Cancel(CancelOrder),
    CancelAll(CancelAllOrders),
}

/// Reads the account, or is about the login.
#[derive(Debug)]
pub(crate) enum AccountCommand {
    OrderList(OrderListFilter),
    BuyingPower,
    Positions,
    Login,
    VenueState,
}

/// About market data of a ticker.
#[derive(Debug)]
pub(crate) enum MarketCommand {
    Subscribe(String),
    Unsubscribe(String),
    ReadBoard(String),
    EvictLru,
}

/// About the second password.
#[derive(Debug)]
pub(crate) enum PasswordCommand {
    Set(domain::Secret),
    Forget,
}

/// About what strategies hold at the web broker, and about orders whose answer was lost.
#[derive(Debug)]
pub(crate) enum StrategiesCommand {
    Settle(SettleOrder),
    Positions,
    Adjust(AdjustStrategyPosition),
}

/// About pages in the browser, and what they ask for their forms.
#[derive(Debug)]
pub(crate) enum ConsoleCommand {
    /// Opens one; it may only look.
    Open {
        read_only: bool,
    },
    SignOut,
    Catalog,
    Strategies,
    Parameters(String),
    Instrument {
        venue: String,
        instrument_id: String,
    },
    History(GetHistory),
    Runs,
    Report(String),
}

impl From<Command> for ClientCommand {
    fn from(command: Command) -> Self {
        use VenueCommand::{Account, Market, Order};
        match command {
            Command::Hello(_) => Self::Session(SessionCommand::Hello),
            Command::Ping(_) => Self::Session(SessionCommand::Ping),
            Command::Shutdown(_) => Self::Session(SessionCommand::Shutdown),
            Command::GetSession(_) => Self::Session(SessionCommand::GetSession),
            Command::LoadReplayData(load) => Self::Session(SessionCommand::Load(load)),
            Command::StartEngine(start) => Self::Session(SessionCommand::Start(start)),
            Command::StopEngine(stop) => Self::Session(SessionCommand::Stop(stop.strategy_id)),
            Command::SetReplaySpeed(speed) => {
                Self::Session(SessionCommand::SetSpeed(speed.multiplier))
            }
            Command::SetSecondPassword(set) => Self::Password(PasswordCommand::Set(set.value)),
            Command::ForgetSecondPassword(_) => Self::Password(PasswordCommand::Forget),
            Command::SettleOrder(settle) => Self::Strategies(StrategiesCommand::Settle(settle)),
            Command::GetStrategyPositions(_) => Self::Strategies(StrategiesCommand::Positions),
            Command::AdjustStrategyPosition(adjust) => {
                Self::Strategies(StrategiesCommand::Adjust(adjust))
            }
            Command::SubmitOrder(order) => Self::Venue(Order(OrderInstruction::Submit(order))),
            Command::ModifyOrder(order) => Self::Venue(Order(OrderInstruction::Modify(order))),
            Command::CancelOrder(order) => Self::Venue(Order(OrderInstruction::Cancel(order))),
            Command::CancelAllOrders(all) => Self::Venue(Order(OrderInstruction::CancelAll(all))),
            Command::GetOrderList(list) => {
                Self::Venue(Account(AccountCommand::OrderList(list.filter)))
            }
            Command::GetBuyingPower(_) => Self::Venue(Account(AccountCommand::BuyingPower)),
            Command::GetPositions(_) => Self::Venue(Account(AccountCommand::Positions)),
            Command::RequestVenueLogin(_) => Self::Venue(Account(AccountCommand::Login)),
            Command::GetVenueState(_) => Self::Venue(Account(AccountCommand::VenueState)),
            Command::Subscribe(of) => Self::Venue(Market(MarketCommand::Subscribe(of.ticker))),
            Command::Unsubscribe(of) => Self::Venue(Market(MarketCommand::Unsubscribe(of.ticker))),
            Command::GetBoard(of) => Self::Venue(Market(MarketCommand::ReadBoard(of.ticker))),
            Command::EvictLru(_) => Self::Venue(Market(MarketCommand::EvictLru)),
            Command::OpenConsole(open) => {
                Self::Console(ConsoleCommand::Open { read_only: open.read_only })
            }
            Command::SignOut(_) => Self::Console(ConsoleCommand::SignOut),
            Command::GetDataCatalog(_) => Self::Console(ConsoleCommand::Catalog),
            Command::GetStrategies(_) => Self::Console(ConsoleCommand::Strategies),
            Command::GetStrategyParameters(of) => {
                Self::Console(ConsoleCommand::Parameters(of.strategy_file))
            }
            Command::GetInstrument(of) => Self::Console(ConsoleCommand::Instrument {
                venue: of.venue,
                instrument_id: of.instrument_id,
            }),
            Command::GetHistory(of) => Self::Console(ConsoleCommand::History(of)),
            Command::GetRuns(_) => Self::Console(ConsoleCommand::Runs),
            Command::OpenReport(of) => Self::Console(ConsoleCommand::Report(of.run_id)),
        }
    }
}

impl AccountCommand {
    /// Whether it changes nothing.
    pub(crate) const fn reads(&self) -> bool {
        !matches!(self, Self::Login)
    }
}

impl MarketCommand {
    /// Whether it changes nothing but what the client itself gets.
    pub(crate) const fn looks(&self) -> bool {
        !matches!(self, Self::EvictLru)
    }
}

impl StrategiesCommand {
    /// Whether it changes nothing.
    pub(crate) const fn reads(&self) -> bool {
        matches!(self, Self::Positions)
    }
}

impl VenueCommand {
    /// The client's id of the order that it names, and whether it is about orders at all.
    pub(crate) fn order_id(&self) -> Option<Option<&str>> {
        match self {
            Self::Order(order) => Some(order.client_order_id()),
            Self::Account(AccountCommand::OrderList(_)) => Some(None),
            Self::Account(_) | Self::Market(_) => None,
        }
    }
}

impl OrderInstruction {
    /// The client's id of the order that it names.
    pub(crate) fn client_order_id(&self) -> Option<&str> {
        match self {
            Self::Submit(submit) => Some(&submit.order.client_order_id),
            Self::Modify(modify) => modify.client_order_id.as_deref(),
            Self::Cancel(cancel) => cancel.client_order_id.as_deref(),
            Self::CancelAll(_) => None,
        }
    }

    /// The instrument that it names.
    pub(crate) fn instrument_id(&self) -> Option<&str> {
        match self {
            Self::Submit(submit) => Some(&submit.order.instrument_id),
            Self::CancelAll(all) => all.instrument_id.as_deref(),
            Self::Modify(_) | Self::Cancel(_) => None,
        }
    }
}
