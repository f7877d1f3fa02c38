//! `kumiki sim market`: a simulated gateway and a simulated broker over one market, until they are told to end.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};
use sim::market::{Config, Market, MarketError};
use sim::{local_broker, web_broker};

use crate::args::{Format, MarketArgs};
use crate::sim::End;
use crate::{Ending, sim_local_broker, sim_web_broker, wrong_arguments};

/// What the account holds where nothing else is said.
const USUAL_HOLDING: (&str, u64) = ("7203", 300);

/// Runs the command.
pub(crate) fn run(args: &MarketArgs) -> Result<Ending> {
    let end = End::listen()?;
    let market = start(args)?;
    match args.format {
        Format::Json => println!("{}", json_line(args, &market)),
        Format::Table => println!("{}", text(args, &market)),
    }
    end.wait(args.until_stdin_closes)?;
    drop(market);
    Ok(Ending::Done)
}

fn start(args: &MarketArgs) -> Result<Market> {
    Market::start(config(args)?).map_err(|error| match error {
        MarketError::Gateway(error) => sim_local_broker::not_started(error),
        MarketError::Broker(web_broker::ServerError::Config(why)) => wrong_arguments(why),
        MarketError::Broker(other) => anyhow::Error::from(other),
    })
}

fn config(args: &MarketArgs) -> Result<Config> {
    let gateway = local_broker::Config::default();
    let has_data = args.feed.data.is_some();
    let issues = sim_web_broker::issues(&args.instruments, has_data, &gateway.issues)?;
    let mut holdings = args.holdings.clone();
    let (usual, shares) = USUAL_HOLDING;
    if holdings.is_empty() && issues.iter().any(|issue| issue.symbol == usual) {
        holdings.push((usual.to_owned(), shares));
    }
    holdings.retain(|(_, shares)| *shares > 0);
    Ok(Config {
        gateway: local_broker::Config {
            port: args.gateway_port,
            dialect: args.gateway_dialect,
            password: args.gateway_password.clone().into(),
            issues,
            source: sim_local_broker::source(&args.feed)?,
            speed: args.feed.speed,
            begins: args.feed.market_begins,
            holds_each_day: args.feed.hold_each_day,
            first_day: args.feed.first_day,
            faults: args.gateway_faults.clone(),
            ..gateway
        },
        broker: web_broker::Config {
            port: args.broker_port,
            form: args.broker_dialect,
            auth_id: args.auth_id.clone().into(),
            private_key: sim_web_broker::private_key(
                args.private_key.as_deref(),
                args.broker_dialect,
            )?,
            user: args.user.clone(),
            password: args.password.clone().into(),
            second_password: args.second_password.clone().into(),
            cash: args.cash,
            margin_capacity: args.margin,
            holdings,
            faults: args.broker_faults.clone(),
            ..web_broker::Config::default()
        },
    })
}

/// Environment variables by which an engine logs in without asking.
fn environment(args: &MarketArgs) -> Vec<(&'static str, String)> {
    let mut variables = vec![("DEV_LOCALBROKER_API_PASSWORD", args.gateway_password.clone())];
    if args.broker_dialect == web_broker::Form::V4r10 {
        variables.push(("DEV_WEBBROKER_AUTH_ID", args.auth_id.clone()));
        let path = args.private_key.as_deref().unwrap_or(Path::new("")).display();
        variables.push(("DEV_WEBBROKER_PRIVATE_KEY_FILE", path.to_string()));
    } else {
        variables.push(("DEV_WEBBROKER_USER_ID", args.user.clone()));
        variables.push(("DEV_WEBBROKER_PASSWORD", args.password.clone()));
    }
    variables
}

/// Settings of the engine's venues: the option, and its value.
fn settings(args: &MarketArgs, market: &Market) -> Vec<(&'static str, String)> {
    let (gateway, broker) = ("--local-broker", "--web-broker");
    vec![
        (gateway, format!("base_url={}", market.gateway.base_url())),
        (gateway, format!("dialect={}", args.gateway_dialect)),
        (broker, format!("base_url={}", market.broker.base_url())),
        (broker, format!("dialect={}", args.broker_dialect)),
    ]
}

