//! `kumiki data update`: fetches daily prices, stores and publishes them, and tells what happened.

pub(crate) mod board;
mod show;

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context, Result, bail};
use domain::TsNanos;
use domain::clock::wall_now;
use engine::{WebBrokerAddresses, credentials};
use http_client::{CancellationToken, Network, RequestPolicy};
use keys::{Key, KeyError};
use pricestore::DataDir;
use secrecy::SecretString;
use update::limits::{DAYS_FIRST_RUN, WEB_BROKER_RATE};
use update::source::{PublicSource, VENDOR_URL, VendorSource, WebBrokerAccess, WebBrokerSource};
use update::store::{Removals, WorkDatabase};
use update::{
    DayCache, Ending as JobEnding, JobOptions, JobWatch, PUBLIC_KEY, Phase, PriceStore, SourceKind,
    SourceSlot, VENDOR_KEY, last_weekdays, update_from_files, update_from_sources,
};

use crate::Ending;
use crate::args::{Format, UpdateArgs, address, first_day, refuse};
use crate::configuration::Configuration;
use crate::interrupt::Interrupt;
use crate::paths;
use crate::progress::{self, ProgressLine};

/// Runs the command.
pub(crate) fn run(args: &UpdateArgs) -> Result<Ending> {
    keys::hide_memory();
    let now = wall_now();
    if let Some(problem) = args.problem(now.jst_date()) {
        refuse(&problem);
    }
    let cancel = CancellationToken::new();
    let wanted = cancel.clone();
    let _interrupt = Interrupt::listen_and(move || wanted.cancel())?;
    let options = options(args, now);
    let sources = match args.from_files {
        Some(_) => Vec::new(),
        None => sources(args, &options, &cancel)?,
    };
    if let Some(folder) = args.from_files.as_ref().filter(|folder| !folder.is_dir()) {
        bail!("there is no folder {}; give the one with the vendor's files", folder.display());
    }
    let removals = if args.remove_issues { Removals::Any } else { Removals::Few };
    let mut store = WorkDatabase::open(&options.data)?.removing(removals);
    let mut screen = Screen::default();
    if args.days.is_none() && args.from_files.is_none() && store.rows().known()?.dates.is_empty() {
        tracing::info!(
            "nothing is stored yet; --days {DAYS_FIRST_RUN} loads about four years at once"
        );
    }
    let report = match &args.from_files {
        Some(folder) => update_from_files(&mut store, folder, &options, &cancel, &mut screen),
        None => update_from_sources(&mut store, sources, &options, &cancel, &mut screen),
    };
    screen.end();
    let report = report?;
    // The cause stands before what came of it.
    if let Some(error) = report.error.as_ref().filter(|_| report.ending == JobEnding::Failed) {
        eprintln!("error: {error}");
    }
    match args.format {
        Format::Json => print!("{}", report.to_json()),
        Format::Table => show::report(&report, &options.data),
    }
    Ok(match report.ending {
        JobEnding::Done => Ending::Done,
        JobEnding::Interrupted => {
            eprintln!("interrupted; what was fetched is kept, run it again to go on");
            Ending::Interrupted
        }
        JobEnding::Incomplete => Ending::Incomplete,
        JobEnding::Gap => Ending::Gap,
        JobEnding::Failed => Ending::Problems,
    })
}

fn options(args: &UpdateArgs, now: TsNanos) -> JobOptions {
    let to = args.to.unwrap_or_else(|| now.jst_date());
    let from = args.days.and_then(|days| last_weekdays(to, days).first().copied());
    let from = from.map(|from| from.max(first_day()));
    let mut codes = args.codes.clone();
    codes.sort_unstable();
    codes.dedup();
    JobOptions {
        data: DataDir::new(&args.data.prices),
        now,
        from,
        to,
        codes,
        refetch: args.refetch,
        accept: args.accept.clone(),
        recheck: args.recheck as usize,
    }
}

