//! The control endpoint, `/control` on the same port: `GET` shows everything that the broker holds,
//! `POST` takes one command or a list of them as JSON, each an object with `do`:
//!
//! | `do` | fields | what it does |
//! |---|---|---|
//! | `view` | | shows everything, as `GET` |
//! | `trade` | `issue`, `price`, `quantity`, `time` (`HH:MM:SS`)?, `count`? | trades of the market |
//! | `order` | `issue`, `side` (`buy`, `sell`), `quantity`, `price`?, `trigger`?, `condition`?, `credit`?, `expires`? | an order placed elsewhere |
//! | `cancel` | `number` | cancels an order elsewhere |
//! | `late-fill` | `number`, `price`, `quantity`? | fills an order that has ended: all of it, or so many shares |
//! | `fault` | `name`, `value`?, `request`?, `times`? | switches a fault on |
//! | `clear-faults` | `name`? | switches faults off |
//! | `release-notices` | | lets notices go that `hold-notices` or `reorder-notices` keep |
//! | `release-changes` | `refuse`? | does the changes and cancels that `hold-changes` keeps, or lets them fail |
//! | `disconnect-events` | `errno`? | ends the stream of events, with a frame ST where `errno` is given |
//! | `frame` | `text` | sends a frame as it is |
//! | `end-day` | | orders of the day lapse |
//! | `next-day` | `keep_session`?, `splits`? (`{"7203": 2}`) | ends the day and begins the next one; one share becomes so many overnight |
//! | `clock` | `ahead_ms` | takes the broker's clock ahead |
//! | `end-session` | | its addresses are worth nothing any more |
//! | `market` | `run` | lets the trades of files go on, or holds them |
//! | `forget-requests` | | forgets the requests seen and what is counted |
//!
//! In a market that it shares with a gateway, `trade`, `market` and `next-day` are the gateway's.
//!
//! Answers are JSON: `{"done": N, ...}`, or status 400 and `{"error": TEXT}`; of a list everything before the
//! wrong command is done.

use std::collections::BTreeMap;

use domain::{Price, TsNanos};
use serde::Deserialize;
use serde_json::{Value, json};

use super::broker::{Broker, Counts, ToStream};
use super::days::NewDay;
use super::faults::{FaultKind, FaultSetting};
use super::limits::TRADES_POSTED_MAX;
use super::order::{FIRST_NUMBER, Order, Terms};
use super::refusal::Refusal;
use super::times;

/// Commands of one request.
const COMMANDS_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Command {
    View {},
    Trade {
        issue: String,
        price: String,
        quantity: u64,
        time: Option<String>,
        count: Option<u32>,
    },
    Order(Elsewhere),
    Cancel {
        number: String,
    },
    LateFill {
        number: String,
        price: String,
        quantity: Option<u64>,
    },
    Fault {
        name: FaultKind,
        #[serde(default, deserialize_with = "crate::fault_value")]
        value: Option<i64>,
        request: Option<String>,
        times: Option<u32>,
    },
    ClearFaults {
        name: Option<FaultKind>,
    },
    ReleaseNotices {},
    ReleaseChanges {
        #[serde(default)]
        refuse: bool,
    },
    DisconnectEvents {
        errno: Option<i32>,
    },
    Frame {
        text: String,
    },
    EndDay {},
    NextDay {
        #[serde(default)]
        keep_session: bool,
        #[serde(default)]
        splits: BTreeMap<String, u64>,
    },
    Clock {
        ahead_ms: u64,
    },
    EndSession {},
    Market {
        run: bool,
    },
    ForgetRequests {},
}

/// An order that is placed through another channel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Elsewhere {
    issue: String,
    side: String,
    quantity: u64,
    price: Option<String>,
    trigger: Option<String>,
    condition: Option<char>,
    credit: Option<char>,
    expires: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Body {
    Many(Vec<Value>),
    One(Value),
}