fn json_line(args: &MarketArgs, market: &Market) -> String {
    let (gateway, broker) = (&market.gateway, &market.broker);
    let variables: Map<String, Value> = environment(args)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
        .collect();
    let words: Vec<String> = settings(args, market)
        .into_iter()
        .flat_map(|(option, value)| [option.to_owned(), value])
        .collect();
    json!({
        "gateway": {
            "listening": gateway.address.port(),
            "base_url": gateway.base_url(),
            "push_url": gateway.push_url(),
            "control": control(gateway.address.port()),
        },
        "broker": {
            "listening": broker.address.port(),
            "base_url": broker.base_url(),
            "control": control(broker.address.port()),
        },
        "environment": variables,
        "serve": words,
        "second_password": args.second_password,
    })
    .to_string()
}

fn control(port: u16) -> String {
    format!("http://127.0.0.1:{port}/control")
}

fn text(args: &MarketArgs, market: &Market) -> String {
    let (gateway, broker) = (&market.gateway, &market.broker);
    let variables: Vec<String> =
        environment(args).iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    let words: Vec<String> = settings(args, market)
        .iter()
        .map(|(option, value)| format!("      {option} {}", quoted(value)))
        .collect();
    format!(
        "gateway  {}  boards; the market is at {}\n\
         broker   {}  orders; second password {}\n\n\
         An engine for them, in another terminal:\n  export {}\n  \
         kumiki serve --mode live --standalone --dev-login \\\n{}\n\n\
         Ctrl-C ends the market.",
        gateway.base_url(),
        control(gateway.address.port()),
        broker.base_url(),
        args.second_password,
        variables.join(" "),
        words.join(" \\\n")
    )
}

/// A word for a shell: in quotes where it has more than letters, digits and marks that mean nothing there.
fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:=".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command, LiveCommand, SimCommand};

    fn read(line: &str) -> MarketArgs {
        let words = ["kumiki", "sim", "market", "--gateway-port", "0", "--broker-port", "0"];
        let cli = Cli::try_parse_from(words.into_iter().chain(line.split_whitespace()));
        match cli.unwrap().command {
            Command::Live(LiveCommand::Sim(SimCommand::Market(args))) => *args,
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn what_cannot_be_started_is_a_wrong_argument() {
        for (line, why) in [
            ("--instrument 6758", "6758: give its last close"),
            ("--days 0", "0 days: it must be 1 to"),
            ("--holding 6758=100", "6758 is held, but is not one of the issues"),
            ("--broker-dialect web-broker-v4r10", "logs in with a key"),
        ] {
            let error = start(&read(line)).unwrap_err();
            assert!(crate::is_wrong_arguments(&error), "{line}: {error:#}");
            assert!(error.to_string().contains(why), "{line}: {error:#}");
        }
    }

    #[test]
    fn an_engine_is_told_what_it_needs() {
        let args = read("--still --instrument 7203 --password it's");
        let market = start(&args).unwrap();
        let line: Value = serde_json::from_str(&json_line(&args, &market)).unwrap();
        assert_eq!(line["gateway"]["listening"], market.gateway.address.port());
        assert_eq!(line["environment"]["DEV_WEBBROKER_PASSWORD"], "it's");
        assert_eq!(line["serve"][5], format!("base_url={}", market.broker.base_url()));
        let text = text(&args, &market);
        assert!(text.contains("DEV_WEBBROKER_PASSWORD='it'\\''s'"), "{text}");
        assert!(text.contains(&format!("--web-broker base_url={}", market.broker.base_url())));
        let holdings = market.broker.view()["holdings"].clone();
        assert_eq!(
            (&holdings[0]["issue"], &holdings[0]["quantity"]),
            (&json!("7203"), &json!(300))
        );
        let none = read("--still --holding 7203=0");
        assert_eq!(start(&none).unwrap().broker.view()["holdings"], json!([]));
    }
}