/// The sources that have what they need, and why the others have not.
fn sources(
    args: &UpdateArgs,
    options: &JobOptions,
    cancel: &CancellationToken,
) -> Result<Vec<SourceSlot>> {
    let vendor_url = address("--vendor-url", &args.vendor.vendor_url);
    let public_url = address("--public-url", &args.public_url);
    let network = Network::new(cancel.clone()).context("cannot prepare for the network")?;
    let policy = RequestPolicy::default();
    let cache_folder = match &args.cache_dir {
        Some(folder) => folder.clone(),
        None => options.data.path().join("cache"),
    };
    let cache =
        DayCache::new(&cache_folder, SourceKind::Vendor).of_server(vendor_url.as_str(), VENDOR_URL);
    if let Err(error) = cache.remove_leftovers(options.now) {
        tracing::warn!(%error, "what a killed job has left in the cache is still there");
    }
    let (rate, today) = (args.vendor.vendor_rate, options.now.jst_date());
    let vendor = secret(VENDOR_KEY).and_then(|key| {
        VendorSource::new(&network, &vendor_url, &key, rate, policy, Some(cache), today)
            .map(|source| source.fresh(options.refetch || !options.accept.is_empty()))
    });
    let broker = web_broker(args, &cache_folder)?
        .map(|access| WebBrokerSource::new(&network, access, WEB_BROKER_RATE, policy));
    // The public source may do without a key, but not with one that cannot be used.
    let key = match PUBLIC_KEY.find() {
        Err(KeyError::Missing { .. }) => Ok(None),
        found => found.map(Some).map_err(|error| error.to_string()),
    };
    let public =
        key.and_then(|key| PublicSource::new(&network, &public_url, key, args.public_rate, policy));
    Ok(vec![
        vendor
            .map_or_else(absent(SourceKind::Vendor), |source| SourceSlot::Ready(Box::new(source))),
        broker.map_or_else(absent(SourceKind::WebBroker), |source| {
            SourceSlot::Ready(Box::new(source))
        }),
        public
            .map_or_else(absent(SourceKind::Public), |source| SourceSlot::Ready(Box::new(source))),
    ])
}

/// How the web broker is reached; the inner error says why it is not asked.
fn web_broker(args: &UpdateArgs, cache_dir: &Path) -> Result<Result<WebBrokerAccess, String>> {
    let mut file = Configuration::read(args.config.as_deref())?;
    file.take_brokers(&args.web_broker, &[])?;
    if !file.web_broker.daily_history() {
        let why = "web_broker.daily_history is not true; --web-broker daily_history=true sets it";
        return Ok(Err(why.to_owned()));
    }
    let folder = args.config_dir.clone().or(file.config_dir).or_else(paths::system_config);
    let folder =
        folder.context("this system has no folder for settings; give one with --config-dir DIR")?;
    let config = file.web_broker.connection(&folder, cache_dir);
    let addresses = WebBrokerAddresses::new(&config).map_err(|error| error.to_string());
    let found = addresses.and_then(|addresses| credentials::find(false, addresses.login_kind()));
    Ok(found.map(|credentials| WebBrokerAccess { config, credentials }))
}

fn secret(key: Key) -> Result<SecretString, String> {
    key.find().map_err(|error| match error {
        // It is told for many days: why a store gave none is told by `kumiki key list`.
        KeyError::Missing { .. } => format!(
            "no key: {} is not set, and no key store has {name}; keep one with `kumiki key set {name}`, or see \
             `kumiki help key`",
            key.variable(),
            name = key.entry()
        ),
        error => error.to_string(),
    })
}

fn absent(kind: SourceKind) -> impl FnOnce(String) -> SourceSlot {
    move |why| SourceSlot::NotConfigured(kind, why)
}

/// Progress for people: a line on a terminal, plain lines elsewhere.
#[derive(Default)]
struct Screen {
    line: Option<(Phase, u64, ProgressLine)>,
}

impl Screen {
    fn end(&mut self) {
        if let Some((.., line)) = self.line.take() {
            line.finish();
        }
    }
}

const fn words(phase: Phase) -> &'static str {
    match phase {
        Phase::Days => "fetching days",
        Phase::Issues => "fetching issue by issue",
        Phase::Files => "reading files",
        Phase::Publish => "publishing",
        Phase::Split => "writing a file of each issue",
    }
}

impl JobWatch for Screen {
    fn progress(&mut self, phase: Phase, done: u64, of: u64, what: &str) {
        let is_same = |line: &(Phase, u64, ProgressLine)| (line.0, line.1) == (phase, of);
        if !self.line.as_ref().is_some_and(is_same) {
            let is_new = self.line.as_ref().is_none_or(|line| line.0 != phase);
            self.end();
            if is_new && !progress::is_quiet() && !std::io::stderr().is_terminal() {
                eprintln!("{}", words(phase));
            }
            let line = ProgressLine::start(words(phase), of, phase == Phase::Files);
            self.line = Some((phase, of, line));
        }
        if let Some((.., line)) = &mut self.line {
            line.update(done, || what.to_owned());
        }
    }
}
