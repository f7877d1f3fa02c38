//! Keeps compiled programs, so that a strategy is compiled once for each version of it and of the
//! engine.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use atomic_file::{AtomicFile, folder_of};
use wasmtime::component::Component;
use wasmtime::{Engine, Module};
use xxhash_rust::xxh3::Xxh3;

use crate::artefact::{self, Artefact};
use crate::config::CallPath;
use crate::contract::Contract;
use crate::proof::Plan;

/// Bytes of the checksum in front of a compiled component.
const CHECKSUM_BYTES: usize = 16;

/// Bytes of a file that is read: compiled interpreters have a tenth of it.
const COMPILED_BYTES_MAX: u64 = 512 << 20;

/// What stands in a file, so that one of another form has another name.
const FORM: u8 = 2;

/// How a compiled component came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheOutcome {
    /// It was in the cache.
    Hit,
    /// It came with the program.
    Shipped,
    /// It was compiled and put into the cache.
    Compiled,
    /// What was in the cache was damaged, so it was compiled and put there again.
    Repaired,
    /// It was compiled but could not be put into the cache; why.
    NotKept(String),
    /// It was compiled; there is no cache.
    NoCache,
}

/// A component's code, for one of the two ways of calling it.
pub(crate) enum Code {
    /// The program inside, for direct calls.
    Program(Module),
    /// All of it, for the engine.
    Component(Component),
}

/// A component's code with the way in which it is called.
pub(crate) struct Compiled {
    pub(crate) code: Code,
    /// How the program is called, on the direct path.
    pub(crate) plan: Option<Plan>,
    /// Why it is called that way, in words.
    pub(crate) reason: String,
    pub(crate) cache_outcome: CacheOutcome,
}

/// A folder with one file for each component and engine: a checksum and the compiled component.
///
/// Only this process's own compiler writes there; loading what it wrote is as safe as running it was
/// when it was written. The checksum finds damage, not malice: keep the folder writable for its
/// owner alone.
#[derive(Debug, Clone)]
pub struct CompileCache {
    folder: PathBuf,
    engine_key: u64,
}

impl CompileCache {
    pub(crate) fn new(folder: &Path, engine: &Engine, contract: &Contract) -> Self {
        let mut hasher = Xxh3::new();
        // What is kept was held against this version of the contract before.
        (contract.package, contract.version, FORM).hash(&mut hasher);
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Self { folder: folder.to_owned(), engine_key: hasher.finish() }
    }

    /// Where the code of a component is kept, for one way of calling it.
    #[must_use]
    pub fn path_of(&self, artefact: &Artefact, path: CallPath) -> PathBuf {
        self.file_of(artefact.sha256(), path)
    }

    fn file_of(&self, sha256: &str, path: CallPath) -> PathBuf {
        let (key, path) = (self.engine_key, path.as_str());
        self.folder.join(format!("{sha256}-{key:016x}-{path}.cwasm"))
    }

    /// A module of the host's own: from here, or compiled now and kept.
    pub(crate) fn module(&self, engine: &Engine, text: &[u8]) -> wasmtime::Result<Module> {
        let (sha256, path) = (artefact::sha256(text), CallPath::Direct);
        if let Some(Code::Program(module)) = self.load(engine, &sha256, path) {
            return Ok(module);
        }
        let code = Code::Program(Module::new(engine, text)?);
        // Where it cannot be kept it is compiled again, in a few milliseconds.
        let _ = self.store(&sha256, path, &code);
        match code {
            Code::Program(module) => Ok(module),
            Code::Component(_) => Err(wasmtime::Error::msg("a module is no component")),
        }
    }

    /// The code, if it is here and whole.
    pub(crate) fn load(&self, engine: &Engine, sha256: &str, path: CallPath) -> Option<Code> {
        let file = self.file_of(sha256, path);
        // Anything else, such as a pipe, could keep its reader waiting or never end.
        let is_ours = |found: &fs::Metadata| found.is_file() && found.len() <= COMPILED_BYTES_MAX;
        fs::metadata(&file).ok().filter(is_ours)?;
        deserialize(engine, path, &file, &fs::read(&file).ok()?)
    }

    /// Stores the code; whatever is there was not usable.
    pub(crate) fn store(&self, sha256: &str, path: CallPath, code: &Code) -> CacheOutcome {
        let path = self.file_of(sha256, path);
        let damaged = path.exists();
        let compiled = match code {
            Code::Program(module) => module.serialize(),
            Code::Component(component) => component.serialize(),
        };
        let kept = compiled.map_err(|error| format!("{error:#}")).and_then(|compiled| {
            write(&path, &compiled).map_err(|error| format!("{}: {error}", path.display()))
        });
        match kept {
            Err(reason) => CacheOutcome::NotKept(reason),
            Ok(()) if damaged => CacheOutcome::Repaired,
            Ok(()) => CacheOutcome::Compiled,
        }
    }
}

/// The checksum of a file's code and of its name, which says whose code it is.
fn checksum_of(path: &Path, compiled: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = Xxh3::new();
    sum.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    sum.update(compiled);
    sum.digest128().to_le_bytes()
}

fn deserialize(engine: &Engine, path: CallPath, file: &Path, bytes: &[u8]) -> Option<Code> {
    let (checksum, compiled) = bytes.split_at_checked(CHECKSUM_BYTES)?;
    if checksum != checksum_of(file, compiled) {
        return None;
    }
    match path {
        CallPath::Direct => {
            // SAFETY: the bytes came from `Module::serialize` of an engine with the same
            // compatibility hash (hash and path are part of the file's name, and the name of the
            // checksum) and are complete (the checksum matches).
            #[expect(unsafe_code, reason = "loading compiled code is unsafe by nature; see SAFETY")]
            unsafe { Module::deserialize(engine, compiled) }.map(Code::Program).ok()
        }
        CallPath::General => {
            // SAFETY: as above, with `Component::serialize`.
            #[expect(unsafe_code, reason = "loading compiled code is unsafe by nature; see SAFETY")]
            unsafe { Component::deserialize(engine, compiled) }.map(Code::Component).ok()
        }
    }
}

/// Writes aside and renames, so that no reader ever sees half a file.
fn write(path: &Path, compiled: &[u8]) -> std::io::Result<()> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut file = AtomicFile::create_private_in(folder)?;
    file.write_all(&checksum_of(path, compiled))?;
    file.write_all(compiled)?;
    // The checksum tells what a power cut has left.
    file.commit_unsynced(path)
}
