//! `kumiki key`, and where the program looks for keys: each row of the table at `keys::Key::locate`,
//! with a vendor that only answers to the right key.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tests::built;

use crate::update_program::{Server, VENDOR_KEY, texts};

const OURS: &str = "KUMIKI_JQUANTS_API_KEY";
const THEIRS: &str = "JQUANTS_API_KEY";
const NAME: &str = "jquants-api-key";
/// A key that the vendor does not take, and that no output may hold.
const WRONG: &str = "marker-secret-2718";

/// The longest key.
const KEY_BYTES_MAX: usize = 2_048;
/// The longest file of a credential.
const CREDENTIAL_BYTES_MAX: usize = 2_112;

/// A user with a home and a folder of credentials of their own, and no store.
struct User {
    folder: tempfile::TempDir,
    server: Server,
}

impl User {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("data")).unwrap();
        let open = json!({ "data": [{ "Date": "2025-01-06", "HolDiv": "0" }] }).to_string();
        let server = Server::start(move |path| {
            let body = if path.contains("/calendar") { open.clone() } else { String::new() };
            Some((200, body))
        });
        Self { folder, server }
    }

    fn credential(&self, value: &str) {
        self.credential_with(value.as_bytes(), 0o400);
    }

    #[cfg_attr(not(unix), allow(unused_variables, reason = "other systems have no modes"))]
    fn credential_with(&self, value: &[u8], mode: u32) {
        let folder = self.folder.path().join("credentials");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(NAME), value).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(folder.join(NAME), mode).unwrap();
        }
    }

    /// The program, with these variables and none of the machine's.
    fn command(&self, line: &str, variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(built::kumiki());
        command.args(line.split_whitespace()).current_dir(self.folder.path());
        for name in [OURS, THEIRS, "KUMIKI_PUBLIC_API_KEY", "KUMIKI_WEB_BROKER_PRICE_URL"] {
            command.env_remove(name);
        }
        command.env("CREDENTIALS_DIRECTORY", self.folder.path().join("credentials"));
        command.env("KUMIKI_KEY_STORE", "off").env("KUMIKI_KEY_SERVICE", self.service());
        // No Secret Service of the machine's user is asked.
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
        command.envs(variables.iter().copied()).stdin(Stdio::null());
        command
    }

    /// Not the name of somebody's real keys.
    fn service(&self) -> String {
        let folder = self.folder.path().file_name().unwrap().to_string_lossy();
        format!("kumiki-test-{}", folder.trim_start_matches('.'))
    }

    /// Runs it; whatever it prints and leaves is free of secrets.
    fn said(&self, line: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
        checked(&self.command(line, variables).output().unwrap(), self.folder.path())
    }

    /// Runs it with a value on standard input.
    fn told(&self, line: &str, value: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
        let mut command = self.command(line, variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may end before it has read all.
        let _ = child.stdin.take().unwrap().write_all(value.as_bytes());
        checked(&child.wait_with_output().unwrap(), self.folder.path())
    }

    /// Asks the vendor for its calendar: 0 with the right key.
    fn asks(&self, variables: &[(&str, &str)]) -> (i32, String) {
        let line = format!(
            "data calendar data --from 2025-01-01 --to 2025-01-31 --log trace --vendor-rate 60000 \
             --vendor-url http://{}/v2",
            self.server.address
        );
        let (code, _, errors) = self.said(&line, variables);
        (code, errors)
    }

    /// What the list says of the vendor's key: state, where from, and why not.
    fn listed(&self, variables: &[(&str, &str)]) -> (String, String, String) {
        let (_, list, errors) = self.said("key list --format json", variables);
        let list: Value = serde_json::from_str(&list).unwrap_or_else(|_| panic!("{list}{errors}"));
        let key = list["keys"].as_array().unwrap().iter().find(|key| key["name"] == NAME);
        let text = |name: &str| key.unwrap()[name].as_str().unwrap_or("-").to_owned();
        (text("state"), text("from"), text("why"))
    }
}

