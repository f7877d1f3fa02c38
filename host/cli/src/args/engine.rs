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
      as a program starts it: one line of JSON on standard input, which stays open; when it
      closes, the engine ends
  kumiki serve --mode live --standalone
      takes orders for the web broker's demo; `kumiki order --help` says how to give them
  kumiki serve --mode live --standalone --local-broker dialect=local-broker-kabusapi
      reads boards of the local broker's gateway; `kumiki watch --help` says how to see them

When clients can connect, one line is printed: {\"listening\": PORT}. The messages are described in \
schemas/ipc.md and schemas/ipc.schema.json. Only this machine can connect.

Exit codes:
  0   it was told to end: by Shutdown, SIGTERM, Ctrl-C, or the end of standard input
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
  19  the local broker's real market is asked for without LOCALBROKER_ALLOW_PROD=1 and
      LOCALBROKER_ENV=prod together
  20  the local broker's venue cannot start: its address is refused, or the system cannot
  21  boards are to be recorded, and cannot be: the folder cannot be written, has no room, or
      another program records there
  22  the web broker's dialect is not made for the host that orders would go to";

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
    /// Read settings from this file, which schemas/configuration.md describes; flags and the environment
    /// come before it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Whether it trades or replays; it does not change while the engine runs.
    #[arg(long, value_enum)]
    pub(crate) mode: EngineMode,

    /// Folder with the vendor's files; needed to replay. Environment: KUMIKI_DATA.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Start without another program: make a token, read nothing from standard input, and go on with a
    /// run when all clients have left.
    #[arg(long)]
    pub(crate) standalone: bool,

    /// The port on this machine, 0 for any; in place of that of the line. Default: 19876. Environment:
    /// KUMIKI_PORT.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// Where engine-session.json goes. Default: where the system keeps settings. Environment:
    /// KUMIKI_CONFIG_DIR.
    #[arg(long, value_name = "DIR", requires = "standalone")]
    pub(crate) config_dir: Option<PathBuf>,

    /// Where runs, decoded data and compiled strategies go. Default: where the system keeps caches.
    /// Environment: KUMIKI_CACHE.
    #[arg(long, value_name = "DIR", requires = "standalone")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Let pages of this origin connect from a browser, like http://localhost:5173; may be given many
    /// times. Default: none. Environment: KUMIKI_ALLOW_ORIGINS, with commas.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) allow_origins: Vec<String>,

    /// A setting of the web broker, in place of that of [web_broker] in the file, like
    /// base_url=http://127.0.0.1:9000 or order_phase=O1; may be given many times. With
    /// --mode live. Environment: KUMIKI_WEB_BROKER_ and the name in capitals. schemas/configuration.md
    /// lists them; WEBBROKER_ALLOW_PROD=1 in the environment is needed besides to reach the market.
    #[arg(long = "web-broker", value_name = "NAME=VALUE")]
    pub(crate) web_broker: Vec<String>,

    /// A setting of the local broker's gateway, in place of that of [local_broker] in the file, like
    /// base_url=http://127.0.0.1:18081 or login_at_start=true; may be given many times. With --mode
    /// live. Environment: KUMIKI_LOCAL_BROKER_ and the name in capitals. schemas/configuration.md lists
    /// them; the real market is reached with LOCALBROKER_ALLOW_PROD=1 and LOCALBROKER_ENV=prod in the
    /// environment, and not otherwise.
    #[arg(long = "local-broker", value_name = "NAME=VALUE")]
    pub(crate) local_broker: Vec<String>,

    /// Log in at the web broker with DEV_WEBBROKER_USER_ID and DEV_WEBBROKER_PASSWORD of the
    /// environment, where both are set, or with a key by DEV_WEBBROKER_AUTH_ID and
    /// DEV_WEBBROKER_PRIVATE_KEY_FILE, the path of its PEM file; else with the keys that
    /// `kumiki key --help` tells of. At the local broker with DEV_LOCALBROKER_API_PASSWORD, where it is set; else
    /// the password is asked for in a window of an installed pinentry program, of the one that
    /// KUMIKI_PINENTRY names, or at the terminal.
    #[arg(long, requires = "standalone")]
    pub(crate) dev_login: bool,

    /// Folders of runs that are kept; older ones are removed.
    /// Default: 20. Environment: KUMIKI_RUNS_KEPT.
    #[arg(long, value_name = "N")]
    pub(crate) runs_kept: Option<usize>,

    /// Other limits for strategies, like fuel=200000000,memory=128MiB; `kumiki strategy limits` lists them.
    /// Environment: KUMIKI_LIMITS.
    #[arg(long = "limit", value_name = "NAME=VALUE", value_delimiter = ',')]
    pub(crate) limits: Vec<LimitChange>,

    /// Where the built-in strategies are. Environment: KUMIKI_STRATEGIES.
    #[arg(long, value_name = "DIR")]
    pub(crate) strategies: Option<PathBuf>,
}
