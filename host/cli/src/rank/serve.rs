//! `kumiki rank serve`: the ranking service, until Ctrl-C or a request to end.

use std::sync::Arc;

use anyhow::{Context, Result};
use pricestore::DataDir;
use ranking::replica::{PreparedReplica, ReplicaOptions};
use ranking::service::{self, BearerToken, Service, ServiceLimits, ServiceOptions};
use ranking::{CancelToken, EngineOptions, limits};
use secrecy::SecretString;

use crate::args::ServeArgs;
use crate::interrupt::Interrupt;
use crate::{Ending, wrong_arguments};

use super::{open_files, snapshot_line};

/// Where a token may come from, besides a file.
const TOKEN_VARIABLE: &str = "KUMIKI_RANK_TOKEN";
/// Where the token of the server that is followed may come from, besides a file.
const FOLLOW_TOKEN_VARIABLE: &str = "KUMIKI_FOLLOW_TOKEN";
/// Bytes of a megabyte.
const MEGABYTE: u64 = 1 << 20;

/// The GraphQL schema as text.
pub(crate) fn service_sdl() -> String {
    service::sdl(&ServiceLimits::default())
}

pub(super) fn run(args: &ServeArgs) -> Result<Ending> {
    let limits = open_files::within(service_limits(args)?);
    let token = token(args)?;
    if token.is_none() && !args.listen.ip().is_loopback() {
        tracing::warn!(
            "everybody who reaches {} may ask and load files; --token-file asks for a token",
            args.listen
        );
    }
    let replica = replica(args)?;
    let engine = super::open(&args.data.prices, engine_options(args))?;
    let snapshot = engine.snapshot();
    let registry =
        super::formulas::registry(&args.registry, args.limits.of_formula()?, &args.data.prices)?;
    let compiling = CancelToken::new();
    let has_data = snapshot.days > 0;
    let options = ServiceOptions {
        limits,
        token,
        origins: args.allow_origins.clone(),
        hosts: args.allow_host.clone(),
        formulas: Some(Arc::new(registry.with_cancel(compiling.clone()))),
        graphiql: args.graphiql,
        replica: replica.as_ref().map(PreparedReplica::status),
        files: Some(DataDir::new(&args.data.prices)),
        behind_days: args.settings.behind_days,
    };
    let service = Service::bind(args.listen, Arc::new(engine), options)?;
    let address = service.address();
    let copying = replica.map(|replica| replica.start(address)).transpose();
    let _copying = copying.context("--follow")?;
    let stop = service.stop();
    let _interrupt = Interrupt::listen_and(move || {
        compiling.cancel();
        stop.stop();
    })?;
    // One line in one piece, last: whoever started the service may read it and go.
    if has_data {
        tracing::info!("{}; Ctrl-C ends the service", snapshot_line(&snapshot));
    } else if snapshot.refused.is_some() {
        tracing::warn!(
            "the daily prices of {} cannot be used, see above; all rankings are answered 503 until usable prices \
             are published; `kumiki rank publish` makes the snapshot again; Ctrl-C ends the service",
            args.data.prices.display()
        );
    } else if args.follow.is_some() {
        tracing::info!(
            "nothing is copied yet: rankings are answered 503 until the first copy is whole; Ctrl-C ends \
             the service"
        );
    } else {
        tracing::warn!(
            "{} holds no daily prices yet: all rankings are answered 503 until `kumiki data update` or \
             `kumiki data sample --daily` puts some there; Ctrl-C ends the service",
            args.data.prices.display()
        );
    }
    println!("ranking service on http://{}", service.address());
    service.run()?;
    Ok(Ending::Done)
}

/// The copy of another server's data, where one is followed.
fn replica(args: &ServeArgs) -> Result<Option<PreparedReplica>> {
    let Some(primary) = &args.follow else { return Ok(None) };
    if args.settings.follow_interval.is_zero() || args.settings.follow_patience.is_zero() {
        let text = "--follow-interval and --follow-patience must be longer than nothing; write times like 5s";
        return Err(wrong_arguments(text));
    }
    let options = ReplicaOptions {
        data: DataDir::new(&args.data.prices),
        primary: primary.clone(),
        token: follow_token(args)?,
        interval: args.settings.follow_interval,
        disk_bytes: args.settings.follow_disk.saturating_mul(MEGABYTE),
        issues: args.follow_issues,
        stale_after: args.settings.follow_stale,
        patience: args.settings.follow_patience,
    };
    Ok(Some(PreparedReplica::take(options).context("--follow")?))
}

