//! Finds strategies: built-in ones by their names, others by their paths.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use results::output::ComponentIdentity;
use sandbox::{CallPath, Limits, Sandbox, SandboxConfig, SandboxError, StrategyModule};
use serde_json::Value;
use thiserror::Error;

/// The ending of a strategy's file.
const ENDING: &str = "wasm";

/// The folders of strategies and of compiled strategies.
#[derive(Debug, Clone)]
pub struct Strategies {
    /// The folder of the built-in strategies, `<name>.wasm`.
    pub folder: PathBuf,
    /// The cache folder; made when it is missing.
    pub cache: PathBuf,
    /// A cache folder that came with the program and is only read. `None` if anyone may write its files.
    pub shipped: Option<PathBuf>,
}

/// How a strategy is made ready to run.
#[derive(Clone, Copy)]
pub struct Loading<'a> {
    /// How it is called; `None` takes the direct path if that is proven.
    pub call_path: Option<CallPath>,
    /// What compiling it may take.
    pub limits: Limits,
    /// Whether compiling should end; called from time to time while it compiles.
    pub stopped: &'a dyn Fn() -> bool,
}

impl Default for Loading<'_> {
    fn default() -> Self {
        Self { call_path: None, limits: Limits::default(), stopped: &|| false }
    }
}

/// Why there is no such strategy.
#[derive(Debug, Error)]
pub enum StrategyError {
    /// A path without a file.
    #[error(
        "there is no strategy file {given}; build it first, or name a built-in strategy: {names}"
    )]
    NoFile {
        /// The name or path that was given.
        given: String,
        /// The built-in ones, with commas between.
        names: String,
    },
    /// A folder without any strategy.
    #[error(
        "there is no strategy `{given}`: the folder {folder} holds none; build them with \
         `cargo xtask guests`, or give the path of a .wasm file"
    )]
    NoneBuilt {
        /// The name or path that was given.
        given: String,
        /// Where built-in ones should be.
        folder: PathBuf,
    },
    /// A name without a strategy.
    #[error(
        "there is no built-in strategy `{given}`; there are: {names}. For a file of your own give \
         its path, like ./{given}.wasm"
    )]
    NoName {
        /// The name or path that was given.
        given: String,
        /// The built-in ones, with commas between.
        names: String,
    },
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Something else than a program.
    #[error(
        "{0} is no WebAssembly file (it does not begin with `\\0asm`); give the .wasm file that \
         `cargo build --release --target wasm32-unknown-unknown` writes"
    )]
    NoWasm(PathBuf),
    /// The sandbox does not take it.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl Strategies {
    /// The names of the built-in strategies, sorted. None where there is no such folder.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
            .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
            .collect();
        names.sort();
        names
    }

    /// The file of a strategy that is given as a path or as a built-in name.
    ///
    /// # Errors
    /// [`StrategyError`] when there is none.
    pub fn find(&self, given: &str) -> Result<PathBuf, StrategyError> {
        let as_path = Path::new(given);
        let looks_like_path = as_path.components().count() > 1
            || as_path.extension().is_some_and(|ending| ending == ENDING);
        let names = || self.names().join(", ");
        let given = given.to_owned();
        if looks_like_path {
            return match as_path.is_file() {
                true => Ok(as_path.to_owned()),
                false => Err(StrategyError::NoFile { given, names: names() }),
            };
        }
        let path = self.folder.join(format!("{given}.{ENDING}"));
        match names() {
            _ if path.is_file() => Ok(path),
            none if none.is_empty() => {
                Err(StrategyError::NoneBuilt { given, folder: self.folder.clone() })
            }
            names => Err(StrategyError::NoName { given, names }),
        }
    }

    /// Finds a strategy and makes it ready to run, through the cache of compiled strategies.
    ///
    /// # Errors
    /// [`StrategyError`] when there is none, or when the sandbox does not take it.
    pub fn load(&self, given: &str) -> Result<StrategyModule, StrategyError> {
        self.load_with(given, &Loading::default())
    }

    /// Finds a strategy and makes it ready to run in another way.
    ///
    /// # Errors
    /// [`StrategyError`] also when it cannot be called on that path, or was stopped.
    pub fn load_with(
        &self,
        given: &str,
        loading: &Loading<'_>,
    ) -> Result<StrategyModule, StrategyError> {
        let &Loading { call_path, limits: strategy_limits, stopped } = loading;
        let path = self.find(given)?;
        check_magic(&path)?;
        let components = |cache: &PathBuf| cache.join("components");
        let cache_folder = Some(components(&self.cache));
        let shipped_folder = self.shipped.as_ref().map(components);
        let config = SandboxConfig {
            cache_folder,
            shipped_folder,
            call_path,
            strategy_limits,
            ..SandboxConfig::default()
        };
        Ok(Sandbox::new(config)?.load_unless(&path, stopped)?)
    }
}

/// Refuses a file that is no WebAssembly at all, in plain words.
fn check_magic(path: &Path) -> Result<(), StrategyError> {
    const MAGIC: [u8; 4] = *b"\0asm";
    let unreadable = |source| StrategyError::Read { path: path.to_owned(), source };
    let mut begin = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut begin).map_err(unreadable)?;
    if begin == MAGIC { Ok(()) } else { Err(StrategyError::NoWasm(path.to_owned())) }
}

/// The parameters of a strategy as the JSON object that its init gets.
#[must_use]
pub fn config_json(parameters: &BTreeMap<String, Value>) -> String {
    Value::Object(parameters.clone().into_iter().collect()).to_string()
}

/// What a strategy is, for manifests.
#[must_use]
pub fn component_identity(module: &StrategyModule) -> ComponentIdentity {
    let artefact = module.artefact();
    ComponentIdentity {
        name: artefact.name().to_owned(),
        sha256: artefact.sha256().to_owned(),
        imports: artefact.imports().to_vec(),
    }
}
