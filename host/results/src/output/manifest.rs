//! What a run was made from, so that it can be made again and compared.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use exchange::ExecutionModel;

/// Version of the manifest's and the tables' form.
pub const MANIFEST_VERSION: u32 = 4;

/// A data file that a run read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct InputFile {
    /// Its name without the folder.
    pub file: String,
    /// xxh3-128 of its bytes, in hexadecimal.
    pub xxh3_128: String,
    /// Rows of the instrument that the run used: 0 of a file that gave only a close or price steps before
    /// the first day, or no split.
    pub rows: u64,
}

/// A table of the data folder that decided with: instruments or calendar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SettingsFile {
    /// Its name without the folder.
    pub file: String,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
}

/// The strategy that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ComponentIdentity {
    /// Its name.
    pub name: String,
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: String,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
}

/// What a run was made from and what came out, in a few words.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this form.
    pub manifest_version: u32,
    /// Version of Kumiki.
    pub kumiki_version: String,
    /// `paper` or `live` of a run on the live market; left out of a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_kind: Option<String>,
    /// `completed`, `interrupted` or `failed`; of a run on the live market `running` until its end, and for good
    /// where it was killed.
    pub status: String,
    /// Whether the results end before the data does: the run was stopped, or the strategy failed. A run on the live
    /// market is partial until its end.
    pub partial: bool,
    /// Why the strategy failed.
    pub fault: Option<String>,
    /// What a reader must be told when the execution model is better than a strategy can expect of
    /// the market.
    pub warning: Option<String>,
    /// The strategy.
    pub component: ComponentIdentity,
    /// The engine that ran it, with its version.
    pub engine: String,
    /// The limits that the strategy ran under, by the names of `kumiki strategy limits`.
    pub limits: BTreeMap<String, u64>,
    /// The strategy's parameters, as given.
    pub parameters: serde_json::Value,
    /// The parameters that the strategy ran with, as it reported them: given and default ones, by
    /// name. Empty where it reports none; what it was given and did not report stands in
    /// `parameters` alone.
    pub parameters_effective: BTreeMap<String, serde_json::Value>,
    /// What was traded; several are separated by commas.
    pub instrument_id: String,
    /// Names of the instruments by their ids, for people, as the data folder's `instruments.csv` has them on
    /// the first date, or after it where it has none then. Left out where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeMap<String, String>>,
    /// First date asked for (JST), `YYYY-MM-DD`.
    pub start: String,
    /// Last date asked for (JST).
    pub end: String,
    /// What the strategy saw: `trade`, `minute` or `day`.
    pub granularity: String,
    /// Where bars came from: `vendor` (bar files), `trades` (made from trades files) or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bars_from: Option<String>,
    /// Money at the start, in yen.
    pub cash: String,
    /// Shares in a trading unit, one number for each instrument.
    pub lot: String,
    /// Price steps: the name of a table, or `fixed <yen>`; one for each instrument.
    pub ticks: String,
    /// Lots as `--lot` said them, separated by commas; empty where nothing was said.
    pub lot_asked: String,
    /// Price steps as `--ticks` said them, separated by commas; empty where nothing was said.
    pub ticks_asked: String,
    /// Trades handed to the strategy at once; results do not depend on it.
    pub window: u32,
    /// Parameters of the exchange.
    pub execution_model: ExecutionModel,
    /// Its rules in words.
    pub rules: BTreeMap<String, String>,
    /// Data files.
    pub inputs: Vec<InputFile>,
    /// The folder's tables of instruments and of business days, as far as there are any.
    pub settings: Vec<SettingsFile>,
    /// What a reader must know of the instruments, a line each: where lots, price steps and base prices
    /// came from, and trades outside of a day's price range.
    pub notes: Vec<String>,
    /// xxh3-128 of the event log, in hexadecimal: equal for runs in which the same happened.
    pub event_log_digest: String,
    /// Records in the event log.
    pub event_log_records: u64,
}