/// What the server that is followed wants to be shown.
fn follow_token(args: &ServeArgs) -> Result<Option<SecretString>> {
    let (text, from) = match (&args.follow_token_file, std::env::var(FOLLOW_TOKEN_VARIABLE)) {
        (Some(path), _) => {
            // The path is not repeated: it may be the token itself, in the wrong place.
            let from = "--follow-token-file";
            let text = std::fs::read_to_string(path);
            let text =
                text.with_context(|| format!("{from}: the file with the token cannot be read"));
            (text?, from)
        }
        (None, Ok(text)) => (text, FOLLOW_TOKEN_VARIABLE),
        (None, Err(_)) => return Ok(None),
    };
    // Whatever can be a token of the service.
    BearerToken::new(&text).context(from)?;
    Ok(Some(SecretString::from(text.trim())))
}

fn token(args: &ServeArgs) -> Result<Option<BearerToken>> {
    match (&args.token_file, std::env::var_os(TOKEN_VARIABLE)) {
        (Some(_), Some(_)) => {
            let text = format!("--token-file and {TOKEN_VARIABLE} are both given; use one");
            Err(wrong_arguments(text))
        }
        (Some(path), None) => {
            // The path is not repeated: it may be the token itself, in the wrong place.
            Ok(Some(BearerToken::from_file(path).context("--token-file")?))
        }
        (None, Some(text)) => {
            let token = BearerToken::from_bytes(text.as_encoded_bytes());
            Ok(Some(token.context(TOKEN_VARIABLE)?))
        }
        (None, None) => Ok(None),
    }
}

fn engine_options(args: &ServeArgs) -> EngineOptions {
    EngineOptions {
        threads: args.jobs.unwrap_or_else(super::cores),
        memory_bytes: args.settings.memory.saturating_mul(MEGABYTE),
        cache_bytes: args.settings.cache_memory.saturating_mul(MEGABYTE),
        // The service hands over no more than it works on, large and small; the rest waits there.
        concurrent_queries: args
            .settings
            .concurrent
            .saturating_mul(2 * args.settings.max_aliases)
            .max(1),
        timeout: args.settings.timeout,
        wait_for_data: true,
        is_replica: args.follow.is_some(),
        ..EngineOptions::default()
    }
}

fn service_limits(args: &ServeArgs) -> Result<ServiceLimits> {
    if args.settings.max_formula > limits::FORMULA_CHARS_MAX {
        let most = limits::FORMULA_CHARS_MAX;
        let text = format!("--max-formula is {}; write at most {most}", args.settings.max_formula);
        return Err(wrong_arguments(text));
    }
    if args.settings.concurrent == 0
        || args.settings.max_connections == 0
        || args.settings.max_downloads == 0
    {
        let text = "--concurrent, --max-connections and --max-downloads must be at least 1; write larger numbers";
        return Err(wrong_arguments(text));
    }
    if args.settings.send_timeout.is_zero() || args.settings.answer_timeout.is_zero() {
        let text =
            "--send-timeout and --answer-timeout must be longer than nothing; write times like 60s";
        return Err(wrong_arguments(text));
    }
    Ok(ServiceLimits {
        rank_limit: args.settings.max_limit,
        range_years: args.settings.max_years,
        formula_characters: args.settings.max_formula,
        lag: args.settings.max_lag,
        aliases: args.settings.max_aliases,
        depth: args.settings.max_depth,
        body_bytes: args.settings.max_body,
        answer_rows: args.settings.max_rows,
        concurrent_answers: args.settings.concurrent,
        queue: args.settings.queue,
        connections: args.settings.max_connections,
        request_timeout: args.settings.timeout,
        write_timeout: args.settings.send_timeout,
        answer_timeout: args.settings.answer_timeout,
        answer_memory: args.settings.answer_memory.saturating_mul(MEGABYTE),
        downloads: args.settings.max_downloads,
        ..ServiceLimits::default()
    })
}
