//! A Chromium without a window, driven over its DevTools pipe: it opens pages as a person's browser
//! does, and tests click, type and read in them. Nothing but the browser itself is needed.

use std::collections::VecDeque;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::built;

/// Names a browser that is to be taken.
pub const VARIABLE: &str = "KUMIKI_BROWSER";
/// A folder into which [`Browser::picture`] puts pictures of pages, for people.
const PICTURES: &str = "KUMIKI_BROWSER_PICTURES";
/// Names under which systems have it.
const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "chromium-headless-shell",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];
/// Nothing of the browser's own asks the network, and it runs as root and where little memory is shared.
const OPTIONS: [&str; 12] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--lang=en-US",
];
/// How long an answer may take before a test fails. No test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a page is asked whether something is so, and how long it waits in between.
const LOOKS: u32 = 600;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The browser's program, or the reason why there is none.
///
/// # Errors
/// That reason.
pub fn find() -> Result<PathBuf, String> {
    if cfg!(windows) {
        return Err("the browser is driven over pipes of a Unix shell".to_owned());
    }
    if let Some(named) = env::var_os(VARIABLE) {
        return Ok(named.into());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
    let places = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        let reason = std::fs::read_to_string(built::release_folder().join("browser.skipped"));
        reason.unwrap_or_else(|_| format!("there is no Chromium; {VARIABLE} names one"))
    })
}

/// A browser with one page.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// Its settings and caches; removed at the end.
    _profile: tempfile::TempDir,
    /// What names the page in messages.
    session: Option<String>,
    number: u64,
    loads: u32,
    problems: Vec<String>,
    requests: Vec<String>,
}

