//! The file of our registered symbols, for the engine after this one.
//!
//! A killed engine cannot unregister its symbols at the gateway, and they would count as another program's for
//! ever. An engine that ends cannot unregister what the gateway registers later. The next engine does both
//! (specification 4, P52).
//!
//! | contents | effect |
//! |---|---|
//! | symbols of the same gateway day, which begins with the forced logout | they are ours: unregistered, or left registered if a client wants them |
//! | symbols of another day | none: the gateway has logged out since, and other programs may have registered them |
//! | symbols that may be registered late, up to a time | they are ours until then; afterwards none |
//! | no file, or one that is not ours | none, with a warning in the second case; it is replaced |
//! | another engine has it | none, and nothing is written: its symbols are its own |

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFile;
use serde::{Deserialize, Serialize};

use super::keys::symbol_of;
use super::limits::{REGISTRATION_FILE_BYTES_MAX, REGISTRATION_FILE_SYMBOLS_MAX};

/// The version of the file's form.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    /// See [`ForcedLogout::gateway_day`](super::ForcedLogout::gateway_day).
    gateway_day: u64,
    symbols: Vec<String>,
    /// See [`LeftOver::late_until_ms`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late_until_ms: Option<u64>,
}

/// Symbols that an engine leaves at the gateway for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOver {
    /// See [`ForcedLogout::gateway_day`](super::ForcedLogout::gateway_day).
    pub gateway_day: u64,
    /// Their codes.
    pub symbols: Vec<String>,
    /// They were unregistered, but the gateway may still register them up to then, in milliseconds UTC.
    pub late_until_ms: Option<u64>,
}

/// The file, locked as long as this lives.
#[derive(Debug)]
pub(super) struct RegistrationFile {
    path: PathBuf,
    _lock: File,
}

impl RegistrationFile {
    /// Locks the file, if no other engine has it. Without it a killed engine leaves its symbols registered.
    pub(super) fn open(path: &Path) -> Option<Self> {
        match Self::lock(path) {
            Ok(lock) => Some(Self { path: path.to_owned(), _lock: lock }),
            Err(error) => {
                let path = path.display();
                tracing::warn!(%error, %path, "the engine cannot keep registered symbols in a file");
                None
            }
        }
    }

    fn lock(path: &Path) -> io::Result<File> {
        fs::create_dir_all(atomic_file::folder_of(path))?;
        let file = atomic_file::open_own(&path.with_extension("lock"))?;
        file.try_lock()?;
        Ok(file)
    }

    /// The symbols that an engine before this one left on this gateway day.
    pub(super) fn left(&self, gateway_day: u64, now_ms: u64) -> LeftOver {
        let nothing = LeftOver { gateway_day, ..LeftOver::default() };
        match self.read() {
            Ok(Some(Content { gateway_day: day, symbols, late_until_ms, .. }))
                if day == gateway_day && late_until_ms.is_none_or(|until| until > now_ms) =>
            {
                LeftOver { gateway_day, symbols, late_until_ms }
            }
            Ok(_) => nothing,
            Err(why) => {
                let path = self.path.display();
                tracing::warn!(why, %path, "the engine cannot read the file of registered symbols");
                nothing
            }
        }
    }

    fn read(&self) -> Result<Option<Content>, String> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(found) if !found.is_file() => return Err("it is not a file".to_owned()),
            found => drop(found),
        }
        let mut text = String::new();
        let file = File::open(&self.path).map_err(|error| error.to_string())?;
        let read = file.take(REGISTRATION_FILE_BYTES_MAX + 1).read_to_string(&mut text);
        let read = read.map_err(|error| error.to_string())?;
        if read as u64 > REGISTRATION_FILE_BYTES_MAX {
            return Err(format!("it has more than {REGISTRATION_FILE_BYTES_MAX} bytes"));
        }
        let content: Content = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let is_ours = |symbol: &String| symbol_of(symbol).is_ok_and(|read| read == symbol);
        if content.version != VERSION {
            return Err("it has another version".to_owned());
        }
        if content.symbols.len() > REGISTRATION_FILE_SYMBOLS_MAX {
            return Err(format!("it has more than {REGISTRATION_FILE_SYMBOLS_MAX} symbols"));
        }
        if !content.symbols.iter().all(is_ours) {
            return Err("it has texts that are not symbols".to_owned());
        }
        Ok(Some(content))
    }

    /// Writes what is registered now, before the request leaves. It need not survive a crash of the machine,
    /// because the gateway does not either.
    pub(super) fn write(&self, left: LeftOver) {
        let LeftOver { gateway_day, symbols, late_until_ms } = left;
        let written = if symbols.is_empty() {
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        } else {
            self.replace(&Content { version: VERSION, gateway_day, symbols, late_until_ms })
        };
        if let Err(error) = written {
            let path = self.path.display();
            tracing::warn!(%error, %path, "the engine cannot write registered symbols to their file");
        }
    }

    fn replace(&self, content: &Content) -> io::Result<()> {
        let file = AtomicFile::create_in(atomic_file::folder_of(&self.path))?;
        serde_json::to_writer(file.reopen()?, content)?;
        file.commit_unsynced(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(symbols: &[&str], gateway_day: u64) -> LeftOver {
        let symbols = symbols.iter().map(|symbol| (*symbol).to_owned()).collect();
        LeftOver { gateway_day, symbols, late_until_ms: None }
    }

    #[test]
    fn what_was_left_on_the_same_day_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/registered.json");
        let kept = RegistrationFile::open(&path).unwrap();
        assert_eq!(kept.left(7, 9), left(&[], 7));
        kept.write(left(&["7203", "130A"], 7));
        assert!(RegistrationFile::open(&path).is_none(), "another engine has it");
        drop(kept);
        let kept = RegistrationFile::open(&path).unwrap();
        assert_eq!(kept.left(7, 9), left(&["7203", "130A"], 7));
        assert_eq!(kept.left(8, 9), left(&[], 8));
        kept.write(left(&[], 7));
        kept.write(left(&[], 7));
        assert!(!path.exists());
        // A symbol may be registered late only for a while.
        let late = LeftOver { late_until_ms: Some(9), ..left(&["7203"], 7) };
        kept.write(late.clone());
        assert_eq!([8, 9].map(|now_ms| kept.left(7, now_ms)), [late, left(&[], 7)]);
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registered.json");
        let kept = RegistrationFile::open(&path).unwrap();
        let long =
            format!("\"{}\"", "x".repeat(usize::try_from(REGISTRATION_FILE_BYTES_MAX).unwrap()));
        for text in [
            "",
            "{",
            "[]",
            r#"{"version":2,"gateway_day":7,"symbols":["7203"]}"#,
            r#"{"version":1,"gateway_day":7,"symbols":["72/03"]}"#,
            r#"{"version":1,"gateway_day":7,"symbols":["7203.TSE"]}"#,
            r#"{"version":1,"gateway_day":7,"symbols":["7203"],"more":1}"#,
            &long,
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(kept.left(7, 9), left(&[], 7), "{:.60}", text);
        }
        let many: Vec<String> =
            (0..=REGISTRATION_FILE_SYMBOLS_MAX).map(|n| format!("{}", 1_000 + n)).collect();
        let text =
            serde_json::json!({ "version": 1, "gateway_day": 7, "symbols": many }).to_string();
        fs::write(&path, text).unwrap();
        assert_eq!(kept.left(7, 9), left(&[], 7));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(kept.left(7, 9), left(&[], 7));
        kept.write(left(&["7203"], 7));
    }
}
