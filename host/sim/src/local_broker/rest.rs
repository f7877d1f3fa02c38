//! The calls of the gateway: which there are, what they take and what they answer.

use serde::Deserialize;
use serde_json::{Value, json};

use super::config::{Dialect, Listed};
use super::faults::{FaultKind, FaultSetting};
use super::gateway::Gateway;
use super::limits::BODY_BYTES_MAX;
use super::rates::Class;
use super::refusal::Refusal;
use super::registrations::EXCHANGES;
use crate::http::Head;

/// A call, by the first part of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Token,
    WalletCash,
    WalletMargin,
    Orders,
    Positions,
    Board,
    Symbol,
    ApiSoftLimit,
    Register,
    Unregister,
    UnregisterAll,
    /// Counted and refused: nobody should come here.
    SendOrder,
    /// Likewise.
    CancelOrder,
    Websocket,
    Unknown,
}

/// Every call with its name, which is its path too.
const CALLS: [(Call, &str); 15] = [
    (Call::Token, "token"),
    (Call::WalletCash, "wallet/cash"),
    (Call::WalletMargin, "wallet/margin"),
    (Call::Orders, "orders"),
    (Call::Positions, "positions"),
    (Call::Board, "board"),
    (Call::Symbol, "symbol"),
    (Call::ApiSoftLimit, "apisoftlimit"),
    (Call::Register, "register"),
    (Call::Unregister, "unregister"),
    (Call::UnregisterAll, "unregister/all"),
    (Call::SendOrder, "sendorder"),
    (Call::CancelOrder, "cancelorder"),
    (Call::Websocket, "websocket"),
    (Call::Unknown, "unknown"),
];

impl Call {
    /// Every name.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        CALLS.into_iter().map(|(_, name)| name)
    }

    pub(crate) fn name(self) -> &'static str {
        CALLS.iter().find(|(call, _)| *call == self).map_or("unknown", |(_, name)| *name)
    }

    /// The call of a path, and the symbol that ends it.
    pub(crate) fn of(dialect: Dialect, path: &str) -> (Self, Option<String>) {
        if path == dialect.push_path() {
            return (Self::Websocket, None);
        }
        let below = path.strip_prefix(dialect.prefix()).and_then(|path| path.strip_prefix('/'));
        let Some(below) = below else { return (Self::Unknown, None) };
        let exact = CALLS[..13].iter().find(|(_, name)| *name == below).map(|(call, _)| *call);
        if below.starts_with("sendorder/") {
            return (Self::SendOrder, None);
        }
        match (exact, below.rsplit_once('/')) {
            // These have a symbol.
            (Some(Self::Board | Self::Symbol), _) => (Self::Unknown, None),
            (Some(call), _) => (call, None),
            (None, Some((name, symbol))) => {
                let with_symbol = [Self::Board, Self::Symbol, Self::WalletCash, Self::WalletMargin];
                let call = with_symbol.into_iter().find(|call| call.name() == name);
                match (call, percent_decoded(symbol)) {
                    (Some(call), Some(symbol)) => (call, Some(symbol)),
                    _ => (Self::Unknown, None),
                }
            }
            (None, None) => (Self::Unknown, None),
        }
    }

    /// The one method that it takes.
    fn method(self) -> Option<&'static str> {
        match self {
            Self::Token | Self::SendOrder => Some("POST"),
            Self::Register | Self::Unregister | Self::UnregisterAll | Self::CancelOrder => {
                Some("PUT")
            }
            Self::Unknown => None,
            _ => Some("GET"),
        }
    }

    fn class(self) -> Option<Class> {
        match self {
            Self::WalletCash | Self::WalletMargin => Some(Class::Wallet),
            Self::SendOrder | Self::CancelOrder => Some(Class::Orders),
            Self::Token | Self::Websocket | Self::Unknown => None,
            _ => Some(Class::Information),
        }
    }
}