impl Browser {
    /// Starts it with an empty page, as large as a desktop's.
    ///
    /// # Errors
    /// Why there is no browser.
    ///
    /// # Panics
    /// When there is one and it does not work.
    pub fn start() -> Result<Self, String> {
        let program = find()?;
        let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
        // The pipe is read and written at the numbers 3 and 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >&2"]).arg(&program);
        command.args(OPTIONS).arg(format!("--user-data-dir={}", profile.path().display()));
        command.arg("about:blank");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("sh: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the browser has no pipes".to_owned());
        };
        let mut browser = Self {
            child,
            input,
            messages: read(output),
            _profile: profile,
            session: None,
            number: 0,
            loads: 0,
            problems: Vec::new(),
            requests: Vec::new(),
        };
        let made = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let wanted = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", wanted);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.size(1_280, 900);
        Ok(browser)
    }

    /// Calls a method of the DevTools protocol; gives its result.
    ///
    /// # Panics
    /// When the browser refuses or is gone.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let number = self.send(method, parameters);
        loop {
            let message = self.receive(method);
            if message["id"] != number {
                self.take(&message);
                continue;
            }
            assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
            return message["result"].clone();
        }
    }

    fn send(&mut self, method: &str, parameters: Value) -> u64 {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let sent = write!(self.input, "{message}\0").and_then(|()| self.input.flush());
        sent.unwrap_or_else(|error| panic!("the browser is gone before {method}: {error}"));
        self.number
    }

    fn receive(&mut self, what: &str) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        message.unwrap_or_else(|error| panic!("the browser does not answer {what}: {error}"))
    }

    /// Takes what the browser tells by itself.
    fn take(&mut self, message: &Value) {
        let about = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.loads += 1,
            "Network.requestWillBeSent" => self.requests.push(text(&about["request"]["url"])),
            "Runtime.exceptionThrown" => {
                let details = &about["exceptionDetails"];
                self.problems.push(format!("{} {}", text(&details["text"]), details["exception"]));
            }
            "Runtime.consoleAPICalled" => self.problems.push(format!("console: {about}")),
            "Log.entryAdded" => self.problems.push(format!("log: {}", about["entry"])),
            "Page.javascriptDialogOpening" => {
                self.problems.push(format!("a dialog: {about}"));
                self.send("Page.handleJavaScriptDialog", json!({ "accept": false }));
            }
            "Inspector.targetCrashed" => panic!("the page crashed"),
            _ => {}
        }
    }

    /// Opens a page and waits until it is there; what was told of pages before is forgotten.
    ///
    /// # Panics
    /// When it cannot be opened.
    pub fn open(&mut self, address: &str) {
        // From a blank page, so that the same address with another end is another visit.
        for address in ["about:blank", address] {
            let before = self.loads;
            let opened = self.call("Page.navigate", json!({ "url": address }));
            assert!(opened.get("errorText").is_none(), "{address}: {opened}");
            while self.loads == before {
                let message = self.receive("the page");
                self.take(&message);
            }
            if address == "about:blank" {
                self.problems.clear();
                self.requests.clear();
            }
        }
    }

    /// Makes it a browser of somebody who reads these languages, the first one best: `ja,en`.
    pub fn speak(&mut self, languages: &str) {
        let agent = self.value("navigator.userAgent");
        let wanted = json!({ "userAgent": agent, "acceptLanguage": languages });
        self.call("Emulation.setUserAgentOverride", wanted);
    }

    /// Opens a file.
    pub fn open_file(&mut self, path: &Path) {
        self.open(&file_address(path));
    }

    /// Makes the page as large as this, in pixels of CSS; narrow ones are phones.
    pub fn size(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.value("new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)))");
    }

    /// The value of an expression of JavaScript, which may be a promise.
    ///
    /// # Panics
    /// When it throws.
    pub fn value(&mut self, expression: &str) -> Value {
        let wanted =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", wanted);
        let thrown = answer.get("exceptionDetails");
        assert!(thrown.is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// The text of the first element that a selector finds.
    ///
    /// # Panics
    /// When there is none.
    pub fn text(&mut self, selector: &str) -> String {
        text(&self.value(&format!("document.querySelector({}).textContent", json!(selector))))
    }

    /// The texts of all elements that a selector finds.
    pub fn texts(&mut self, selector: &str) -> Vec<String> {
        let expression = format!(
            "[...document.querySelectorAll({})].map((one) => one.textContent)",
            json!(selector)
        );
        let found = self.value(&expression);
        found.as_array().into_iter().flatten().map(text).collect()
    }

    /// The texts of the cells of a table, by rows, its head left out.
    pub fn rows(&mut self, selector: &str) -> Vec<Vec<String>> {
        let expression = format!(
            "[...document.querySelectorAll({} + ' tbody tr')].map((row) => \
             [...row.cells].map((cell) => cell.textContent))",
            json!(selector)
        );
        let found = self.value(&expression);
        let cells = |row: &Value| row.as_array().into_iter().flatten().map(text).collect();
        found.as_array().into_iter().flatten().map(cells).collect()
    }

    /// Waits until an expression is true.
    ///
    /// # Panics
    /// When it does not become so.
    pub fn wait_for(&mut self, expression: &str) {
        for _ in 0..LOOKS {
            if self.value(&format!("Boolean({expression})")) == true {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
        panic!("it did not become so: {expression}; {:?}", self.problems);
    }

    /// Clicks into the middle of the first element that a selector finds.
    pub fn click(&mut self, selector: &str) {
        let place = self.value(&format!(
            "(() => {{ const found = document.querySelector({}); \
             found.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             const box = found.getBoundingClientRect(); \
             return {{ x: box.x + box.width / 2, y: box.y + box.height / 2 }}; }})()",
            json!(selector)
        ));
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let pressed = u8::from(kind == "mousePressed");
            let event = json!({ "type": kind, "x": place["x"], "y": place["y"], "clickCount": 1,
                "button": if kind == "mouseMoved" { "none" } else { "left" }, "buttons": pressed });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Gives the focus to the first element that a selector finds.
    pub fn focus(&mut self, selector: &str) {
        self.value(&format!("document.querySelector({}).focus()", json!(selector)));
    }

    /// Presses a key: `Enter`, `Tab`, `ArrowRight` and the like.
    pub fn press(&mut self, key: &str) {
        let (code, typed) = match key {
            "Enter" => (13, "\r"),
            "Tab" => (9, ""),
            "Escape" => (27, ""),
            "Home" => (36, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            "End" => (35, ""),
            _ => panic!("the key {key} is not known here"),
        };
        let kind = if typed.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [kind, "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "text": typed,
                "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a text where the focus is.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Holds the page against what every page of ours must be: nothing on the console, and nothing
    /// asked of others than its own address, `own`.
    ///
    /// # Panics
    /// When it is otherwise.
    pub fn expect_quiet(&mut self, own: &str) {
        // What was told until now has been read when this is answered.
        self.value("0");
        assert!(self.problems.is_empty(), "{:#?}", self.problems);
        let inside = |address: &&String| {
            address.starts_with(own) || address.starts_with("data:") || address.starts_with("blob:")
        };
        let outside: Vec<&String> =
            self.requests.iter().filter(|address| !inside(address)).collect();
        assert!(!self.requests.is_empty() && outside.is_empty(), "{outside:?}");
    }

    /// Holds the page against the width of a phone: nothing may need scrolling to the side.
    ///
    /// # Panics
    /// When something does; the elements that stick out are named.
    pub fn expect_fits_a_phone(&mut self, name: &str) {
        const PHONE: u32 = 360;
        self.size(PHONE, 812);
        self.picture(&format!("{name}-phone"));
        let out = self.value(
            "(() => { const width = document.documentElement.clientWidth; \
             const scrolls = (one) => one && one !== document.body && \
               (['auto', 'scroll', 'hidden'].includes(getComputedStyle(one).overflowX) \
                || scrolls(one.parentElement)); \
             return [...document.body.querySelectorAll('*')] \
               .filter((one) => one.getBoundingClientRect().right > width + 1 && !scrolls(one.parentElement)) \
               .map((one) => one.tagName + '#' + one.id + '.' + one.getAttribute('class')).slice(0, 9); })()",
        );
        let width = self.value("document.documentElement.scrollWidth");
        assert_eq!((width, out), (json!(PHONE), json!([])), "{name}");
        self.size(1_280, 900);
    }

    /// How many colours a canvas shows; an empty one has none.
    pub fn colours_of_canvas(&mut self, selector: &str) -> u64 {
        let count = self.value(&format!(
            "(() => {{ const canvas = document.querySelector({}); \
             const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height); \
             return new Set(new Uint32Array(data.buffer).filter((pixel) => pixel >>> 24 > 0)).size; }})()",
            json!(selector)
        ));
        count.as_u64().unwrap_or(0)
    }

    /// Puts a picture of the whole page into the folder that the environment names, if it does.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn picture(&mut self, name: &str) {
        let Some(folder) = env::var_os(PICTURES) else { return };
        let wanted = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.call("Page.captureScreenshot", wanted);
        let path = Path::new(&folder).join(format!("{name}.png"));
        let bytes = from_base64(picture["data"].as_str().unwrap_or_default());
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked to close it removes what it has started; a browser that hangs is killed.
        self.session = None;
        let asked = write!(self.input, "{}\0", json!({ "id": 0, "method": "Browser.close" }));
        if asked.and_then(|()| self.input.flush()).is_ok() {
            for _ in 0..LOOKS {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads messages, which end with a zero byte, until the browser is gone.
fn read(output: ChildStdout) -> Receiver<Value> {
    let (sender, messages) = channel();
    thread::spawn(move || {
        for message in BufReader::new(output).split(0) {
            let message = message.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let Some(message) = message else { return };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    messages
}

/// The address of a file.
#[must_use]
pub fn file_address(path: &Path) -> String {
    let mut address = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    address
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn from_base64(text: &str) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let six = |letter: u8| letters.iter().position(|one| *one == letter);
    let mut bits: VecDeque<bool> = VecDeque::new();
    let mut bytes = Vec::new();
    for value in text.bytes().filter_map(six) {
        bits.extend((0..6).rev().map(|place| value >> place & 1 == 1));
        if bits.len() >= 8 {
            bytes.push(bits.drain(..8).fold(0, |byte, bit| byte << 1 | u8::from(bit)));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_read() {
        assert_eq!(from_base64("iVBORw0KGgo="), b"\x89PNG\r\n\x1a\n");
    }

    #[test]
    fn addresses_of_files_hold_any_name() {
        assert_eq!(file_address(Path::new("/a b/é#.html")), "file:///a%20b/%C3%A9%23.html");
    }
}
