//! The registry of formula modules that queries may use: those in one folder that its list names
//! with their SHA-256. Whatever else lies in the folder is never loaded.

mod add;
mod bound;
mod list;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use domain::fault::FaultKind;
use domain::formula::{FormulaDescription, FormulaInput, FormulaRuntime};
use domain::limits::COMPONENT_BYTES_MAX;
use sandbox::{FormulaModule, Limits, Sandbox, SandboxConfig, SandboxError};

use crate::error::RankError;
use crate::query::CancelToken;
use crate::text::{excerpt, one_line};

pub use add::RegistryError;
pub use bound::BoundFormula;
pub use list::{LIST_FILE, ListedFormula};

/// A folder of formula modules with its list. Share it between threads by reference.
pub struct FormulaRegistry {
    folder: PathBuf,
    sandbox: Sandbox,
    /// Modules that were used, while the list names them; at most as many as a list may have.
    loaded: Mutex<Vec<Arc<FormulaModule>>>,
    /// Ends the compiling of modules.
    cancel: CancelToken,
}

/// A module of the list, as people see it.
#[derive(Debug, Clone)]
pub struct FormulaListing {
    /// What the list says.
    pub listed: ListedFormula,
    /// What the module says, or why it cannot be used.
    pub details: Result<FormulaDetails, String>,
}

/// What a module says of itself.
#[derive(Debug, Clone)]
pub struct FormulaDetails {
    /// Name, version, summary, parameters.
    pub description: FormulaDescription,
    /// What it reads with the default parameters.
    pub inputs: Vec<FormulaInput>,
}

impl FormulaRegistry {
    /// Opens a folder, which need not be there yet. Compiled modules are kept in `cache`.
    ///
    /// # Errors
    ///
    /// Returns why the sandbox does not start on this machine.
    pub fn open(folder: &Path, cache: Option<&Path>) -> Result<Self, RankError> {
        Self::open_limited(folder, cache, Limits::formula())
    }

    /// The same, with other limits for the modules.
    ///
    /// # Errors
    ///
    /// Returns why the sandbox does not start on this machine.
    pub fn open_limited(
        folder: &Path,
        cache: Option<&Path>,
        limits: Limits,
    ) -> Result<Self, RankError> {
        let config = SandboxConfig {
            cache_folder: cache.map(Path::to_owned),
            formula_limits: limits,
            ..SandboxConfig::default()
        };
        let sandbox = Sandbox::new(config)
            .map_err(|error| RankError::internal("starting the sandbox", error))?;
        let cancel = CancelToken::new();
        Ok(Self { folder: folder.to_owned(), sandbox, loaded: Mutex::default(), cancel })
    }

    /// The same registry, whose modules are compiled as long as nobody has cancelled `cancel`; what
    /// wants one then answers [`RankError::Cancelled`].
    #[must_use]
    pub fn with_cancel(self, cancel: CancelToken) -> Self {
        Self { cancel, ..self }
    }

    /// The folder of the modules and their list, as it was opened.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the list names, by name. One that cannot be used says why.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the list itself.
    pub fn list(&self) -> Result<Vec<FormulaListing>, RankError> {
        let listed = list::read(&self.folder)?;
        Ok(listed
            .into_iter()
            .map(|listed| {
                let details =
                    self.module(&listed).and_then(|module| details(&listed.name, &module));
                FormulaListing { details: details.map_err(|error| error.to_string()), listed }
            })
            .collect())
    }

    /// A module with values for its parameters, ready to be part of a query. Parameters that are not
    /// given have their defaults.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the name, the file or a parameter, or how the module failed.
    pub fn bind(&self, name: &str, given: &[(String, f64)]) -> Result<BoundFormula, RankError> {
        let all = list::read(&self.folder)?;
        let listed = all.iter().find(|one| one.name == name);
        let listed = listed.ok_or_else(|| RankError::FormulaUnknown(unknown(name, &all)))?;
        let module = self.module(listed)?;
        let values = bound::values(name, module.description(), given)?;
        let inputs = configured(name, &module, &values)?;
        Ok(BoundFormula::new(name, module, values, inputs))
    }

    /// The module of a line of the list: from memory, or read and held against its hash.
    fn module(&self, listed: &ListedFormula) -> Result<Arc<FormulaModule>, RankError> {
        let is_it = |module: &&Arc<FormulaModule>| module.artefact().sha256() == listed.sha256;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded.iter().find(is_it) {
            return Ok(Arc::clone(module));
        }
        let name = &listed.name;
        let refused = |why: String| RankError::FormulaRefused(format!("formula `{name}` {why}"));
        let bytes = read(&self.folder.join(&listed.file)).map_err(refused)?;
        let found = sandbox::sha256(&bytes);
        if found != listed.sha256 {
            return Err(refused(format!(
                "does not match {LIST_FILE}: its file has the SHA-256 {found}, and the list has {}; if the \
                 file is the right one, add it again",
                listed.sha256
            )));
        }
        let stopped = || self.cancel.is_cancelled();
        let module = match self.sandbox.formula_from_bytes_unless(name, bytes, &stopped) {
            Err(SandboxError::Stopped) => return Err(RankError::Cancelled),
            made => made.map_err(|error| refused(format!("cannot be used: {error}")))?,
        };
        let module = Arc::new(module);
        if loaded.len() >= list::ENTRIES_MAX {
            loaded.remove(0);
        }
        loaded.push(Arc::clone(&module));
        Ok(module)
    }
}

impl std::fmt::Debug for FormulaRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FormulaRegistry").field("folder", &self.folder).finish_non_exhaustive()
    }
}

fn details(name: &str, module: &Arc<FormulaModule>) -> Result<FormulaDetails, RankError> {
    let description = module.description().clone();
    let defaults: Vec<f64> = description.parameters.iter().map(|one| one.default).collect();
    let inputs = configured(name, module, &defaults)?;
    Ok(FormulaDetails { description, inputs })
}

/// What a module reads with these values.
fn configured(
    name: &str,
    module: &FormulaModule,
    values: &[f64],
) -> Result<Vec<FormulaInput>, RankError> {
    let instance = module.instantiate(module.limits());
    let mut instance =
        instance.map_err(|error| RankError::internal("making a formula module", error))?;
    instance.configure(values).map_err(|fault| match &fault.kind {
        FaultKind::Refused(text) => {
            RankError::FormulaParams(format!("formula `{name}` says: {}", one_line(text)))
        }
        _ => RankError::FormulaFault { name: name.to_owned(), date: None, source: fault },
    })
}

fn unknown(name: &str, all: &[ListedFormula]) -> String {
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let there = if names.is_empty() {
        format!("{LIST_FILE} lists none")
    } else {
        format!("there are: {}", names.join(", "))
    };
    format!(
        "there is no formula `{}`; {there}. Only files that are listed with their SHA-256 are used; `kumiki \
         rank formulas --add FILE` lists a file",
        excerpt(name)
    )
}

/// A file's bytes, within the limit of a component; the error says what is wrong without its path.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
    if !is_file {
        return Err(format!("is listed in {LIST_FILE}, but its file is not there"));
    }
    let mut bytes = Vec::new();
    let outcome = File::open(path)
        .and_then(|file| file.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut bytes));
    outcome.map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(format!("has more than {COMPONENT_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}