/// Decodes `%XX`; none where that is wrong or no text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// The parameters of a query.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Result<Self, Refusal> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let mut read: Vec<(String, String)> = Vec::new();
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decoded(&value.replace('+', " ")).ok_or(Refusal::Query)?;
            if read.iter().any(|(known, _)| known == name) {
                return Err(Refusal::Query);
            }
            read.push((name.to_owned(), value));
        }
        Ok(Self(read))
    }

    /// A parameter's value; empty where there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }
}

#[derive(Debug, Deserialize)]
struct TokenBody {
    #[serde(rename = "APIPassword")]
    password: String,
}

#[derive(Debug, Deserialize)]
struct SymbolsBody {
    #[serde(rename = "Symbols")]
    symbols: Vec<SymbolRow>,
}

#[derive(Debug, Deserialize)]
struct SymbolRow {
    #[serde(rename = "Symbol")]
    symbol: String,
    #[serde(rename = "Exchange")]
    exchange: i64,
}

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) head: &'a Head,
    pub(crate) body: &'a [u8],
    pub(crate) call: Call,
    pub(crate) symbol: Option<String>,
}

/// Answers a call: the text of status 200, or a refusal. Faults that change what is done are among those
/// of the call.
pub(crate) fn answer(
    gateway: &mut Gateway,
    request: &Request<'_>,
    faults: &[FaultSetting],
) -> Result<String, Refusal> {
    let call = request.call;
    let method = call.method().ok_or(Refusal::UnknownPath)?;
    if request.head.method != method {
        return Err(Refusal::Method);
    }
    if call == Call::Token {
        let body: TokenBody = read_body(request)?;
        let token = gateway.log_in(&body.password)?;
        return Ok(json!({ "ResultCode": 0, "Token": token }).to_string());
    }
    if matches!(call, Call::SendOrder | Call::CancelOrder) {
        return Err(Refusal::Unavailable);
    }
    gateway.check_key(request.head.header("x-api-key"))?;
    let now = gateway.watch.elapsed();
    if let Some(class) = call.class()
        && gateway.config.has_rate_limit
        && !gateway.rates.admits(class, now)
    {
        return Err(Refusal::TooMany);
    }
    let query = Query::parse(&request.head.query)?;
    let of_symbol = request.symbol.as_deref().map(|symbol| listed(gateway, symbol)).transpose()?;
    let is_full = faults.iter().any(|fault| fault.name == FaultKind::RegisterFull);
    match call {
        Call::WalletCash => Ok(gateway.account.wallet_cash()),
        Call::WalletMargin => Ok(gateway.account.wallet_margin(of_symbol.is_some())),
        Call::Orders => gateway.account.orders(&query).map(|rows| rows.to_string()),
        Call::Positions => gateway.account.positions(&query).map(|rows| rows.to_string()),
        Call::Board | Call::Register if is_full => Err(Refusal::RegisterFull),
        Call::Board => board(gateway, of_symbol.ok_or(Refusal::UnknownPath)?),
        Call::Symbol => symbol(gateway, &of_symbol.ok_or(Refusal::UnknownPath)?, &query),
        Call::ApiSoftLimit => Ok("{\"Stock\":200.0,\"Margin\":200.0,\"Future\":10.0,\
             \"FutureMini\":100.0,\"FutureMicro\":1000.0,\"Option\":20.0,\"MiniOption\":200.0,\
             \"KabuSVersion\":\"5.13.1.0\"}"
            .to_owned()),
        Call::Register => {
            gateway.register(&symbols(request)?, true)?;
            Ok(list(gateway, faults))
        }
        Call::Unregister => {
            gateway.unregister(&symbols(request)?)?;
            Ok(list(gateway, faults))
        }
        Call::UnregisterAll => {
            gateway.registered.clear();
            Ok(list(gateway, faults))
        }
        Call::Token | Call::SendOrder | Call::CancelOrder | Call::Websocket | Call::Unknown => {
            Err(Refusal::UnknownPath)
        }
    }
}

