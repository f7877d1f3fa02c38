//! `kumiki order`: orders of a person at a terminal, or of a script, through the engine that runs
//! (specification 2, "Endpoints"; specification 4, P9 to P17, P41).

pub(crate) mod asked;
mod show;

use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use domain::{Origin, TsNanos};
use engine::client::{Client, new_order_id};
use ipc::{
    CancelAllOrders, CancelOrder, Command, EngineMode, Event, GetOrderList, ModifyOrder,
    OrderListFilter, OrderModifyChange, SettleOrder, SubmitOrder, SubmitOrderRequest,
};

use crate::args::{
    AttachArgs, ConfirmArgs, EngineFolderArgs, Format, Lasting, OrderCancelAllArgs,
    OrderCancelArgs, OrderCommand, OrderListArgs, OrderModifyArgs, OrderPasswordArgs,
    OrderSettleArgs, OrderSubmitArgs, WhichArgs,
};
use crate::configuration::Configuration;
use crate::interrupt::Interrupt;
use crate::{Ending, output, paths, wrong_arguments};

use asked::{ANSWER_TIME, Answer, Desk, Nobody};

/// The venue of these commands.
pub(crate) const VENUE: &str = "web_broker";
/// How long `watch` waits before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);
/// What is asked before an order is sent, and what is told where it is not.
const SEND_IT: (&str, &str) = ("Send it?", "nothing was sent");
/// The same before something is written into the log of the orders.
pub(crate) const WRITE_IT: (&str, &str) =
    ("Write this into the log of the orders?", "nothing was written");
/// Nanoseconds from the begin of a day in Japan to its last second.
const LAST_SECOND: u64 = (24 * 60 * 60 - 1) * 1_000_000_000;

/// Runs a command.
pub(crate) fn run(command: &OrderCommand) -> Result<Ending> {
    match command {
        OrderCommand::Login(login) => {
            let mut desk = attach(&login.attach)?;
            let answer = desk.login(&mut Nobody)?;
            ended(&mut desk, answer, |_| format!("{VENUE} is ready"))
        }
        OrderCommand::Submit(submit) => self::submit(submit),
        OrderCommand::Modify(modify) => self::modify(modify),
        OrderCommand::Cancel(cancel) => self::cancel(cancel),
        OrderCommand::CancelAll(all) => cancel_all(all),
        OrderCommand::List(list) => self::list(list),
        OrderCommand::Settle(settle) => self::settle(settle),
        OrderCommand::Password(password) => self::password(password),
        OrderCommand::Watch(watch) => {
            let interrupt = Interrupt::listen()?;
            let mut desk = attach(&watch.attach)?;
            while !interrupt.is_wanted() && !output::is_over() {
                let Some(received) = desk.client.next(LOOK)? else { continue };
                if show::is_of_orders(&received.event) {
                    show::event(&received, watch.attach.format);
                }
            }
            Ok(Ending::Done)
        }
    }
}

/// The engine that runs, and its web broker.
pub(crate) fn attach(args: &AttachArgs) -> Result<Desk> {
    attach_to(args, VENUE)
}

/// The engine that runs, and one of its venues.
pub(crate) fn attach_to(args: &AttachArgs, venue: &'static str) -> Result<Desk> {
    let file = Configuration::read(args.engine.config.as_deref())?;
    let folder = config_folder(&args.engine, &file)?;
    let client = Client::attach(&folder, EngineMode::Live)?;
    if !client.ready().dialects.contains_key(venue) {
        anyhow::bail!("the engine has no venue {venue}");
    }
    Ok(Desk { client, format: args.format, venue })
}

/// The folder of an engine's session file, as flags, environment and file say.
pub(crate) fn config_folder(args: &EngineFolderArgs, file: &Configuration) -> Result<PathBuf> {
    let folder = args.config_dir.as_ref().or(file.config_dir.as_ref()).cloned();
    let folder = folder.or_else(paths::system_config);
    folder.context("this system has no folder for settings; give one with --config-dir DIR")
}

