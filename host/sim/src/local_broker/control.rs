//! The control endpoint on the same port: `GET /control/state` (or `/control`) shows everything that the
//! gateway holds, `POST /control` takes one command or a list of them as JSON, each an object with `do`;
//! `POST /control/NAME` takes the other fields alone, or no body.
//!
//! | `do` | fields | what it does |
//! |---|---|---|
//! | `state` | | shows everything, as `GET` |
//! | `trade` | `symbol`, `price`, `quantity`, `time` (`HH:MM:SS`)?, `count`? | trades of the market |
//! | `book` | `symbol`, `count`? | changes of the book alone |
//! | `boards` | | pushes the board of every registered symbol as it is |
//! | `frame` | `text` or `json` | sends a frame as it is |
//! | `fault` | `name`, `value`?, `call`?, `times`? | switches a fault on |
//! | `clear-faults` | `name`? | switches faults off |
//! | `refuse` | `ms`? | the listener closes: for so long, or until `accept` by a program that holds it |
//! | `accept` | | the listener opens |
//! | `restart` | `down_ms`? | the application restarts: token dead, list empty, connections end |
//! | `end-token` | | the token is dead, as when another was issued |
//! | `drop-push` | | the push's connection ends without a word |
//! | `half-open` | | the push's connection stays and nothing comes of it any more |
//! | `log-out` | | the forced logout: as fault `logged-out`, and the token is dead |
//! | `login-open` | | ends it |
//! | `register`, `unregister` | `symbols` (`["9984", "9984@3"]`) | somebody else registers or takes off |
//! | `day` | `date`?, `splits`? (`{"7203": 2}`) | the next business day, or this date: volumes begin again; one share becomes so many overnight |
//! | `volume-reset` | `symbol`? | told volumes begin again at 0, and frames say so |
//! | `account` | `cash`?, `margin`?, `orders`?, `positions`? | sets the account |
//! | `market` | `run` | lets the feed go on, or holds it |
//! | `forget-requests` | | forgets the requests seen and what is counted |
//!
//! Answers are JSON: `{"done": N, ...}`, or status 400 and `{"error": TEXT}`; of a list everything before the
//! wrong command is done.

use std::collections::BTreeMap;

use domain::session::TradingHours;
use domain::{JstDate, Money, Price, TsNanos};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::account::Account;
use super::board::{Board, Stretch};
use super::config::{Listed, Source};
use super::faults::{FaultKind, FaultSetting};
use super::gateway::{Counts, Effect, Gateway, check_day};
use super::limits::{
    COMMANDS_MAX, DELAY_MAX, REQUEST_COUNT_MAX, TRADE_SHARES_MAX, TRADES_POSTED_MAX, VOLUME_MAX,
};
use crate::web_broker::NewDay;

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Command {
    State {},
    Trade {
        symbol: String,
        price: String,
        quantity: u64,
        time: Option<String>,
        count: Option<u32>,
    },
    Book {
        symbol: String,
        count: Option<u32>,
    },
    Boards {},
    Frame {
        text: Option<String>,
        json: Option<Value>,
    },
    Fault {
        name: FaultKind,
        #[serde(default, deserialize_with = "crate::fault_value")]
        value: Option<i64>,
        call: Option<String>,
        times: Option<u32>,
    },
    ClearFaults {
        name: Option<FaultKind>,
    },
    Refuse {
        ms: Option<u64>,
    },
    Accept {},
    Restart {
        down_ms: Option<u64>,
    },
    EndToken {},
    DropPush {},
    HalfOpen {},
    LogOut {},
    LoginOpen {},
    Register {
        symbols: Vec<String>,
    },
    Unregister {
        symbols: Vec<String>,
    },
    Day {
        date: Option<JstDate>,
        #[serde(default)]
        splits: BTreeMap<String, u64>,
    },
    VolumeReset {
        symbol: Option<String>,
    },
    Account {
        cash: Option<String>,
        margin: Option<String>,
        orders: Option<Vec<Value>>,
        positions: Option<Vec<Value>>,
    },
    Market {
        run: bool,
    },
    ForgetRequests {},
}

