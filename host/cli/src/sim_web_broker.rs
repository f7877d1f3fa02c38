//! `kumiki sim web-broker`: a simulated web broker, until it is told to end.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use domain::Price;
use keys::PRIVATE_KEY_BYTES_MAX;
use secrecy::ExposeSecret as _;
use sim::web_broker::{Config, Form, Issue, MarketData, SecretString, Server, new_private_key};

use crate::args::{TaxAccount, Traded, WebBrokerArgs};
use crate::sim::{End, dates};
use crate::{Ending, paths, wrong_arguments};

/// Runs the command.
pub(crate) fn run(args: &WebBrokerArgs) -> Result<Ending> {
    let end = End::listen()?;
    let server = Server::start(config(args)?)?;
    println!(
        "{{\"listening\": {}, \"base_url\": \"{}\"}}",
        server.address.port(),
        server.base_url()
    );
    end.wait(args.until_stdin_closes)?;
    server.stop();
    Ok(Ending::Done)
}

fn config(args: &WebBrokerArgs) -> Result<Config> {
    let usual = Config::default();
    let data = args.data.as_ref().map(|folder| data(args, folder)).transpose()?;
    Ok(Config {
        port: args.port,
        form: args.dialect,
        auth_id: SecretString::from(args.auth_id.clone()),
        private_key: private_key(args.private_key.as_deref(), args.dialect)?,
        user: args.user.clone(),
        password: SecretString::from(args.password.clone()),
        second_password: SecretString::from(args.second_password.clone()),
        tax_account: match args.account {
            TaxAccount::Specific => '1',
            TaxAccount::General => '3',
            TaxAccount::Nisa => '5',
        },
        cash: args.cash,
        margin_capacity: args.margin,
        holdings: args.holdings.clone(),
        issues: issues(&args.instruments, args.data.is_some(), &usual.issues)?,
        data,
        business_day: args.business_day,
        keep_alive: args.keep_alive,
        send_date_age_max: usual.send_date_age_max.filter(|_| !args.any_send_date),
        faults: args.faults.clone(),
    })
}

/// The key of the login: that of the file, which is made where there is none.
pub(crate) fn private_key(path: Option<&Path>, form: Form) -> Result<Option<SecretString>> {
    let path = match path {
        Some(path) => path,
        None if form == Form::V4r10 => {
            let text = "web-broker-v4r10 logs in with a key: give its file with --private-key FILE";
            return Err(wrong_arguments(text.to_owned()));
        }
        None => return Ok(None),
    };
    if !path.exists() {
        let key = new_private_key()?;
        atomic_file::write_private(path, key.expose_secret().as_bytes())
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let file = keys::open_file(path);
    let file = file.map_err(|why| anyhow!("{} {why}", path.display()))?;
    let mut text = String::with_capacity(PRIVATE_KEY_BYTES_MAX);
    let read = file.take(PRIVATE_KEY_BYTES_MAX as u64).read_to_string(&mut text);
    read.with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Some(SecretString::from(text)))
}

fn data(args: &WebBrokerArgs, folder: &Path) -> Result<MarketData> {
    let cache = args.cache_dir.clone().or_else(paths::system_cache);
    let (start, end) = dates(args.date, args.from, args.to)?;
    Ok(MarketData {
        folder: folder.to_path_buf(),
        cache: cache
            .context("this system has no folder for caches; give one with --cache-dir DIR")?,
        start,
        end,
        speed: args.speed,
        begins: args.market_begins,
    })
}

/// The issues asked for: of those that are usual the rest is known.
pub(crate) fn issues(asked: &[Traded], has_data: bool, usual: &[Issue]) -> Result<Vec<Issue>> {
    if asked.is_empty() {
        let count = if has_data { 1 } else { usual.len() };
        return Ok(usual[..count].to_vec());
    }
    let issue = |traded: &Traded| {
        let known = usual.iter().find(|issue| issue.symbol == traded.symbol);
        if has_data && traded.base.is_some() {
            let text = format!("{}: prices come from --data; leave =PRICE out", traded.symbol);
            return Err(wrong_arguments(text));
        }
        let base = traded.base.or(known.map(|issue| issue.base));
        // Trade files bring their own.
        let base = base.or_else(|| has_data.then(|| Price::from_yen(1_000))).ok_or_else(|| {
            wrong_arguments(format!("{0}: give its last close, as in {0}=1000", traded.symbol))
        })?;
        let mut issue = known.unwrap_or(&usual[1]).clone();
        if known.is_none() {
            issue.name.clone_from(&traded.symbol);
        }
        issue.symbol.clone_from(&traded.symbol);
        issue.base = base;
        Ok(issue)
    };
    asked.iter().map(issue).collect()
}