fn submit(args: &OrderSubmitArgs) -> Result<Ending> {
    let order_type = match (&args.price, &args.trigger) {
        (None, None) => domain::OrderType::Market,
        (Some(_), None) => domain::OrderType::Limit,
        (None, Some(_)) => domain::OrderType::StopMarket,
        (Some(_), Some(_)) => domain::OrderType::StopLimit,
    };
    let expire_time_ns = args.expire.map(end_of_day).transpose()?;
    if args.time_in_force == Lasting::Gtd {
        return Err(wrong_arguments(
            "--time-in-force GTD: give --expire DATE, the order's last day, in its place",
        ));
    }
    let time_in_force = match expire_time_ns {
        Some(_) => domain::TimeInForce::Gtd,
        None => args.time_in_force.into(),
    };
    let order = SubmitOrderRequest {
        client_order_id: args.id.clone().unwrap_or_else(new_order_id),
        instrument_id: args.instrument.clone(),
        order_side: args.side.into(),
        order_type,
        quantity: args.quantity.clone(),
        price: args.price.clone(),
        trigger_price: args.trigger.clone(),
        trigger_type: None,
        time_in_force,
        expire_time_ns,
        post_only: false,
        reduce_only: false,
        tags: Some(args.tags.clone()).filter(|tags| !tags.is_empty()),
    };
    let mut desk = attach(&args.attach)?;
    let text = format!("{}\nid {}", show::order(&order, args.expire), order.client_order_id);
    if !is_wanted(&desk, &args.confirm, &text, SEND_IT)? {
        return Ok(Ending::Problems);
    }
    let answer = desk.ask_with_password(
        |request_id| {
            let (venue, order) = (VENUE.to_owned(), order.clone());
            Command::SubmitOrder(SubmitOrder { request_id, venue, order })
        },
        |event, _| matches!(event, Event::SubmitOrderResult(_)),
    )?;
    let answer = match answer {
        // Sent before, and the engine does not know the broker's answer.
        Answer::Done(received) if show::is_unknown(&received.event) => {
            Answer::Unknown(Some(received))
        }
        other => other,
    };
    if matches!(answer, Answer::Unknown(_)) {
        eprintln!(
            "send the same order with --id {} to see what became of it",
            order.client_order_id
        );
    }
    ended(&mut desk, answer, show::taken)
}

fn modify(args: &OrderModifyArgs) -> Result<Ending> {
    let change = OrderModifyChange {
        new_quantity: args.quantity.clone(),
        new_price: args.price.clone(),
        new_trigger_price: args.trigger.clone(),
        new_expire_time_ns: args.expire.map(end_of_day).transpose()?,
    };
    if change == OrderModifyChange::default() {
        return Err(wrong_arguments(
            "nothing would change; give --quantity, --price, --trigger or --expire",
        ));
    }
    let mut desk = attach(&args.attach)?;
    let text = show::change(&which(&args.which), &change, args.expire);
    if !is_wanted(&desk, &args.confirm, &text, SEND_IT)? {
        return Ok(Ending::Problems);
    }
    let answer = desk.ask_with_password(
        |request_id| {
            Command::ModifyOrder(ModifyOrder {
                request_id,
                venue: VENUE.to_owned(),
                client_order_id: args.which.id.clone(),
                venue_order_id: args.which.number.clone(),
                change: change.clone(),
            })
        },
        |event, is_ours| is_ours && matches!(event, Event::OrderUpdated(_)),
    )?;
    ended(&mut desk, answer, |_| format!("changed: {}", which(&args.which)))
}

