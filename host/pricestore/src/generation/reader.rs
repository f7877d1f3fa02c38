//! The published generation for those who ask often: its file is read when it changed.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Generation, modified_us};
use crate::data_dir::DataDir;

/// A generation as it was read.
#[derive(Debug, Clone)]
pub struct CurrentGeneration {
    /// What its file says.
    pub generation: Arc<Generation>,
    /// Size of the file that it was read from, in bytes.
    pub bytes: u64,
    /// When that file was changed last, in microseconds since 1970.
    pub modified_us: u64,
}

/// Reads the generation of a data directory anew when its file is another one.
#[derive(Debug)]
pub struct GenerationReader {
    data: DataDir,
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    stamp: Option<(u64, u64)>,
    generation: Option<CurrentGeneration>,
}

impl GenerationReader {
    /// A reader of a data directory, which may be empty.
    #[must_use]
    pub fn new(data: DataDir) -> Self {
        Self { path: data.generation_file(), data, known: Mutex::default() }
    }

    /// The published one; none where there is none, or none that can be read.
    #[must_use]
    pub fn current(&self) -> Option<CurrentGeneration> {
        let found = fs::metadata(&self.path).ok()?;
        let stamp = (found.len(), modified_us(&found));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.stamp != Some(stamp) {
            let loaded = Generation::load(&self.data).ok().flatten();
            // Read only if it is what was looked at; else the next look tells.
            let same =
                fs::metadata(&self.path).is_ok_and(|now| stamp == (now.len(), modified_us(&now)));
            known.stamp = same.then_some(stamp);
            known.generation = loaded.filter(|_| same).map(|generation| CurrentGeneration {
                generation: Arc::new(generation),
                bytes: stamp.0,
                modified_us: stamp.1,
            });
        }
        known.generation.clone()
    }
}
