//! The cache of a day's masters on the disk.
//!
//! There is one file for each server, complete or absent, whose first line identifies it. A file that does not
//! fit, or is of another day, is ignored without an error.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use domain::JstDate;
use xxhash_rust::xxh3::xxh3_64;

use crate::web_broker::limits::MASTERS_BYTES_MAX;
use crate::web_broker::masters::Masters;
use crate::web_broker::transport::Transport;

/// Version of the file's form.
const FORM: u32 = 1;

fn path(transport: &Transport) -> PathBuf {
    // A port has a colon before it, and an IPv6 address has several.
    let server = transport.addresses.server().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    transport.config.cache_dir.join(format!("web_broker_masters_{server}.json"))
}

fn head(server: &str, date: JstDate, json: &[u8]) -> String {
    format!("kumiki-masters {FORM} {server} {date} {:016x}\n", xxh3_64(json))
}

/// Today's masters, if the file is there and undamaged.
pub(crate) fn load(transport: &Transport, today: JstDate) -> Option<Masters> {
    let mut bytes = Vec::new();
    let most = MASTERS_BYTES_MAX as u64 + 1;
    let path = path(transport);
    // Opening a pipe would wait for its other end.
    if !std::fs::symlink_metadata(&path).ok()?.is_file() {
        return None;
    }
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let (first, json) = bytes.split_at(end);
    if first != head(&transport.addresses.server(), today, json).as_bytes() {
        return None;
    }
    let masters: Masters = serde_json::from_slice(json).ok()?;
    (masters.date == today).then_some(masters)
}

/// Stores the masters for the rest of the day. Without the file they are requested again.
pub(crate) fn store(transport: &Transport, masters: &Masters) {
    let kept = || -> std::io::Result<()> {
        let json = serde_json::to_vec(masters)?;
        let mut bytes = head(&transport.addresses.server(), masters.date, &json).into_bytes();
        bytes.extend_from_slice(&json);
        atomic_file::write(&path(transport), &bytes)
    };
    if let Err(error) = kept() {
        tracing::warn!(%error, "the engine cannot keep the masters on the disk");
    }
}
