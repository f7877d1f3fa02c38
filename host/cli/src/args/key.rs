//! Arguments of `kumiki key`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use keys::KeyStore;

use super::Format;

pub(crate) const KEY_HELP: &str = "\
Examples:
  kumiki key set jquants-api-key
      asks for the value and does not show it
  pass jquants | kumiki key set jquants-api-key
      the value comes from another program
  kumiki key set web-broker-auth-id --file e_api_authid.txt
  kumiki key set web-broker-private-key --file e_api_private_key.pem
      the login at the web broker, from its files; the second password is never kept
  kumiki key set web-broker-user
  kumiki key set web-broker-password
      the same for dialects without keys: web-broker-spec, web-broker-v4r8
  kumiki key list --format json
  kumiki key remove jquants-api-key

The first of these places that has the key counts. A key there that cannot be used is an error:
  1. our environment variable, like KUMIKI_JQUANTS_API_KEY
  2. of the vendor's key, JQUANTS_API_KEY
  3. a systemd credential: LoadCredential=jquants-api-key:/etc/kumiki/jquants-api-key in a unit,
     that is the file jquants-api-key in $CREDENTIALS_DIRECTORY; only its owner and group may
     read it
  4. the store that KUMIKI_KEY_STORE names: system (default) is the Secret Service on Linux
     desktops, the Keychain on macOS, the Credential Manager on Windows; kernel is the kernel's
     keyring of Linux, which forgets when you log out; off is none

Stores know this program as kumiki; another name in KUMIKI_KEY_SERVICE keeps keys of two \
accounts apart. A value is one word of ASCII characters, at most 2048 bytes, and is never \
printed. A private key is RSA of 2048 to 4096 bits in PKCS#8 without a passphrase, PEM or DER, at \
most 4096 bytes.";

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Put a value into the system's key store.
    ///
    /// The command asks for it, or reads standard input.
    Set(KeySetArgs),
    /// List the keys and where each comes from; never a value.
    List(KeyListArgs),
    /// Remove a value from the system's key store.
    Remove(KeyRemoveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KeySetArgs {
    /// Name of the key (`kumiki key list`); the value is no argument.
    #[arg(value_name = "NAME")]
    pub(crate) name: OsString,

    /// File with the value; a private key needs one at a terminal.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Whatever else stands there may be a secret: it is taken, so that no message repeats it.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) more: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct KeyListArgs {
    /// Form of the list.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct KeyRemoveArgs {
    /// Name of the key (`kumiki key list`).
    #[arg(value_name = "NAME")]
    pub(crate) name: OsString,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Store: system or kernel; default: KUMIKI_KEY_STORE, else system.
    #[arg(long, value_name = "STORE", value_parser = parse_store)]
    pub(crate) store: Option<KeyStore>,
}

fn parse_store(text: &str) -> Result<KeyStore, String> {
    let store = text.parse::<KeyStore>().ok().filter(|store| *store != KeyStore::Off);
    store.ok_or_else(|| "write system or kernel".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(subcommand)]
        key: KeyCommand,
    }

    #[test]
    fn a_value_among_the_arguments_is_taken_and_not_repeated() {
        for line in ["x set name marker", "x set name --value=marker", "x set name --v marker"] {
            let Ok(Only { key: KeyCommand::Set(set) }) = Only::try_parse_from(line.split(' '))
            else {
                panic!("{line}");
            };
            assert!(!set.more.is_empty(), "{line}");
        }
        let kernel = Only::try_parse_from(["x", "set", "name", "--store", "kernel"]);
        let Ok(Only { key: KeyCommand::Set(set) }) = kernel else { panic!("{kernel:?}") };
        assert_eq!((set.store.store, set.more.len()), (Some(KeyStore::Kernel), 0));
        let file = Only::try_parse_from(["x", "set", "name", "--file", "KEY.pem"]);
        let Ok(Only { key: KeyCommand::Set(set) }) = file else { panic!("{file:?}") };
        assert_eq!((set.file, set.more.len()), (Some("KEY.pem".into()), 0));
        assert!(Only::try_parse_from(["x", "set", "name", "--store", "off"]).is_err());
    }

    #[cfg(feature = "database")]
    #[test]
    fn the_help_says_what_there_is() {
        let vendor = update::VENDOR_KEY;
        for words in [
            vendor.variable(),
            vendor.other_variable().unwrap_or_default(),
            vendor.entry(),
            keys::STORE_VARIABLE,
            keys::SERVICE_VARIABLE,
            keys::CREDENTIALS_VARIABLE,
            &format!("as {};", keys::KEY_SERVICE),
            &format!("at most {} bytes", keys::KEY_BYTES_MAX),
            &format!("most {} bytes", keys::PRIVATE_KEY_BYTES_MAX),
        ] {
            assert!(KEY_HELP.contains(words), "{words}");
        }
        let others = update::KEYS.iter().filter(|key| key.other_variable().is_some()).count();
        assert_eq!(others, 1, "the help says which key has a second variable");
    }
}