fn cancel(args: &OrderCancelArgs) -> Result<Ending> {
    let mut desk = attach(&args.attach)?;
    let text = format!("cancel {}", which(&args.which));
    if !is_wanted(&desk, &args.confirm, &text, SEND_IT)? {
        return Ok(Ending::Problems);
    }
    let WhichArgs { id, number } = &args.which;
    let answer = desk.ask_with_password(
        |request_id| {
            Command::CancelOrder(CancelOrder {
                request_id,
                venue: VENUE.to_owned(),
                client_order_id: id.clone(),
                venue_order_id: number.clone(),
            })
        },
        // Of two cancels of one order the engine names one.
        |event, is_ours| match event {
            Event::OrderCanceled(canceled) => {
                let is_same = |wanted: &Option<String>, told: &Option<ipc::Text<'_>>| {
                    wanted.is_some() && wanted.as_deref() == told.as_deref()
                };
                is_ours
                    || is_same(id, &canceled.client_order_id)
                    || is_same(number, &canceled.venue_order_id)
            }
            _ => false,
        },
    )?;
    ended(&mut desk, answer, |_| format!("cancelled: {}", which(&args.which)))
}

fn cancel_all(args: &OrderCancelAllArgs) -> Result<Ending> {
    let mut desk = attach(&args.attach)?;
    let side = args.side.map(domain::OrderSide::from);
    let mut text = "cancel all open orders of the account".to_owned();
    if let Some(instrument) = &args.instrument {
        text.push_str(&format!(" in {instrument}"));
    }
    if let Some(side) = side {
        text.push_str(&format!(" that {}", side.as_str()));
    }
    if !is_wanted(&desk, &args.confirm, &text, SEND_IT)? {
        return Ok(Ending::Problems);
    }
    let answer = desk.ask_with_password(
        |request_id| {
            Command::CancelAllOrders(CancelAllOrders {
                request_id,
                venue: VENUE.to_owned(),
                instrument_id: args.instrument.clone(),
                order_side: side,
            })
        },
        |event, is_ours| is_ours && matches!(event, Event::CancelAllResult(_)),
    )?;
    let has_failed = matches!(
        &answer,
        Answer::Done(last) if matches!(&last.event, Event::CancelAllResult(all) if all.failed_count > 0)
    );
    let ending = ended(&mut desk, answer, show::cancelled)?;
    Ok(if has_failed { Ending::Problems } else { ending })
}

fn list(args: &OrderListArgs) -> Result<Ending> {
    let mut desk = attach(&args.attach)?;
    if let Some(not_ready) = desk.make_ready()? {
        return ended(&mut desk, not_ready, |_| String::new());
    }
    let filter = OrderListFilter {
        status: args.status.clone(),
        instrument_id: args.instrument.clone(),
        date: args.date.map(|date| date.to_string().replace('-', "")),
    };
    let request_id = desk.client.request_id()?;
    let venue = VENUE.to_owned();
    let command = Command::GetOrderList(GetOrderList { request_id, venue, filter });
    let mut frames = Vec::new();
    let answer = desk.ask(&command, |event, is_ours| match event {
        Event::OrderListUpdated(list) if is_ours => {
            frames.push(list.clone());
            !list.more.unwrap_or(false)
        }
        _ => false,
    })?;
    if let Answer::Done(_) = answer {
        match args.attach.format {
            Format::Json => {
                for frame in frames {
                    println!("{}", serde_json::to_string(&Event::OrderListUpdated(frame))?);
                }
            }
            Format::Table => show::list(&frames)?,
        }
        return Ok(Ending::Done);
    }
    ended(&mut desk, answer, |_| String::new())
}

fn settle(args: &OrderSettleArgs) -> Result<Ending> {
    let mut desk = attach(&args.attach)?;
    let OrderSettleArgs { id, found, .. } = args;
    let (origin, whose) = match args.strategy {
        true => (Origin::Strategy, "a strategy's order"),
        false => (Origin::Client, "the order"),
    };
    let says = match &found.number {
        Some(number) => format!("{whose} {id} is at the broker, with the number {number}"),
        None => format!("{whose} {id} is not at the broker"),
    };
    if !is_wanted(&desk, &args.confirm, &says, WRITE_IT)? {
        return Ok(Ending::Problems);
    }
    let command = Command::SettleOrder(SettleOrder {
        request_id: desk.client.request_id()?,
        client_order_id: id.clone(),
        origin,
        venue_order_id: found.number.clone(),
    });
    let answer =
        desk.ask(&command, |event, is_ours| is_ours && matches!(event, Event::OrderSettled(_)))?;
    ended(&mut desk, answer, |_| format!("settled: {says}"))
}

