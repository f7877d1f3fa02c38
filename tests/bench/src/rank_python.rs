//! P and numpy: the same rankings in Python, run by one process that lives as long as the bench, so
//! that all engines take turns. Left out, and said so, where Python or a package is missing.

use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::baselines::Matrices;
use crate::rank_bench::or_stop;
use crate::rank_kernel::Case;

/// Names another Python than `python3`.
const PYTHON_VARIABLE: &str = "KUMIKI_BENCH_PYTHON";
/// Files of the columns, in the order of [`Matrices::columns`].
const NAMES: [&str; 5] = ["open", "high", "low", "close", "volume"];

/// A Python process with the columns in memory.
pub(crate) struct Python {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Versions of Python's packages.
    pub(crate) versions: Value,
}

impl Python {
    /// Starts it; `None` where it cannot, which is told.
    pub(crate) fn start(folder: &Path, matrices: &Matrices) -> Option<Self> {
        let python = std::env::var(PYTHON_VARIABLE).unwrap_or_else(|_| "python3".to_owned());
        let probe = Command::new(&python).args(["-c", "import numpy, polars"]).output();
        if !probe.is_ok_and(|probe| probe.status.success()) {
            eprintln!(
                "baselines in Python left out: `{python}` has no numpy and polars; \
                 {PYTHON_VARIABLE} names another Python"
            );
            return None;
        }
        or_stop(write_columns(folder, matrices));
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("baselines/rank.py");
        let mut child = or_stop(
            Command::new(python)
                .arg(script)
                .arg(folder)
                .args([matrices.days.to_string(), matrices.codes.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn(),
        );
        let requests = child.stdin.take().unwrap_or_else(|| unreachable!("it is piped"));
        let answers = child.stdout.take().unwrap_or_else(|| unreachable!("it is piped"));
        let mut python =
            Self { child, requests, answers: BufReader::new(answers), versions: json!(null) };
        python.versions = python.answer();
        Some(python)
    }

    /// The milliseconds of one ranking; its rows must be those of the bare kernel.
    pub(crate) fn millis(
        &mut self,
        engine: &str,
        case: &Case,
        days: &std::ops::Range<usize>,
        limit: usize,
        rows: &[(u32, f64)],
    ) -> f64 {
        let request = json!({
            "engine": engine, "case": case.name, "first": days.start, "end": days.end, "limit": limit,
        });
        or_stop(writeln!(self.requests, "{request}"));
        let answer = self.answer();
        assert_eq!(answer["sha256"], digest(rows), "{}: {engine} found other rows", case.name);
        answer["ms"].as_f64().unwrap_or(f64::NAN)
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        or_stop(self.answers.read_line(&mut line));
        or_stop(serde_json::from_str(&line))
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It holds nothing worth a clean end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_columns(folder: &Path, matrices: &Matrices) -> std::io::Result<()> {
    for (name, column) in NAMES.iter().zip(&matrices.columns) {
        let path = folder.join(format!("{name}.f64"));
        if path.metadata().is_ok_and(|found| found.len() == 8 * column.len() as u64) {
            continue;
        }
        let mut out = BufWriter::new(fs::File::create(path)?);
        for value in column {
            out.write_all(&value.to_le_bytes())?;
        }
        out.flush()?;
    }
    Ok(())
}

fn digest(rows: &[(u32, f64)]) -> String {
    let mut hash = Sha256::new();
    for (code, value) in rows {
        hash.update(code.to_le_bytes());
        hash.update(value.to_le_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