fn checked(output: &Output, folder: &Path) -> (i32, String, String) {
    let (text, errors) = texts(output);
    for secret in [VENDOR_KEY, WRONG] {
        assert!(!text.contains(secret) && !errors.contains(secret), "{text}{errors}");
        no_secret_below(&folder.join("data"), secret);
    }
    (output.status.code().unwrap_or(-1), text, errors)
}

fn no_secret_below(folder: &Path, secret: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            no_secret_below(&path, secret);
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(secret), "{} holds a key", path.display());
        }
    }
}

#[test]
fn k1_our_variable_goes_first() {
    let user = User::new();
    user.credential(WRONG);
    let variables = [(OURS, VENDOR_KEY), (THEIRS, WRONG)];
    assert_eq!(user.asks(&variables).0, 0);
    assert_eq!(user.listed(&variables).1, "environment");
    let (code, errors) = user.asks(&[(OURS, WRONG)]);
    assert!(code == 1 && errors.contains("401"), "the vendor takes one key only: {errors}");
    // What is there and wrong is no reason to take another one.
    user.credential(VENDOR_KEY);
    let (code, errors) = user.asks(&[(OURS, "two words")]);
    assert!(code == 1 && errors.contains("KUMIKI_JQUANTS_API_KEY: not one word"), "{errors}");
    let long = "x".repeat(KEY_BYTES_MAX + 1);
    let (state, from, why) = user.listed(&[(OURS, &long)]);
    assert_eq!((state.as_str(), from.as_str()), ("unusable", "-"));
    assert!(why.contains("longer than 2048 bytes") && !why.contains("xx"), "{why}");
    assert_eq!(user.said("key list", &[(OURS, &long)]).0, 1);
}

#[test]
fn k2_the_vendor_s_own_variable_counts_where_ours_is_not_set() {
    let user = User::new();
    user.credential(WRONG);
    assert_eq!(user.asks(&[(THEIRS, VENDOR_KEY)]).0, 0);
    let blank = [(OURS, "  "), (THEIRS, VENDOR_KEY)];
    assert_eq!(user.asks(&blank).0, 0, "blank is not set");
    assert_eq!(user.listed(&blank).1, "environment");
    let (code, list, _) = user.said("key list", &[(THEIRS, VENDOR_KEY)]);
    assert!(code == 0 && list.contains("yes  environment JQUANTS_API_KEY"), "{list}");
    let (_, _, why) = user.listed(&[(THEIRS, "two words")]);
    assert!(why.starts_with("JQUANTS_API_KEY: not one word"), "{why}");
}

#[test]
fn k3_a_credential_counts_without_variables() {
    let user = User::new();
    user.credential(&format!("{VENDOR_KEY}\n"));
    assert_eq!(user.asks(&[]).0, 0);
    let (state, from, _) = user.listed(&[]);
    assert_eq!((state.as_str(), from.as_str()), ("set", "credential"));
    // Without a folder of credentials there is none.
    let (code, errors) = user.asks(&[("CREDENTIALS_DIRECTORY", "")]);
    assert!(code == 1 && errors.contains("no systemd credential jquants-api-key"), "{errors}");
}

