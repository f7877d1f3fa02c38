//! `kumiki rank serve`: the ranking service, until Ctrl-C or a request to end.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use pricestore::DataDir;
use ranking::service::{self, BearerToken, Service, ServiceLimits, ServiceOptions};
use ranking::{CancelToken, EngineOptions, RankEngine, limits};

use crate::Ending;
use crate::args::ServeArgs;
use crate::interrupt::Interrupt;

use super::snapshot_line;

/// Where a token may come from, besides a file.
const TOKEN_VARIABLE: &str = "KUMIKI_RANK_TOKEN";
/// Bytes of a megabyte.
const MEGABYTE: u64 = 1 << 20;

/// The GraphQL schema as text.
pub(crate) fn service_sdl() -> String {
    service::sdl(&ServiceLimits::default())
}

pub(super) fn run(args: &ServeArgs) -> Result<Ending> {
    let token = token(args)?;
    if token.is_none() && !args.listen.ip().is_loopback() {
        tracing::warn!(
            "everybody who reaches {} may ask and load files; see --token-file",
            args.listen
        );
    }
    let engine = RankEngine::open(&args.data.data_dir, engine_options(args))?;
    let snapshot = engine.snapshot();
    let registry =
        super::formulas::registry(&args.registry, args.limits.of_formula()?, &args.data.data_dir)?;
    let compiling = CancelToken::new();
    let has_data = snapshot.days > 0;
    let options = ServiceOptions {
        limits: service_limits(args)?,
        token,
        origins: args.cors_origin.clone(),
        hosts: args.allow_host.clone(),
        formulas: Some(Arc::new(registry.with_cancel(compiling.clone()))),
        graphiql: args.graphiql,
        files: Some(DataDir::new(&args.data.data_dir)),
    };
    let service = Service::bind(args.listen, Arc::new(engine), options)?;
    let stop = service.stop();
    let _interrupt = Interrupt::listen_and(move || {
        compiling.cancel();
        stop.stop();
    })?;
    // One line in one piece, last: whoever started the service may read it and go.
    if has_data {
        tracing::info!("{}; Ctrl-C ends the service", snapshot_line(&snapshot));
    } else {
        tracing::warn!(
            "{} holds no daily prices yet: all rankings are answered 503 until `kumiki update` or \
             `kumiki data sample --daily` has put some there; Ctrl-C ends the service",
            args.data.data_dir.display()
        );
    }
    println!("ranking service on http://{}", service.address());
    service.run()?;
    Ok(Ending::Done)
}

fn token(args: &ServeArgs) -> Result<Option<BearerToken>> {
    match (&args.token_file, std::env::var_os(TOKEN_VARIABLE)) {
        (Some(_), Some(_)) => bail!("--token-file and {TOKEN_VARIABLE} are both given; use one"),
        (Some(path), None) => {
            let token = BearerToken::from_file(path);
            Ok(Some(token.with_context(|| format!("--token-file {}", path.display()))?))
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
        threads: args.threads.unwrap_or_else(super::cores),
        memory_bytes: args.memory.saturating_mul(MEGABYTE),
        cache_bytes: args.cache_memory.saturating_mul(MEGABYTE),
        // The service hands over no more than it works on; the rest waits there.
        concurrent_queries: args.concurrent.saturating_mul(args.max_aliases).max(1),
        timeout: args.timeout,
        wait_for_data: true,
        ..EngineOptions::default()
    }
}

fn service_limits(args: &ServeArgs) -> Result<ServiceLimits> {
    if args.max_formula > limits::FORMULA_CHARS_MAX {
        bail!("--max-formula {}: at most {}", args.max_formula, limits::FORMULA_CHARS_MAX);
    }
    if args.concurrent == 0 || args.max_connections == 0 || args.max_downloads == 0 {
        bail!("--concurrent, --max-connections and --max-downloads must be at least 1");
    }
    if args.send_timeout.is_zero() || args.answer_timeout.is_zero() {
        bail!("--send-timeout and --answer-timeout must be longer than nothing");
    }
    Ok(ServiceLimits {
        rank_limit: args.max_limit,
        range_years: args.max_years,
        formula_characters: args.max_formula,
        lag: args.max_lag,
        aliases: args.max_aliases,
        depth: args.max_depth,
        body_bytes: args.max_body,
        answer_rows: args.max_rows,
        concurrent_answers: args.concurrent,
        queue: args.queue,
        connections: args.max_connections,
        request_timeout: args.timeout,
        write_timeout: args.send_timeout,
        answer_timeout: args.answer_timeout,
        answer_memory: args.answer_memory.saturating_mul(MEGABYTE),
        downloads: args.max_downloads,
        ..ServiceLimits::default()
    })
}