/// Does the commands of a body. `name` is what follows `/control/` in the path.
///
/// # Errors
/// What is wrong with the first wrong one.
pub(crate) fn run(gateway: &mut Gateway, name: &str, body: &[u8]) -> Result<Value, String> {
    let is_empty = body.iter().all(u8::is_ascii_whitespace);
    let mut body: Value = if is_empty && !name.is_empty() {
        json!({})
    } else {
        serde_json::from_slice(body).map_err(|error| format!("not JSON: {error}"))?
    };
    if !name.is_empty() {
        let fields = body.as_object_mut();
        let fields = fields.ok_or("the fields of a command must be an object")?;
        fields.insert("do".to_owned(), json!(name));
    }
    let commands = match body {
        Value::Array(commands) => commands,
        command => vec![command],
    };
    if commands.len() > COMMANDS_MAX {
        return Err(format!(
            "{} commands are too many; send at most {COMMANDS_MAX}",
            commands.len()
        ));
    }
    let counts = commands.iter().map(|command| command["count"].as_u64().unwrap_or(0));
    let count = counts.fold(0, u64::saturating_add);
    if count > REQUEST_COUNT_MAX {
        return Err(format!(
            "the counts of all commands are {count} together, more than {REQUEST_COUNT_MAX}; \
             send several requests"
        ));
    }
    let mut answer = json!({ "done": commands.len() });
    for (command, place) in commands.into_iter().zip(1..) {
        let place: u32 = place;
        let command: Command =
            serde_json::from_value(command).map_err(|error| format!("command {place}: {error}"))?;
        let told = one(gateway, command).map_err(|why| format!("command {place}: {why}"))?;
        if let (Value::Object(answer), Value::Object(told)) = (&mut answer, told) {
            answer.extend(told);
        }
    }
    Ok(answer)
}