/// Does the commands of a body.
///
/// # Errors
/// What is wrong with the first wrong one.
pub(crate) fn run(broker: &mut Broker, body: &[u8]) -> Result<Value, String> {
    let body = serde_json::from_slice(body).map_err(|error| format!("not JSON: {error}"))?;
    let commands = match body {
        Body::Many(commands) => commands,
        Body::One(command) => vec![command],
    };
    if commands.len() > COMMANDS_MAX {
        return Err(format!(
            "{} commands are too many; send at most {COMMANDS_MAX}",
            commands.len()
        ));
    }
    let mut answer = json!({ "done": commands.len() });
    for (command, place) in commands.into_iter().zip(1..) {
        let place: u32 = place;
        let command: Command =
            serde_json::from_value(command).map_err(|error| format!("command {place}: {error}"))?;
        let told = one(broker, command).map_err(|why| format!("command {place}: {why}"))?;
        if let (Value::Object(answer), Value::Object(told)) = (&mut answer, told) {
            answer.extend(told);
        }
    }
    broker.release();
    Ok(answer)
}

fn one(broker: &mut Broker, command: Command) -> Result<Value, String> {
    let nothing = json!({});
    let is_of_market =
        matches!(command, Command::Trade { .. } | Command::Market { .. } | Command::NextDay { .. });
    if broker.follows && is_of_market {
        let text = "the market is the gateway's: send `trade`, `market` or `day` to its /control";
        return Err(text.to_owned());
    }
    match command {
        Command::View {} => return Ok(view(broker)),
        Command::Trade { issue, price, quantity, time, count } => {
            let price = price_of(&price)?;
            let index = issue_of(broker, &issue)?;
            let count = count.unwrap_or(1);
            if quantity == 0 || count == 0 || count > TRADES_POSTED_MAX {
                return Err(format!("quantity must be at least 1, count 1 to {TRADES_POSTED_MAX}"));
            }
            let at = match time {
                None => broker.market_time.plus_nanos(1_000_000),
                Some(text) => time_of(broker, &text)?,
            };
            for step in 0..u64::from(count) {
                broker.trade(index, at.plus_nanos(step), price, quantity);
            }
        }
        Command::Order(order) => {
            let terms = terms_of(broker, order)?;
            let placed = broker.place(terms, None).map_err(|refusal| match refusal {
                Refusal::Business(code, text) => format!("refused with {code}: {text}"),
                Refusal::Parameter(text) => text,
                Refusal::Session(errno, text) => format!("refused with {errno}: {text}"),
            })?;
            return Ok(json!({ "number": broker.orders[placed].number.to_string() }));
        }
        Command::Cancel { number } => {
            let open = place_of(&number).filter(|place| broker.open.contains(place));
            let place = open.ok_or_else(|| format!("`{number}` is not an open order"))?;
            broker.cancel(place);
        }
        Command::LateFill { number, price, quantity } => {
            let ended =
                place_of(&number).and_then(|place| Some((place, broker.orders.get(place)?)));
            let ended = ended.filter(|(_, order)| order.ended() > 0);
            let (place, order) = ended.ok_or_else(|| {
                format!(
                    "`{number}` is not an order that ended with shares left; `trade` fills others"
                )
            })?;
            let most = order.ended();
            let shares = quantity.unwrap_or(most);
            if !(1..=most).contains(&shares) {
                return Err(format!("quantity must be 1 to {most}"));
            }
            broker.book_fill(place, price_of(&price)?, shares);
        }
        Command::Fault { name, value, request, times } => {
            let is_phase = name == FaultKind::VenueClosed;
            broker.faults.add(FaultSetting::new(name, value, request, times)?)?;
            broker.keep_books();
            if is_phase {
                broker.tell_phase();
            }
        }
        Command::ClearFaults { name } => {
            let was_closed = broker.faults.has(FaultKind::VenueClosed);
            broker.faults.clear(name);
            broker.keep_books();
            if was_closed && !broker.faults.has(FaultKind::VenueClosed) {
                broker.tell_phase();
            }
        }
        Command::ReleaseNotices {} => {
            broker.faults.clear(Some(FaultKind::HoldNotices));
            broker.faults.clear(Some(FaultKind::ReorderNotices));
        }
        Command::ReleaseChanges { refuse } => {
            broker.faults.clear(Some(FaultKind::HoldChanges));
            for index in broker.held_changes() {
                if refuse {
                    broker.fail_change(index);
                } else if matches!(broker.orders[index].state, super::order::State::Canceling) {
                    broker.finish_cancel(index);
                } else {
                    broker.finish_change(index);
                }
            }
        }
        Command::DisconnectEvents { errno } => {
            return Ok(json!({ "was_connected": broker.end_stream(errno) }));
        }
        Command::Frame { text } => {
            let stream = broker.stream.as_ref().ok_or("no stream of events is connected")?;
            let sent = stream.sender.send(ToStream::Raw(text));
            sent.map_err(|_| "the stream of events has just ended")?;
        }
        Command::EndDay {} => broker.end_day(),
        Command::NextDay { keep_session, splits } => {
            if broker.config.data.is_some() && !broker.is_over {
                return Err("trades of files make the days; wait for their end".to_owned());
            }
            let mut new = NewDay::standing(broker.next_date());
            for (symbol, into) in splits {
                crate::check_split(&symbol, into)?;
                new.splits.insert(issue_of(broker, &symbol)?, into);
            }
            broker.end_day();
            if !keep_session {
                broker.end_session();
            }
            broker.begin_day(&new);
        }
        Command::Clock { ahead_ms } => {
            let nanos = ahead_ms.checked_mul(1_000_000).ok_or("ahead_ms is too large")?;
            broker.ahead_nanos = broker.ahead_nanos.saturating_add(nanos);
        }
        Command::EndSession {} => broker.end_session(),
        Command::Market { run } => broker.market_runs = run,
        Command::ForgetRequests {} => {
            broker.seen.clear();
            broker.told.clear();
            let in_flight = broker.counts.in_flight;
            broker.counts = Counts { in_flight, ..Counts::default() };
        }
    }
    Ok(nothing)
}