fn password(args: &OrderPasswordArgs) -> Result<Ending> {
    let mut desk = attach(&args.attach)?;
    let password = asked::second_password()?;
    if password.expose().is_empty() {
        return Err(wrong_arguments(
            "the second password is empty; type it, or give it as a line of standard input",
        ));
    }
    let answer = desk.set_second_password(&password)?;
    ended(&mut desk, answer, |_| "the engine holds the second password".to_owned())
}

/// An order as it was named.
fn which(args: &WhichArgs) -> String {
    match (&args.id, &args.number) {
        (Some(id), _) => format!("order {id}"),
        (None, Some(number)) => format!("the order of number {number}"),
        (None, None) => "no order".to_owned(),
    }
}

/// The last second of a day in Japan (specification 4, P36).
fn end_of_day(date: domain::JstDate) -> Result<u64> {
    let end = TsNanos::from_jst(date, LAST_SECOND).map(TsNanos::nanos);
    end.ok_or_else(|| {
        wrong_arguments(format!("an order cannot last until {date}; give a later day"))
    })
}

/// Where the engine's orders go.
pub(crate) fn place(desk: &Desk) -> String {
    let ready = desk.client.ready();
    match (ready.venue_capabilities.get(VENUE), ready.simulators.get(VENUE)) {
        (Some(venue), _) if venue.is_production => "the real market".to_owned(),
        (_, Some(address)) => format!("the simulator at {address}"),
        _ => "the demo".to_owned(),
    }
}

/// Shows what would be done, and asks whether it is to be.
pub(crate) fn is_wanted(
    desk: &Desk,
    confirm: &ConfirmArgs,
    text: &str,
    (question, otherwise): (&str, &str),
) -> Result<bool> {
    eprintln!("{text}\nat {VENUE}, {}", place(desk));
    if confirm.yes {
        return Ok(true);
    }
    if !stdin().is_terminal() {
        return Err(wrong_arguments(
            "the command cannot ask without a terminal; give --yes to go on without asking",
        ));
    }
    eprint!("{question} [y/N] ");
    stderr().flush()?;
    let mut line = String::new();
    stdin().read_line(&mut line).context("cannot read the answer")?;
    let is_wanted = matches!(line.trim(), "y" | "Y" | "yes");
    if !is_wanted {
        eprintln!("{otherwise}");
    }
    Ok(is_wanted)
}

/// Tells an answer, and how the command ended by it.
pub(crate) fn ended(
    desk: &mut Desk,
    answer: Answer,
    done: impl FnOnce(&Event<'_>) -> String,
) -> Result<Ending> {
    let is_json = desk.format == Format::Json;
    let (received, ending) = match answer {
        Answer::Done(received) => (Some(received), Ending::Done),
        Answer::Refused(received) => (Some(received), Ending::Problems),
        Answer::Busy(received) => (Some(received), Ending::Busy),
        Answer::NeedsPassword(received) => (Some(received), Ending::NeedsPassword),
        Answer::Unknown(received) => (received, Ending::Unknown),
        Answer::NotReady(why) => {
            output::failure(&why);
            return Ok(Ending::Problems);
        }
        Answer::Interrupted => return Ok(Ending::Interrupted),
    };
    if let Some(received) = &received
        && is_json
    {
        println!("{}", received.text);
    }
    match (ending, &received) {
        (Ending::Done, Some(received)) if !is_json => println!("{}", done(&received.event)),
        (Ending::Done, _) => {}
        (Ending::NeedsPassword, _) => output::failure(
            "the engine needs the second password, which only a terminal can ask for; nothing was sent",
        ),
        (Ending::Unknown, None) => output::failure(&format!(
            "no answer came within {} s, so the result is unknown; read `kumiki order list`",
            ANSWER_TIME.as_secs()
        )),
        (_, Some(received)) => output::failure(&show::refusal(&received.event)),
        (_, None) => {}
    }
    Ok(ending)
}