fn one(gateway: &mut Gateway, command: Command) -> Result<Value, String> {
    let nothing = Ok(json!({}));
    match command {
        Command::State {} => return Ok(view(gateway)),
        Command::Trade { symbol, price, quantity, time, count } => {
            let place = issue(gateway, &symbol)?;
            let price: Price = price.parse().map_err(|error| format!("`{price}`: {error}"))?;
            let count = count.unwrap_or(1);
            let fits = (1..=TRADES_POSTED_MAX).contains(&count);
            if price <= Price::default() || !(1..=TRADE_SHARES_MAX).contains(&quantity) || !fits {
                return Err(format!(
                    "price must be above 0, quantity 1 to {TRADE_SHARES_MAX}, count 1 to \
                     {TRADES_POSTED_MAX}"
                ));
            }
            let traded = gateway.boards[place].truth.volume;
            if traded.saturating_add(quantity * u64::from(count)) > VOLUME_MAX {
                return Err(format!(
                    "{traded} shares of {symbol} were traded, and with these it would be more than \
                     VOLUME_MAX ({VOLUME_MAX})"
                ));
            }
            let at = match time {
                None => gateway.market_time.plus_nanos(1_000_000),
                Some(text) => time_of(gateway.day, &text)?,
            };
            for step in 0..u64::from(count) {
                gateway.trade(place, price, quantity, at.plus_nanos(step));
            }
        }
        Command::Book { symbol, count } => {
            let place = issue(gateway, &symbol)?;
            let count = count.unwrap_or(1);
            if count > TRADES_POSTED_MAX {
                return Err(format!("count must be at most {TRADES_POSTED_MAX}"));
            }
            for _ in 0..count {
                gateway.change_book(place, gateway.market_time);
            }
        }
        Command::Boards {} => {
            let mut places: Vec<usize> = Vec::new();
            for entry in gateway.registered.clone() {
                let place = issue(gateway, &entry.listed.symbol)?;
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            for place in places {
                gateway.announce(place, false);
            }
        }
        Command::Frame { text, json } => {
            let text = match (text, json) {
                (Some(text), None) => text,
                (None, Some(json)) => json.to_string(),
                _ => return Err("give either text or json".to_owned()),
            };
            if !gateway.enqueue(Message::text(text)) {
                return Err("no client is connected to the push".to_owned());
            }
        }
        Command::Fault { name, value, call, times } => {
            gateway.faults.add(FaultSetting::new(name, value, call, times)?)?;
        }
        Command::ClearFaults { name } => gateway.faults.clear(name),
        Command::Refuse { ms } => {
            gateway.effects.push(Effect::Close(checked_delay(ms)?));
            gateway.drop_http();
        }
        Command::Accept {} => gateway.effects.push(Effect::Open),
        Command::Restart { down_ms } => {
            let down = checked_delay(down_ms)?;
            if down.is_some() {
                gateway.effects.push(Effect::Close(down));
            }
            gateway.restart();
        }
        Command::EndToken {} => gateway.end_token(),
        Command::DropPush {} => return Ok(json!({ "was_open": gateway.drop_push() })),
        Command::HalfOpen {} => return Ok(json!({ "was_open": gateway.freeze_push() })),
        Command::LogOut {} => {
            let fault = FaultSetting::new(FaultKind::LoggedOut, None, None, None)?;
            gateway.faults.add(fault)?;
            gateway.end_token();
        }
        Command::LoginOpen {} => gateway.faults.clear(Some(FaultKind::LoggedOut)),
        Command::Register { symbols } => {
            let told = gateway.register(&listed(&symbols)?, true);
            told.map_err(|why| format!("cannot register it: {why:?}"))?;
        }
        Command::Unregister { symbols } => {
            let told = gateway.unregister(&listed(&symbols)?);
            told.map_err(|why| format!("cannot take it off: {why:?}"))?;
        }
        Command::Day { date, splits } => {
            let is_files = matches!(gateway.config.source, Source::Files { .. });
            if is_files && !gateway.market_over {
                return Err("trade files bring their own days".to_owned());
            }
            let date = date.unwrap_or_else(|| gateway.next_business_day());
            check_day(date)?;
            if date <= gateway.day {
                return Err(format!("{date} is not after {}", gateway.day));
            }
            let mut new = match gateway.config.source {
                Source::Walk { .. } => NewDay::with_sessions_of(date, date),
                Source::Still | Source::Files { .. } => NewDay::standing(date),
            };
            for (symbol, into) in splits {
                crate::check_split(&symbol, into)?;
                new.splits.insert(issue(gateway, &symbol)?, into);
            }
            gateway.begin_day(&new);
        }
        Command::VolumeReset { symbol } => {
            let places = match symbol {
                Some(symbol) => vec![issue(gateway, &symbol)?],
                None => (0..gateway.boards.len()).collect(),
            };
            for place in places {
                gateway.boards[place].reset_volume();
                gateway.announce(place, false);
            }
        }
        Command::Account { cash, margin, orders, positions } => {
            let money = |text: Option<String>, before: Money| match text {
                None => Ok(before),
                Some(text) => text.parse().map_err(|error| format!("`{text}`: {error}")),
            };
            let before = &gateway.account;
            gateway.account = Account::new(
                money(cash, before.cash)?,
                money(margin, before.margin)?,
                orders.unwrap_or_else(|| before.orders.clone()),
                positions.unwrap_or_else(|| before.positions.clone()),
            )?;
        }
        Command::Market { run } => gateway.market_runs = run,
        Command::ForgetRequests {} => {
            gateway.counts = Counts::default();
            gateway.seen.clear();
            gateway.calls.clear();
            gateway.refusals.clear();
        }
    }
    nothing
}

fn checked_delay(ms: Option<u64>) -> Result<Option<u64>, String> {
    let most = DELAY_MAX.as_millis();
    match ms {
        Some(ms) if u128::from(ms) > most => Err(format!("{ms} ms is more than {most}")),
        _ => Ok(ms),
    }
}

fn issue(gateway: &mut Gateway, symbol: &str) -> Result<usize, String> {
    gateway.issue(symbol).ok_or_else(|| format!("`{symbol}` is not traded here"))
}

fn listed(symbols: &[String]) -> Result<Vec<Listed>, String> {
    symbols.iter().map(|symbol| symbol.parse()).collect()
}

/// Reads `HH:MM:SS` of a day in Japan.
fn time_of(day: JstDate, text: &str) -> Result<TsNanos, String> {
    let wrong = || format!("`{text}` is not a time; write it like 09:00:05");
    let mut parts = text.split(':').map(str::parse::<u64>);
    let mut part = |below: u64| match parts.next() {
        Some(Ok(value)) if value < below => Ok(value),
        _ => Err(wrong()),
    };
    let seconds = part(24)? * 3_600 + part(60)? * 60 + part(60)?;
    if parts.next().is_some() {
        return Err(wrong());
    }
    Ok(TradingHours::of(day).start.plus_nanos(seconds * domain::time::NANOS_PER_SECOND))
}

fn stretch(stretch: &Stretch) -> Value {
    json!({ "date": stretch.date, "first": stretch.first, "last": stretch.last })
}

fn symbol(board: &Board) -> Value {
    let truth = &board.truth;
    let within: u64 = truth.stretches.iter().map(|stretch| stretch.last - stretch.first).sum();
    json!({
        "price": board.price().to_string(),
        "day_volume": board.volume,
        "volume": truth.volume,
        "trades": truth.trades,
        "frames": truth.frames,
        "pushed_trades": truth.pushed_trades,
        // What a client that counts from its first frame of each stretch finds.
        "pushed_volume": truth.older + within,
        "stretches": truth.stretches.iter().map(stretch).collect::<Vec<_>>(),
    })
}

/// Everything that the gateway holds; no token and no password.
pub(crate) fn view(gateway: &Gateway) -> Value {
    let registered = gateway.registered.iter().map(|entry| {
        json!({
            "Symbol": entry.listed.symbol, "Exchange": entry.listed.exchange, "pushes": entry.pushes
        })
    });
    let symbols: BTreeMap<&str, Value> =
        gateway.boards.iter().map(|board| (board.issue.symbol.as_str(), symbol(board))).collect();
    json!({
        "dialect": gateway.dialect.as_str(),
        "day": gateway.day,
        "market_time": gateway.market_time.to_string(),
        "market_runs": gateway.market_runs,
        "market_over": gateway.market_over,
        "has_token": gateway.has_token(),
        "logged_out": gateway.is_logged_out(),
        "push_open": gateway.push.is_some(),
        "push_waiting": gateway.due.len(),
        "registered": registered.collect::<Vec<_>>(),
        "calls": gateway.calls,
        "refusals": gateway.refusals,
        "counts": gateway.counts,
        "symbols": symbols,
        "faults": gateway.faults.all().collect::<Vec<_>>(),
        "requests": gateway.seen,
    })
}
