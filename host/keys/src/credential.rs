//! Credentials that systemd hands to a service (`LoadCredential=`): files in a folder that only the
//! service can read.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::{env, fs};

use secrecy::SecretSlice;
use zeroize::Zeroizing;

use crate::{KEY_BYTES_MAX, Key, KeyError, value};

/// Names the folder; systemd sets it.
pub const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";
/// Bytes of a credential's file: the longest key, with blanks around it.
pub const CREDENTIAL_BYTES_MAX: usize = KEY_BYTES_MAX + 64;

/// The credential of this name; none without a folder, or without such a file in it.
pub(crate) fn find(key: Key) -> Result<Option<SecretSlice<u8>>, KeyError> {
    match env::var_os(CREDENTIALS_VARIABLE).filter(|folder| !folder.is_empty()) {
        Some(folder) => read(Path::new(&folder), key),
        None => Ok(None),
    }
}

fn read(folder: &Path, key: Key) -> Result<Option<SecretSlice<u8>>, KeyError> {
    let (name, most) = (key.entry(), key.file_bytes_max());
    // By the variable: where the folder is on this machine tells a reader less.
    let place = format!("${CREDENTIALS_VARIABLE}/{name}");
    let unusable = |what: String| KeyError::unusable(&place, what);
    let unread = |error: std::io::Error| unusable(format!("cannot be read ({})", error.kind()));
    let path = folder.join(name);
    // Looked at before it is opened: opening a pipe would wait for somebody who writes.
    match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => check(&found.map_err(unread)?, most).map_err(unusable)?,
    }
    let file = File::open(&path).map_err(unread)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 1));
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() > most {
        return Err(unusable(too_long(most)));
    }
    value::of(key, &place, &bytes).map(Some)
}

fn too_long(most: usize) -> String {
    format!("longer than {most} bytes")
}

fn check(found: &Metadata, most: usize) -> Result<(), String> {
    if !found.is_file() {
        return Err("not a file".to_owned());
    }
    if found.len() > most as u64 {
        return Err(too_long(most));
    }
    check_mode(found)
}

/// A group may read: systemd grants access by a list whose mask stands in the group's place.
#[cfg(unix)]
fn check_mode(found: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o027 == 0 {
        return Ok(());
    }
    Err(format!("users other than its owner can read it (mode {mode:03o}); run `chmod 0400` on it"))
}

#[cfg(not(unix))]
fn check_mode(_: &Metadata) -> Result<(), String> {
    Ok(())
}