/// The place of an order's number.
fn place_of(number: &str) -> Option<usize> {
    usize::try_from(number.parse::<u64>().ok()?.checked_sub(FIRST_NUMBER)?).ok()
}

fn price_of(text: &str) -> Result<Price, String> {
    let price = text.parse::<Price>().map_err(|error| error.to_string())?;
    if price > Price::default() { Ok(price) } else { Err(format!("{price} is not a price")) }
}

fn issue_of(broker: &Broker, symbol: &str) -> Result<usize, String> {
    let known = || broker.issues.iter().map(|issue| issue.symbol.as_str()).collect::<Vec<_>>();
    let found = broker.issue_index(symbol);
    found.ok_or_else(|| format!("`{symbol}` is not traded; write one of {}", known().join(", ")))
}

fn time_of(broker: &Broker, text: &str) -> Result<TsNanos, String> {
    let of_day = times::parse_of_day(text);
    let of_day = of_day.ok_or_else(|| format!("`{text}` is not a time; write it like 15:30:00"))?;
    let time = broker.hours.start.plus_nanos(of_day);
    if time <= broker.market_time {
        return Err(format!("{time} lies before the market's time, {}", broker.market_time));
    }
    Ok(time)
}

fn terms_of(broker: &Broker, order: Elsewhere) -> Result<Terms, String> {
    let side = match order.side.as_str() {
        "buy" => '3',
        "sell" => '1',
        other => return Err(format!("`{other}` is unknown; write buy or sell")),
    };
    let date = |text: &String| {
        times::parse_day(text)
            .ok_or_else(|| format!("`{text}` is not a date; write it like 20260511"))
    };
    let (condition, credit) = (order.condition.unwrap_or('0'), order.credit.unwrap_or('0'));
    if !"0246".contains(condition) || !"026".contains(credit) {
        return Err("condition must be 0, 2, 4 or 6, and credit 0, 2 or 6".to_owned());
    }
    Ok(Terms {
        issue: issue_of(broker, &order.issue)?,
        tax: broker.config.tax_account,
        side,
        condition,
        credit,
        quantity: order.quantity,
        price: order.price.as_deref().map(price_of).transpose()?,
        trigger: order.trigger.as_deref().map(price_of).transpose()?,
        expires: order.expires.as_ref().map(date).transpose()?,
        closes: Vec::new(),
    })
}

/// What an order asks for, without who placed it and when.
fn content(broker: &Broker, order: &Order) -> Value {
    let terms = &order.terms;
    json!({
        "issue": broker.issues[terms.issue].symbol,
        "side": terms.side.to_string(),
        "credit": terms.credit.to_string(),
        "condition": terms.condition.to_string(),
        "quantity": terms.quantity,
        "price": terms.price.map(|price| price.to_string()),
        "trigger": terms.trigger.map(|price| price.to_string()),
        "expires": terms.expires.map(times::day),
    })
}

