//! `kumiki key`, and where the program looks for keys: each row of the table at `keys::Key::locate`,
//! with a vendor that only answers to the right key.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tests::built;

use crate::update_fixture::{Server, VENDOR_KEY, no_key_below, texts};

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
        for name in [OURS, THEIRS, "KUMIKI_PUBLIC_API_KEY", "KUMIKI_WEB_BROKER_USER"] {
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
        no_key_below(&folder.join("data"), secret);
    }
    (output.status.code().unwrap_or(-1), text, errors)
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
    assert!(why(b"", 0o400).contains(": empty"));
    let (code, _, errors) = user.said("key list", &[]);
    assert!(code == 1 && errors.contains("error: $CREDENTIALS_DIRECTORY/jquants"), "{errors}");
    if cfg!(unix) {
        for mode in [0o444, 0o404, 0o422, 0o460] {
            let text = why(VENDOR_KEY.as_bytes(), mode);
            assert!(text.contains(&format!("mode {mode:03o}); run `chmod 0400` on it")), "{text}");
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
        assert!(code == 1 && errors.contains("the Secret Service gave no key ("), "{errors}");
        let (code, _, errors) = user.told("key set jquants-api-key", VENDOR_KEY, &system);
        assert_eq!(code, 1);
        for words in [
            "cannot use the Secret Service",
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
        ("", "the value: empty"),
        (" \n", "the value: empty"),
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

/// What is done at the prompt of `kumiki key set`.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
enum Done<'a> {
    /// These keys are typed.
    Typed(&'a str),
    /// It gets this signal.
    Sent(&'a str),
    /// Ctrl-Z is typed, and after `fg` at the next prompt these keys.
    StoppedAndTyped(&'a str),
}

/// What a terminal shows up to this text.
#[cfg(target_os = "linux")]
pub(crate) fn shown_until(shown: &mut impl Read, text: &str) -> String {
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(text.as_bytes()) && shown.read(&mut byte).unwrap() > 0 {
        all.push(byte[0]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Does something at the prompt of `kumiki key set`, in a terminal of its own; gives what that showed, and
/// at the end the program's code and the terminal's settings. None where no terminal can be made.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, reason = "a test says when it is skipped")]
fn at_the_prompt(user: &User, done: Done<'_>) -> Option<String> {
    /// The prompt, which comes once the terminal shows nothing any more.
    const PROMPT: &str = "jquants-api-key (is not shown): ";
    if !Command::new("script").arg("--version").output().is_ok_and(|found| found.status.success()) {
        println!("skipped: there is no `script` to make a terminal with");
        return None;
    }
    // The shell outlives the keys. Where it has jobs, one that was stopped goes on after a look at the
    // terminal; else it says by which number its program can be called.
    let program = built::kumiki();
    let run = match done {
        Done::StoppedAndTyped(_) => {
            format!("set -m; '{}' key set {NAME}; stty -a; fg", program.display())
        }
        _ => format!("sh -c 'echo $$; exec \"{}\" key set {NAME}'", program.display()),
    };
    let line = format!("trap : INT QUIT; {run}; echo \"ended with $?\"; stty -a");
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
    let mut shown = child.stdout.take().unwrap();
    let mut typed = child.stdin.take().unwrap();
    let mut all = shown_until(&mut shown, PROMPT);
    match done {
        Done::Typed(keys) => typed.write_all(keys.as_bytes()).unwrap(),
        Done::Sent(signal) => {
            let process = all.lines().next().unwrap().trim();
            let sent = Command::new("kill").args([format!("-{signal}").as_str(), process]).status();
            assert!(sent.unwrap().success(), "{all}");
        }
        Done::StoppedAndTyped(keys) => {
            typed.write_all(b"\x1a").unwrap();
            all += &shown_until(&mut shown, PROMPT);
            typed.write_all(keys.as_bytes()).unwrap();
        }
    }
    all += &shown_until(&mut shown, "no end");
    child.wait().unwrap();
    Some(all)
}

/// Whether the terminal shows what is typed, by each of its settings that were printed.
#[cfg(target_os = "linux")]
fn shows_what_is_typed(settings: &str) -> Vec<bool> {
    let words = settings.split_whitespace();
    words.filter(|word| matches!(*word, "echo" | "-echo")).map(|word| word == "echo").collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_value_that_is_typed_is_not_shown() {
    // What is taken back is no part of it.
    let keys = format!("wrong\x15{WRONG}x\x7f\n");
    let Some(rest) = at_the_prompt(&User::new(), Done::Typed(&keys)) else { return };
    assert!(rest.contains("cannot use the Secret Service"), "it was read: {rest}");
    assert!(!rest.contains(WRONG) && !rest.contains("wrong"), "{rest}");
    assert!(rest.contains("ended with 1\r\n"), "{rest}");
    assert_eq!(shows_what_is_typed(&rest), [true], "{rest}");
}

/// Else whoever changes their mind sits at a terminal that shows nothing.
#[cfg(target_os = "linux")]
#[test]
fn whatever_ends_the_prompt_the_terminal_shows_what_is_typed() {
    let user = User::new();
    for done in [
        Done::Typed("\x03"),
        Done::Typed("\x1c"),
        Done::Sent("TERM"),
        Done::Sent("HUP"),
        Done::Sent("INT"),
    ] {
        let Some(rest) = at_the_prompt(&user, done) else { return };
        assert!(rest.contains("ended with 130"), "{rest}");
        assert_eq!(shows_what_is_typed(&rest), [true], "{rest}");
    }
    let stopped = Done::StoppedAndTyped(&format!("{WRONG}\n"));
    let Some(rest) = at_the_prompt(&user, stopped) else { return };
    assert!(rest.contains("cannot use the Secret Service"), "it was read: {rest}");
    assert!(!rest.contains(WRONG) && rest.contains("ended with 1\r\n"), "{rest}");
    assert_eq!(shows_what_is_typed(&rest), [true, true], "while it was stopped, too: {rest}");
}

/// Secrets that somebody gives in the wrong place.
#[test]
fn secrets_in_wrong_places_are_not_repeated() {
    let user = User::new();
    for line in [
        format!("rank serve --follow http://user:{WRONG}@127.0.0.1:1"),
        format!("rank serve --follow {WRONG}"),
        format!("rank serve --token {WRONG}"),
        format!("rank serve --token={WRONG}"),
        format!("rank serve {WRONG}"),
        format!("rank {WRONG}"),
        format!("key {WRONG}"),
        format!("key list {WRONG}"),
        format!("key remove {NAME} {WRONG}"),
        format!("key set {NAME} --store {WRONG}"),
        format!("data update {WRONG}"),
        format!("data update --api-key={WRONG}"),
        format!("data update --vendor-url http://user:{WRONG}@127.0.0.1:1 --prices data"),
        format!("data update --public-url {WRONG} --prices data"),
        format!("data calendar data --vendor-url https://user:{WRONG}@127.0.0.1"),
        format!("data calendar data {WRONG}"),
    ] {
        for format in ["human", "json"] {
            let (code, text, errors) = user.said(&format!("--log-format {format} {line}"), &[]);
            assert_eq!(code, 2, "{text}{errors}");
            assert!(!errors.is_empty(), "{line}");
        }
    }
    for flag in ["--token-file", "--follow http://127.0.0.1:1 --follow-token-file"] {
        let (code, _, errors) = user.said(&format!("rank serve --prices data {flag} {WRONG}"), &[]);
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("token-file: the file with the token cannot be read"), "{errors}");
    }
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
