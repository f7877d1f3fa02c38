//! `kumiki key`: puts keys into the system's store, and tells where each comes from.

use std::ffi::OsStr;
use std::io::{IsTerminal, Read, stderr, stdin};

use anyhow::{Context, Result, anyhow, bail};
use engine::credentials::WEB_BROKER_KEYS;
use keys::{Found, Key, KeyError, KeyStore, NAME_BYTES_MAX, Origin};
use secrecy::{ExposeSecret, SecretSlice};
use serde_json::{Value, json};

use crate::args::{Format, KeyCommand, KeyListArgs, KeyRemoveArgs, KeySetArgs, StoreArgs, refuse};
use crate::table::{Align, Column, Table};
use crate::terminal::terminal_width;
use crate::{Ending, database, hidden};

/// Runs a command.
pub(crate) fn run(command: &KeyCommand) -> Result<Ending> {
    match command {
        KeyCommand::Set(args) => set(args),
        KeyCommand::List(args) => list(args),
        KeyCommand::Remove(args) => remove(args),
    }
}

fn set(args: &KeySetArgs) -> Result<Ending> {
    let key = named(&args.name);
    if !args.more.is_empty() {
        refuse(
            "a key's value is no argument, because everybody on this machine can read arguments; \
             type it at the prompt, or give it on standard input",
        );
    }
    let store = store(&args.store)?;
    let value = match &args.file {
        Some(path) => {
            let file = keys::open_file(path);
            read_all(key, file.map_err(|why| anyhow!("{} {why}", path.display()))?)?
        }
        None => read_value(key)?,
    };
    key.put(store, value.expose_secret())?;
    println!("{} is kept in {}", key.entry(), store.title());
    if store == KeyStore::Kernel {
        eprintln!(
            "note: until you log out or the machine restarts; kumiki looks there with {}={} only",
            keys::STORE_VARIABLE,
            store.word()
        );
    }
    tell_what_goes_before(key);
    Ok(Ending::Done)
}

fn remove(args: &KeyRemoveArgs) -> Result<Ending> {
    let key = named(&args.name);
    let store = store(&args.store)?;
    if !key.remove(store)? {
        bail!("{} has no {}", store.title(), key.entry());
    }
    println!("{} was removed from {}", key.entry(), store.title());
    tell_what_goes_before(key);
    Ok(Ending::Done)
}

/// Every key that this program looks for.
fn all() -> impl Iterator<Item = Key> {
    database::keys().chain(WEB_BROKER_KEYS)
}

/// The key of this name. A wrong one ends the program; it may be a secret, so it is not repeated.
fn named(name: &OsStr) -> Key {
    let names = all().map(Key::entry).collect::<Vec<_>>().join(", ");
    if name.len() > NAME_BYTES_MAX {
        refuse(&format!("NAME is longer than {NAME_BYTES_MAX} bytes; write one of {names}"));
    }
    let found = all().find(|key| name == key.entry());
    found.unwrap_or_else(|| refuse(&format!("there is no key of this name; write one of {names}")))
}

fn store(args: &StoreArgs) -> Result<KeyStore> {
    let store = match args.store {
        Some(store) => store,
        None => KeyStore::from_environment()?,
    };
    if store == KeyStore::Off {
        bail!("{}=off leaves no store to use; name one with --store", keys::STORE_VARIABLE);
    }
    Ok(store)
}

/// Asks for the value where somebody sits at a terminal, without showing it; else reads all of
/// standard input.
fn read_value(key: Key) -> Result<SecretSlice<u8>> {
    if !stdin().is_terminal() {
        return read_all(key, stdin().lock());
    }
    if key.is_private_key() {
        bail!("{} is a file: give its path with --file KEY.pem", key.entry());
    }
    if !stderr().is_terminal() {
        bail!(
            "the command cannot ask for the value, because standard error is no terminal; give it on standard input, or with --file"
        );
    }
    let question = format!("{} (is not shown): ", key.entry());
    let line = hidden::read_line(&question, key.file_bytes_max())?;
    Ok(SecretSlice::from(line.expose_secret().as_bytes().to_vec()))
}

/// All of a value that is not typed; what is too long is cut behind its limit, and refused later.
fn read_all(key: Key, from: impl Read) -> Result<SecretSlice<u8>> {
    let most = key.file_bytes_max() + 1;
    // It does not grow, so that nothing of it stays elsewhere in memory.
    let mut bytes = Vec::with_capacity(most);
    from.take(most as u64).read_to_end(&mut bytes).context("cannot read the value")?;
    Ok(SecretSlice::from(bytes))
}

/// What a store has counts only where no place before it has something.
fn tell_what_goes_before(key: Key) {
    match key.before_stores() {
        Ok(Some(found)) => {
            eprintln!("note: it is in the {} too, which goes before any store", found.origin);
        }
        Ok(None) => {}
        Err(error) => eprintln!("note: {error}; this goes before any store"),
    }
}

fn list(args: &KeyListArgs) -> Result<Ending> {
    let store = KeyStore::from_environment()?;
    let found: Vec<_> = all().map(|key| (key, key.locate())).collect();
    match args.format {
        Format::Table => table(&found),
        Format::Json => {
            let keys: Vec<Value> = found.iter().map(|(key, found)| value(*key, found)).collect();
            println!("{:#}", json!({ "store": store.word(), "keys": keys }));
        }
    }
    let unusable = found.iter().any(|(_, found)| problem(found).is_some());
    Ok(if unusable { Ending::Problems } else { Ending::Done })
}

fn table(found: &[(Key, Result<Found, KeyError>)]) {
    let names = ["name", "set", "from", "variable"];
    let mut table = Table::new(names.map(|name| Column::new(name, Align::Left)).to_vec());
    for (key, found) in found {
        let (set, from) = match found {
            Ok(found) => ("yes", found.origin.to_string()),
            Err(KeyError::Missing { .. }) => ("no", "-".to_owned()),
            Err(_) => ("wrong", "-".to_owned()),
        };
        let cells = [key.entry(), set, &from, key.variable()];
        table.row(cells.map(str::to_owned).to_vec());
    }
    let mut text = Vec::new();
    // A list in memory takes everything.
    let _ = table.write(terminal_width(), &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    for (_, found) in found {
        match found {
            Err(KeyError::Missing { store, why, .. }) if !why.is_empty() => {
                eprintln!("note: {} cannot be asked: {why}", store.title());
                break;
            }
            _ => {}
        }
    }
    for problem in found.iter().filter_map(|(_, found)| problem(found)) {
        eprintln!("error: {problem}");
    }
}

/// What is wrong with a key that is set.
fn problem(found: &Result<Found, KeyError>) -> Option<String> {
    match found {
        Ok(_) | Err(KeyError::Missing { .. }) => None,
        Err(error) => Some(error.to_string()),
    }
}

fn value(key: Key, found: &Result<Found, KeyError>) -> Value {
    let (from, variable) = match found.as_ref().map(|found| found.origin) {
        Ok(Origin::Environment(variable)) => (Some("environment"), Some(variable)),
        Ok(Origin::Credential) => (Some("credential"), None),
        Ok(Origin::Store(_)) => (Some("store"), None),
        Err(_) => (None, None),
    };
    let state = match found {
        Ok(_) => "set",
        Err(KeyError::Missing { .. }) => "missing",
        Err(_) => "unusable",
    };
    json!({
        "name": key.entry(),
        "state": state,
        "from": from,
        "variable": variable,
        "why": found.as_ref().err().map(ToString::to_string),
    })
}
