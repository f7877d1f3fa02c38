//! The arguments of `kumiki serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::guest_limit::LimitChange;

pub(crate) const ENGINE_HELP: &str = "\
Examples:
  kumiki data sample --out data --instrument 7203.TSE
  kumiki serve --mode replay --data data --standalone
      makes a token and prints where it is; clients find it in engine-session.json
  echo '{\"token\":\"0123456789abcdef\",\"config_dir\":\"c\",\"cache_dir\":\"d\"}' | \\
      kumiki serve --mode replay --data data
      as a program starts it: one line of JSON on standard input, which stays open; the engine
      ends when it closes
  kumiki serve --mode live --standalone
      takes orders for the web broker's demo; `kumiki help order` says how to give them
  kumiki serve --mode live --standalone --local-broker dialect=local-broker-kabusapi
      reads boards of the local broker's gateway; `kumiki help watch` says how to see them

When clients can connect, the engine prints one line: {\"listening\": PORT}. The messages are described in \
schemas/ipc.md and schemas/ipc.schema.json. Only this machine can connect.

Exit codes:
  0   it was ended by Shutdown, SIGTERM, Ctrl-C, or the end of standard input
  1   an error
  2   wrong arguments
  10  no line on standard input within 10 s
  11  the line is no JSON with port, token, config_dir and cache_dir
  12  the port is in use
  13  the config or the cache folder cannot be written
  14  there is no data folder
  15  another engine runs with this config folder
  16  another program writes the log of the orders, web_broker_orders.jsonl
  17  the order desk cannot start: the broker's address is refused, or a file cannot be used
  18  the dialect cannot be used
  19  the local broker's real market needs LOCALBROKER_ALLOW_PROD=1 and
      LOCALBROKER_ENV=prod together
  20  the local broker's venue cannot start: its address is refused, or the system cannot
  21  the engine cannot record boards: the folder cannot be written, has no room, or another
      program records there
  22  the web broker's dialect is not made for the host of its address";

/// What the engine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineMode {
    /// Trade at venues.
    Live,
    /// Replay past data.
    Replay,
}

#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// File of settings (docs/reference/configuration.md).
    ///
    /// Flags and the environment come before it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Whether the engine trades or replays.
    #[arg(long, value_enum)]
    pub(crate) mode: EngineMode,

    /// Folder with the market data; needed to replay.
    ///
    /// Environment: KUMIKI_DATA.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Start by hand: make a token and read no standard input.
    ///
    /// A run goes on when all clients have left.
    #[arg(long)]
    pub(crate) standalone: bool,

    /// Be no part of the terminal's session: its end and its Ctrl-C are not of this process.
    #[arg(long, hide = true, requires = "standalone")]
    pub(crate) detached: bool,

    /// Port on this machine, 0 for any; default: 19876.
    ///
    /// It comes before the port of the line on standard input. Environment: KUMIKI_PORT.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// Port of pages in the browser, 0 for any; default: 19875.
    ///
    /// It is used from the first page on, see `kumiki help console`. Environment: KUMIKI_CONSOLE_PORT.
    #[arg(long, value_name = "PORT", help_heading = "Access")]
    pub(crate) console_port: Option<u16>,

    /// Folder of engine-session.json.
    ///
    /// Default: where the system keeps settings. Environment: KUMIKI_CONFIG_DIR.
    #[arg(long, value_name = "DIR", requires = "standalone", help_heading = "Limits and folders")]
    pub(crate) config_dir: Option<PathBuf>,

    /// Folder of runs, decoded data and compiled strategies.
    ///
    /// Default: where the system keeps caches. Environment: KUMIKI_CACHE.
    #[arg(long, value_name = "DIR", requires = "standalone", help_heading = "Limits and folders")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Let web pages of this origin connect.
    ///
    /// Like http://localhost:5173; may be given many times. Environment: KUMIKI_ALLOW_ORIGINS, with commas.
    #[arg(long = "allow-origin", value_name = "ORIGIN", help_heading = "Access")]
    pub(crate) allow_origins: Vec<String>,

    /// A setting of the web broker, like order_phase=O1.
    ///
    /// It comes before [web_broker] of the file, and needs --mode live. May be given many times.
    /// Environment: KUMIKI_WEB_BROKER_ and the name in capitals. docs/reference/configuration.md lists the settings.
    /// The real market also needs WEBBROKER_ALLOW_PROD=1 in the environment.
    #[arg(long = "web-broker", value_name = "NAME=VALUE", help_heading = "Brokers (--mode live)")]
    pub(crate) web_broker: Vec<String>,

    /// A setting of the local gateway, like login_at_start=true.
    ///
    /// It comes before [local_broker] of the file, and needs --mode live. May be given many times.
    /// Environment: KUMIKI_LOCAL_BROKER_ and the name in capitals. docs/reference/configuration.md lists the
    /// settings. The real market needs LOCALBROKER_ALLOW_PROD=1 and LOCALBROKER_ENV=prod in the environment.
    #[arg(
        long = "local-broker",
        value_name = "NAME=VALUE",
        help_heading = "Brokers (--mode live)"
    )]
    pub(crate) local_broker: Vec<String>,

    /// Log in with DEV_... of the environment.
    ///
    /// At the web broker with DEV_WEBBROKER_USER_ID and DEV_WEBBROKER_PASSWORD, if both are set. With a key:
    /// DEV_WEBBROKER_AUTH_ID and DEV_WEBBROKER_PRIVATE_KEY_FILE, the path of its PEM file. Else with the keys
    /// of `kumiki help key`. At the local broker with DEV_LOCALBROKER_API_PASSWORD, if it is set. Else a
    /// window of pinentry (KUMIKI_PINENTRY names another program) or the terminal asks for the password.
    #[arg(long, requires = "standalone", help_heading = "Brokers (--mode live)")]
    pub(crate) dev_login: bool,

    /// Folders of runs to keep; default: 20.
    ///
    /// The engine removes older ones. Runs on the live market stay. Environment: KUMIKI_RUNS_KEPT.
    #[arg(long, value_name = "N", help_heading = "Limits and folders")]
    pub(crate) runs_kept: Option<usize>,

    /// Limits of strategies, like memory=128MiB,log=8MiB.
    ///
    /// `kumiki strategy limits` lists all limits. Environment: KUMIKI_LIMITS.
    #[arg(
        long = "guest-limit",
        value_name = "NAME=VALUE",
        value_delimiter = ',',
        help_heading = "Limits and folders"
    )]
    pub(crate) limits: Vec<LimitChange>,

    /// Folder of the built-in strategies.
    ///
    /// Environment: KUMIKI_STRATEGIES.
    #[arg(long, value_name = "DIR", help_heading = "Limits and folders")]
    pub(crate) strategies: Option<PathBuf>,
}