/// Everything that the broker holds.
pub(crate) fn view(broker: &Broker) -> Value {
    let mut contents: Vec<(Value, u64)> = Vec::new();
    let mut orders = Vec::new();
    for order in &broker.orders {
        let content = content(broker, order);
        match contents.iter_mut().find(|(known, _)| *known == content) {
            Some((_, count)) => *count += 1,
            None => contents.push((content.clone(), 1)),
        }
        let (code, status) = order.status();
        let fills = order.fills.iter().map(|fill| {
            json!({ "price": fill.price.to_string(), "quantity": fill.quantity, "time": fill.time })
        });
        orders.push(json!({
            "number": order.number.to_string(),
            "day": times::day(order.day),
            "placed_on": times::day(order.placed_on),
            "placed_at": order.placed_at,
            "p_no": order.p_no,
            "content": content,
            "status": code,
            "status_text": status,
            "filled": order.filled,
            "leaves": order.leaves(),
            "fills": fills.collect::<Vec<_>>(),
            "foreign": order.is_foreign(),
            "carried": order.is_carried,
            "triggered": order.is_triggered,
        }));
    }
    let contents: Vec<Value> = contents
        .into_iter()
        .map(|(content, count)| json!({ "content": content, "count": count }))
        .collect();
    let requests = broker.seen.iter().map(|seen| {
        json!({
            "number": seen.number,
            "at": seen.at,
            "door": seen.door,
            "fields": seen.fields,
            "left_plain": seen.left_plain,
            "overlaps": seen.overlaps,
            "outcome": seen.outcome,
        })
    });
    let events = broker.log.events.iter().map(|event| {
        let items = event.items.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
        json!({
            "number": event.number,
            "kind": event.kind.name(),
            "was_sent": event.was_sent,
            "items": items.collect::<serde_json::Map<_, _>>(),
        })
    });
    let prices = broker.issues.iter().zip(&broker.last).zip(&broker.limits).map(
        |((issue, last), limits)| {
            json!({
                "issue": issue.symbol,
                "last": last.to_string(),
                "low": limits.low.to_string(),
                "high": limits.high.to_string(),
            })
        },
    );
    let counts = &broker.counts;
    json!({
        "form": broker.config.form.as_str(),
        "day": times::day(broker.day),
        "clock": times::milli(broker.clock()),
        "market_time": times::milli(broker.market_time),
        "market_over": broker.is_over,
        "closed": broker.is_closed(),
        "logged_in": broker.session.is_some(),
        "last_p_no": broker.session.as_ref().map(|session| session.last_p_no),
        "stream": broker.stream.is_some(),
        "counts": {
            "requests": counts.requests,
            "overlaps": counts.overlaps,
            "in_flight": counts.in_flight,
            "logins": counts.logins,
            "stale_addresses": counts.stale_addresses,
            "p_no_refused": counts.p_no_refused,
            "streams": counts.streams,
            "streams_displaced": counts.streams_displaced,
            "client_frames": counts.client_frames,
            "client_pings": counts.client_pings,
            "trades": counts.trades,
        },
        "outcomes": broker.told,
        "cash": broker.ledger.cash.to_string(),
        "free_cash": broker.free_cash().to_string(),
        "free_margin": broker.free_margin().to_string(),
        "holdings": broker.ledger.holdings.iter().map(|((issue, tax), holding)| json!({
            "issue": broker.issues[*issue].symbol,
            "tax": tax.to_string(),
            "quantity": holding.quantity,
            "cost": holding.cost.to_string(),
        })).collect::<Vec<_>>(),
        "positions": broker.ledger.positions.iter().map(|position| json!({
            "number": position.number.to_string(),
            "issue": broker.issues[position.issue].symbol,
            "side": position.side.to_string(),
            "price": position.price.to_string(),
            "open": position.open(),
        })).collect::<Vec<_>>(),
        "prices": prices.collect::<Vec<_>>(),
        "faults": broker.faults.all().collect::<Vec<_>>(),
        "orders": orders,
        "contents": contents,
        "events": events.collect::<Vec<_>>(),
        "requests": requests.collect::<Vec<_>>(),
    })
}