#[test]
fn k3_a_credential_that_cannot_be_used_is_an_error() {
    let user = User::new();
    let why = |bytes: &[u8], mode| {
        user.credential_with(bytes, mode);
        let (state, _, why) = user.listed(&[]);
        assert_eq!(state, "unusable", "{why}");
        assert!(why.starts_with("$CREDENTIALS_DIRECTORY/jquants-api-key: "), "{why}");
        why
    };
    let most = CREDENTIAL_BYTES_MAX;
    let long = why(&vec![b' '; most + 1], 0o400);
    assert!(long.contains("longer than 2112 bytes"), "{long}");
    let padded = [VENDOR_KEY.as_bytes(), &vec![b' '; most - VENDOR_KEY.len()]].concat();
    user.credential_with(&padded, 0o400);
    assert_eq!(user.listed(&[]).0, "set", "the longest that is taken");
    assert!(why(b"\xff\xfe", 0o400).contains("not text"));
    assert!(why(b"", 0o400).contains("not one word"));
    let (code, _, errors) = user.said("key list", &[]);
    assert!(code == 1 && errors.contains("error: $CREDENTIALS_DIRECTORY/jquants"), "{errors}");
    if cfg!(unix) {
        for mode in [0o444, 0o404, 0o422, 0o460] {
            let text = why(VENDOR_KEY.as_bytes(), mode);
            assert!(text.contains(&format!("mode {mode:03o}); `chmod 0400` it")), "{text}");
        }
        user.credential_with(VENDOR_KEY.as_bytes(), 0o440);
        assert_eq!(user.listed(&[]).0, "set", "as systemd's access lists look");
    }
    let path = user.folder.path().join("credentials").join(NAME);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(user.listed(&[]).2.contains("not a file"));
}

#[test]
fn k4_the_kernel_s_keyring_counts_last_and_only_when_asked_for() {
    let user = User::new();
    let set = "key set jquants-api-key --store kernel";
    let (code, text, errors) = user.told(set, VENDOR_KEY, &[]);
    if code != 0 {
        let refused = ["PermissionDenied", "OperationNotSupported", "Unknown(38)", "only Linux"];
        assert!(refused.iter().any(|word| errors.contains(word)), "{text}{errors}");
        println!("skipped: the kernel's keyring cannot be used here");
        return;
    }
    assert!(text.contains("is kept in the kernel's keyring"), "{text}");
    assert!(errors.contains("KUMIKI_KEY_STORE=kernel only"), "{errors}");
    let kernel = ("KUMIKI_KEY_STORE", "kernel");
    assert_eq!(user.asks(&[kernel]).0, 0);
    let (state, from, _) = user.listed(&[kernel]);
    assert_eq!((state.as_str(), from.as_str()), ("set", "store"));
    // Not by itself, not for another service, and after everything else.
    for others in
        [&[("KUMIKI_KEY_STORE", "system")][..], &[], &[kernel, ("KUMIKI_KEY_SERVICE", "no")]]
    {
        assert_eq!(user.listed(others).0, "missing", "{others:?}");
    }
    assert_eq!(user.listed(&[kernel, (THEIRS, WRONG)]).1, "environment");
    user.credential(WRONG);
    assert_eq!(user.listed(&[kernel]).1, "credential");
    let (code, _, errors) = user.told(set, VENDOR_KEY, &[(OURS, WRONG)]);
    assert!(code == 0 && errors.contains("goes before any store"), "{errors}");
    let (code, text, _) = user.said("key remove jquants-api-key", &[kernel]);
    assert!(code == 0 && text.contains("was removed from the kernel's keyring"), "{text}");
    let (code, _, errors) = user.said("key remove jquants-api-key", &[kernel]);
    assert!(code == 1 && errors.contains("has no jquants-api-key"), "{errors}");
}

#[test]
fn k4_a_store_that_is_not_there_says_what_to_do() {
    let user = User::new();
    let system = [("KUMIKI_KEY_STORE", "")];
    if cfg!(target_os = "linux") {
        let (code, errors) = user.asks(&system);
        assert!(code == 1 && errors.contains("the Secret Service cannot be asked ("), "{errors}");
        let (code, _, errors) = user.told("key set jquants-api-key", VENDOR_KEY, &system);
        assert_eq!(code, 1);
        for words in [
            "the Secret Service cannot be used",
            "KUMIKI_JQUANTS_API_KEY in the environment",
            "LoadCredential=jquants-api-key:FILE",
            "--store kernel",
        ] {
            assert!(errors.contains(words), "{errors}");
        }
        let (code, list, errors) = user.said("key list", &system);
        assert!(code == 0 && list.contains("no   -"), "missing keys are no error: {list}");
        assert_eq!(errors.matches("the Secret Service cannot be asked").count(), 1, "{errors}");
    }
    let (code, errors) = user.asks(&[]);
    assert!(code == 1 && errors.contains("KUMIKI_KEY_STORE=off"), "{errors}");
    let (code, _, errors) = user.told("key set jquants-api-key", VENDOR_KEY, &[]);
    assert!(code == 1 && errors.contains("name one with --store"), "{errors}");
    for (name, value) in [("KUMIKI_KEY_STORE", "cellar"), ("KUMIKI_KEY_SERVICE", "two words")] {
        let (code, errors) = user.asks(&[("KUMIKI_KEY_STORE", ""), (name, value)]);
        assert!(code == 1 && errors.contains(&format!("{name}: ")), "{errors}");
    }
}

