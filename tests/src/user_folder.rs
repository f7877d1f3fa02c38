//! A folder in which a test uses the `kumiki` program as a user would: real processes, real files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use wit_component::StringEncoding;

use crate::{built, sample, wat};

/// The folder of strategies of its own, where it has one.
const STRATEGIES: &str = "own-strategies";

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub errors: String,
}

/// The files of a folder with their names.
///
/// # Panics
/// When one cannot be read.
#[must_use]
pub fn files_in(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{error}"));
    let pair = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes)
    };
    entries.flatten().map(|entry| pair(entry.path())).collect()
}

/// A folder of its own, with a cache in it; removed at the end.
#[derive(Debug)]
pub struct UserFolder {
    folder: tempfile::TempDir,
}

impl UserFolder {
    /// An empty folder whose cache shares the compiled code of guests with all other tests: see
    /// [`built::compiled_guests`].
    ///
    /// # Panics
    /// When there is no place for one.
    #[must_use]
    pub fn empty() -> Self {
        let user = Self::compiling();
        #[cfg(unix)]
        {
            let linked = fs::create_dir(user.path("cache")).and_then(|()| {
                let components = user.path("cache/components");
                std::os::unix::fs::symlink(built::compiled_guests(), components)
            });
            linked.unwrap_or_else(|error| panic!("{error}"));
        }
        user
    }

    /// An empty folder in which each guest is compiled once more.
    ///
    /// # Panics
    /// When there is no place for one.
    #[must_use]
    pub fn compiling() -> Self {
        Self { folder: tempfile::tempdir().unwrap_or_else(|error| panic!("{error}")) }
    }

    /// A folder with sample data of 7203.TSE in `data`.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn with_sample(days: u32, trades_per_day: u32) -> Self {
        Self::empty().sampled(days, trades_per_day)
    }

    /// The same folder with such data in it.
    ///
    /// # Panics
    /// When they cannot be written.
    #[must_use]
    pub fn sampled(self, days: u32, trades_per_day: u32) -> Self {
        sample::write(&self.path("data"), "72030", days, trades_per_day, 7);
        self
    }

    /// The same folder with one built-in strategy only, `quiet`, which does nothing and is compiled in no time: for what
    /// does not depend on the strategy.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn with_quiet_strategy(self) -> Self {
        let component = wat::component(&wat::with_functions(0), StringEncoding::UTF8);
        let written = fs::create_dir(self.path(STRATEGIES))
            .and_then(|()| fs::write(self.path(STRATEGIES).join("quiet.wasm"), component));
        written.unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of something in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with these arguments, which hold no spaces, in this folder.
    #[must_use]
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(built::kumiki());
        command.current_dir(self.folder()).env("KUMIKI_CACHE", self.path("cache"));
        for variable in ["KUMIKI_STRATEGIES", "KUMIKI_LOG", "KUMIKI_LOG_FORMAT"] {
            command.env_remove(variable);
        }
        if self.path(STRATEGIES).is_dir() {
            command.env("KUMIKI_STRATEGIES", self.path(STRATEGIES));
        }
        command.stdin(Stdio::null());
        command.args(arguments.split_whitespace());
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs it and gives what it said; a program that a signal ended has the code -1.
    ///
    /// # Panics
    /// When it says something that is no text.
    #[must_use]
    pub fn said(&self, arguments: &str) -> Said {
        let output = self.run(arguments);
        let text = |bytes| String::from_utf8(bytes).unwrap_or_else(|error| panic!("{error}"));
        let code = output.status.code().unwrap_or(-1);
        Said { code, out: text(output.stdout), errors: text(output.stderr) }
    }

    /// Runs what must succeed; gives its standard output.
    ///
    /// # Panics
    /// When it fails.
    pub fn good(&self, arguments: &str) -> String {
        let said = self.said(arguments);
        assert!(said.code == 0, "{arguments}: {}", said.errors);
        said.out
    }

    /// Runs what must fail; gives its exit code and standard error.
    ///
    /// # Panics
    /// When it succeeds.
    #[must_use]
    pub fn bad(&self, arguments: &str) -> (i32, String) {
        let said = self.said(arguments);
        assert!(said.code != 0, "{arguments} succeeded");
        (said.code, said.errors)
    }
}