fn read_body<T: for<'a> Deserialize<'a>>(request: &Request<'_>) -> Result<T, Refusal> {
    if request.body.len() > BODY_BYTES_MAX {
        return Err(Refusal::TooLong);
    }
    let kind = request.head.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::MediaType);
    }
    let refusal =
        if request.call == Call::Register { Refusal::NotRegistered } else { Refusal::Body };
    serde_json::from_slice(request.body).map_err(|_| refusal)
}

fn symbols(request: &Request<'_>) -> Result<Vec<Listed>, Refusal> {
    let body: SymbolsBody = read_body(request)?;
    let rows = body.symbols.into_iter();
    Ok(rows.map(|row| Listed { symbol: row.symbol, exchange: row.exchange }).collect())
}

/// Reads `7203@1`, the only form that paths take.
fn listed(gateway: &mut Gateway, text: &str) -> Result<Listed, Refusal> {
    let (symbol, exchange) = text.split_once('@').ok_or(Refusal::UnknownPath)?;
    let exchange: i64 = exchange.parse().map_err(|_| Refusal::UnknownPath)?;
    let is_known = EXCHANGES.contains(&exchange) && gateway.issue(symbol).is_some();
    is_known.then(|| Listed { symbol: symbol.to_owned(), exchange }).ok_or(Refusal::UnknownSymbol)
}

/// A board, which takes a slot.
fn board(gateway: &mut Gateway, listed: Listed) -> Result<String, Refusal> {
    let pushes = gateway.dialect == Dialect::Spec;
    gateway.register(std::slice::from_ref(&listed), pushes)?;
    let place = gateway.issue(&listed.symbol).ok_or(Refusal::UnknownSymbol)?;
    let (board, names) = (&gateway.boards[place], gateway.config.quote_names);
    Ok(board.text(&listed.symbol, listed.exchange, &board.book, names))
}

fn symbol(gateway: &mut Gateway, listed: &Listed, query: &Query) -> Result<String, Refusal> {
    let place = gateway.issue(&listed.symbol).ok_or(Refusal::UnknownSymbol)?;
    Ok(gateway.boards[place].master(listed.exchange, query.get("addinfo") != "false"))
}

/// The list of registrations.
fn list(gateway: &Gateway, faults: &[FaultSetting]) -> String {
    let missing = faults.iter().find(|fault| fault.name == FaultKind::MissingEntries);
    let missing = missing.map_or(0, |fault| usize::try_from(fault.value).unwrap_or_default());
    let count = gateway.registered.len().saturating_sub(missing);
    let rows = gateway.registered.iter().take(count);
    let rows: Vec<Value> = rows
        .map(|entry| json!({ "Symbol": entry.listed.symbol, "Exchange": entry.listed.exchange }))
        .collect();
    json!({ "RegistList": rows }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_calls() {
        let spec = |path| Call::of(Dialect::Spec, path);
        assert_eq!(spec("/token"), (Call::Token, None));
        assert_eq!(spec("/board/7203@1"), (Call::Board, Some("7203@1".to_owned())));
        assert_eq!(spec("/board/130A%401"), (Call::Board, Some("130A@1".to_owned())));
        assert_eq!(spec("/wallet/cash"), (Call::WalletCash, None));
        assert_eq!(spec("/wallet/margin/7203@1"), (Call::WalletMargin, Some("7203@1".to_owned())));
        assert_eq!(spec("/unregister/all"), (Call::UnregisterAll, None));
        assert_eq!(spec("/sendorder/future"), (Call::SendOrder, None));
        assert_eq!(spec("/brokerapi/websocket"), (Call::Websocket, None));
        for unknown in
            ["/", "/board", "/orders/1", "/kabusapi/token", "/websocket", "/unknown", "x"]
        {
            assert_eq!(spec(unknown).0, Call::Unknown, "{unknown}");
        }
        let vendor = |path| Call::of(Dialect::Kabusapi, path).0;
        assert_eq!(vendor("/kabusapi/register"), Call::Register);
        assert_eq!(vendor("/kabusapi/websocket"), Call::Websocket);
        assert_eq!(vendor("/register"), Call::Unknown);
    }
}