#[test]
fn values_are_no_arguments_and_have_limits() {
    let user = User::new();
    for line in [
        format!("key set {NAME} {WRONG} --store kernel"),
        format!("key set {NAME} --value={WRONG}"),
        format!("key set {WRONG}"),
        format!("key remove {WRONG}"),
    ] {
        let (code, _, errors) = user.said(&line, &[]);
        assert_eq!(code, 2, "{errors}");
    }
    let (code, _, errors) = user.said(&format!("key set {}", "n".repeat(65)), &[]);
    assert!(code == 2 && errors.contains("longer than 64 bytes"), "{errors}");
    let long = "x".repeat(KEY_BYTES_MAX + 1);
    let endless = "x".repeat(1 << 20);
    for (value, wanted) in [
        ("", "the value: not one word"),
        ("two words", "the value: not one word"),
        (&long, "the value: longer than 2048 bytes"),
        (&endless, "the value: longer than 2048 bytes"),
    ] {
        let (code, text, errors) = user.told("key set jquants-api-key --store kernel", value, &[]);
        assert!(code == 1 && errors.contains(wanted), "{text}{errors}");
        assert!(!errors.contains("xx") && !errors.contains("two words"), "{errors}");
    }
}

/// The whole way through a real Secret Service: one that this test starts, on a bus of its own.
#[test]
fn k4_the_secret_service_keeps_keys() {
    let daemon = std::env::var("KUMIKI_GNOME_KEYRING").unwrap_or("gnome-keyring-daemon".to_owned());
    for program in ["dbus-run-session", daemon.as_str()] {
        let found = Command::new(program).arg("--version").output();
        if !found.is_ok_and(|output| output.status.success()) {
            println!("skipped: there is no {program}, so no Secret Service can be started");
            return;
        }
    }
    let user = User::new();
    let script = format!(
        "printf password | {daemon} --unlock --components=secrets >/dev/null 2>&1 || exit 70
         until echo '== set' && printf %s \"$VALUE\" | \"$KUMIKI\" key set {NAME}; do
             n=$((n + 1)); [ $n -lt 100 ] || exit 71; sleep 0.1
         done
         echo '== list' && \"$KUMIKI\" key list --format json
         echo '== ask' && \"$KUMIKI\" data calendar data --from 2025-01-01 --to 2025-01-31 --vendor-rate 60000 --vendor-url \"$VENDOR\"
         echo '== remove' && \"$KUMIKI\" key remove {NAME}
         echo '== again' && \"$KUMIKI\" key list --format json"
    );
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "sh", "-c", &script]).current_dir(user.folder.path());
    for name in [OURS, THEIRS, "KUMIKI_KEY_STORE", "CREDENTIALS_DIRECTORY", "DISPLAY"] {
        command.env_remove(name);
    }
    let home = user.folder.path().join("home");
    fs::create_dir_all(&home).unwrap();
    command.env("HOME", &home).env("XDG_DATA_HOME", &home).env("XDG_RUNTIME_DIR", &home);
    command.env("KUMIKI", built::kumiki()).env("VALUE", VENDOR_KEY);
    command.env("VENDOR", format!("http://{}/v2", user.server.address));
    command.env("KUMIKI_KEY_SERVICE", user.service());
    let (code, text, errors) = checked(&command.output().unwrap(), user.folder.path());
    assert_eq!(code, 0, "{text}{errors}");
    // The last of each: the first may have come before the service was on the bus.
    let part =
        |name: &str| text.rsplit("== ").find(|part| part.starts_with(name)).unwrap().to_owned();
    assert!(part("set").contains("is kept in the Secret Service"), "{text}{errors}");
    assert!(part("list").contains(r#""from": "store""#), "{text}{errors}");
    assert!(part("ask").contains("business days"), "{text}{errors}");
    assert!(part("remove").contains("was removed from the Secret Service"), "{text}{errors}");
    assert!(!part("again").contains(r#""state": "set""#), "{text}{errors}");
}

/// Types at the prompt of `kumiki key set`, in a terminal of its own; gives what that showed, and at the
/// end the program's code and the terminal's settings. None where no terminal can be made.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, reason = "a test says when it is skipped")]
fn typed_at_the_prompt(user: &User, keys: &str) -> Option<String> {
    if !Command::new("script").arg("--version").output().is_ok_and(|found| found.status.success()) {
        println!("skipped: there is no `script` to make a terminal with");
        return None;
    }
    // The shell outlives Ctrl-C.
    let program = built::kumiki();
    let line = format!(
        "tty; trap : INT; '{}' key set {NAME}; echo \"ended with $?\"; stty -a",
        program.display()
    );
    let mut command = Command::new("script");
    command.args(["--quiet", "--command", &line, "/dev/null"]);
    // Without a bus nothing is kept; what is typed is read before that shows.
    for (name, value) in user.command("", &[("KUMIKI_KEY_STORE", "system")]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut terminal = String::new();
    shown.read_line(&mut terminal).unwrap();
    // Only once the terminal shows nothing any more: what is typed before that is thrown away.
    let shows = || {
        let state = Command::new("stty").args(["-a", "-F", terminal.trim()]).output().unwrap();
        !String::from_utf8_lossy(&state.stdout).contains("-echo ")
    };
    while shows() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut typed = child.stdin.take().unwrap();
    typed.write_all(keys.as_bytes()).unwrap();
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    assert!(rest.contains("jquants-api-key (is not shown): "), "{rest}");
    Some(rest)
}

#[cfg(target_os = "linux")]
#[test]
fn a_value_that_is_typed_is_not_shown() {
    let Some(rest) = typed_at_the_prompt(&User::new(), &format!("{WRONG}\n")) else { return };
    assert!(rest.contains("the Secret Service cannot be used"), "it was read: {rest}");
    assert!(!rest.contains(WRONG), "{rest}");
    assert!(rest.contains("ended with 1") && !rest.contains("-echo "), "{rest}");
}

/// Else whoever changes their mind sits at a terminal that shows nothing.
#[cfg(target_os = "linux")]
#[test]
fn after_ctrl_c_at_the_prompt_the_terminal_shows_what_is_typed() {
    let Some(rest) = typed_at_the_prompt(&User::new(), "\u{3}") else { return };
    assert!(rest.contains("ended with 130"), "{rest}");
    assert!(rest.contains(" echo ") && !rest.contains("-echo "), "{rest}");
}

#[test]
fn the_example_of_a_unit_names_keys_that_there_are() {
    let unit = tests::workspace_root().join("examples/systemd/kumiki-update.service");
    let unit = fs::read_to_string(unit).unwrap();
    let user = User::new();
    let (_, list, _) = user.said("key list --format json", &[]);
    let loaded = unit.lines().filter_map(|line| {
        line.trim_start_matches('#').strip_prefix("LoadCredential=")?.split_once(':')
    });
    let loaded: Vec<_> = loaded.collect();
    assert!(loaded.iter().any(|(name, _)| *name == NAME), "{unit}");
    for (name, file) in loaded {
        assert!(list.contains(&format!("\"name\": \"{name}\"")), "{name} is no key: {list}");
        assert_eq!(file, format!("/etc/kumiki/{name}"));
    }
}
