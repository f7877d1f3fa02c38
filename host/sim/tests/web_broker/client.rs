//! A plain client: sockets, bytes and JSON, nothing of the project's own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use encoding_rs::SHIFT_JIS;
use rsa::pkcs8::DecodePrivateKey as _;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};
use sim::web_broker::{Config, Form, Server};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket, client::IntoClientRequest};

/// What came back of a request.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The connection ended before the announced length.
    pub(crate) is_cut: bool,
}

pub(crate) fn percent(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(*byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

pub(crate) fn unpercent(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = body;
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            plain.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    plain
}

/// Sends bytes on a connection of its own and reads what comes until the announced length or the end.
pub(crate) fn exchange(address: SocketAddr, request: &[u8]) -> Option<Raw> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request).unwrap();
    let mut all = Vec::new();
    let mut piece = [0; 65_536];
    loop {
        if let Some(end) = all.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8(all[..end].to_vec()).unwrap();
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            if let Some(length) = length.map(|length| length.parse::<usize>().unwrap())
                && all.len() >= end + 4 + length
            {
                let body = all[end + 4..end + 4 + length].to_vec();
                return Some(Raw { head, body, is_cut: false });
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => all.extend_from_slice(&piece[..count]),
        }
    }
    let end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    Some(Raw { head, body: all[end + 4..].to_vec(), is_cut: true })
}

pub(crate) fn get(address: SocketAddr, target: &str) -> Option<Raw> {
    exchange(address, format!("GET {target} HTTP/1.1\r\nHost: sim\r\n\r\n").as_bytes())
}

/// A session at the broker.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) form: Form,
    pub(crate) p_no: u64,
    pub(crate) login: Value,
    /// The private key of a login with one.
    key: Option<rsa::PrivateKey>,
}

pub(crate) fn start(form: Form) -> Server {
    Server::start(Config { form, ..Config::default() }).unwrap()
}

/// An address without what the vendor leaves around it.
fn decrypted(key: &rsa::PrivateKey, text: &str) -> String {
    let bytes = base64::prelude::BASE64_STANDARD.decode(text).unwrap();
    let plain = String::from_utf8(key.oaep_decrypt::<sha2::Sha256>(&bytes).unwrap()).unwrap();
    let plain = plain.strip_prefix('\u{feff}').unwrap().strip_suffix("\r\n").unwrap();
    plain.to_owned()
}

fn now() -> String {
    let time = std::process::Command::new("date")
        .env("TZ", "Asia/Tokyo")
        .arg("+%Y.%m.%d-%H:%M:%S.000")
        .output()
        .unwrap();
    String::from_utf8(time.stdout).unwrap().trim().to_owned()
}

impl Client {
    /// A client that is not logged in.
    pub(crate) fn new(server: &Server, form: Form) -> Self {
        let key = server
            .private_key
            .as_ref()
            .map(|pem| rsa::PrivateKey::from_pkcs8_pem(pem.expose_secret()).unwrap());
        Self { address: server.address, form, p_no: 100, login: Value::Null, key }
    }

    pub(crate) fn logged_in(server: &Server, form: Form) -> Self {
        let mut client = Self::new(server, form);
        let answer = client.log_in("demo", "demo");
        assert_eq!((&answer["p_errno"], &answer["sResultCode"]), (&json!("0"), &json!("0")));
        client
    }

    pub(crate) fn log_in(&mut self, user: &str, password: &str) -> Value {
        let (path, fields) = match self.form {
            Form::V4r10 => ("/e_api_v4r10/auth/", json!({ "sAuthId": user })),
            _ => ("/e_api_v4r8/auth/", json!({ "sUserId": user, "sPassword": password })),
        };
        let mut answer = self.ask_at(path, "CLMAuthLoginRequest", &fields);
        if let Some(key) = &self.key {
            for (name, value) in answer.as_object_mut().unwrap() {
                if name.starts_with("sUrl") {
                    *value = json!(decrypted(key, value.as_str().unwrap()));
                }
            }
        }
        self.login = answer.clone();
        answer
    }

    pub(crate) fn target(&self, door: &str) -> String {
        let url = self.login[door].as_str().unwrap();
        let (_, path) = url.split_once(&self.address.to_string()).unwrap();
        path.to_owned()
    }

    /// The bytes of a request, with its own number.
    pub(crate) fn request(&mut self, path: &str, id: &str, fields: &Value) -> String {
        self.p_no += 1;
        let mut all = Map::new();
        all.insert("p_no".to_owned(), json!(self.p_no.to_string()));
        all.insert("p_sd_date".to_owned(), json!(now()));
        all.insert("sCLMID".to_owned(), json!(id));
        all.extend(fields.as_object().unwrap().clone());
        all.entry("sJsonOfmt").or_insert(json!("5"));
        let text = Value::Object(all).to_string();
        format!("{path}?{}", percent(&SHIFT_JIS.encode(&text).0))
    }

    pub(crate) fn decode(&self, body: &[u8]) -> Value {
        let bytes = if self.form == Form::Spec { unpercent(body) } else { body.to_vec() };
        let text = SHIFT_JIS.decode_without_bom_handling_and_without_replacement(&bytes).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn ask_at(&mut self, path: &str, id: &str, fields: &Value) -> Value {
        let target = self.request(path, id, fields);
        let raw = get(self.address, &target).unwrap();
        assert!(raw.head.starts_with("HTTP/1.1 200"), "{}", raw.head);
        self.decode(&raw.body)
    }

    pub(crate) fn raw(&mut self, id: &str, fields: &Value) -> Option<Raw> {
        let path = self.target("sUrlRequest");
        let target = self.request(&path, id, fields);
        get(self.address, &target)
    }

    pub(crate) fn ask(&mut self, id: &str, fields: &Value) -> Value {
        let path = self.target("sUrlRequest");
        self.ask_at(&path, id, fields)
    }

    /// A new order: these fields in place of the usual ones, which buy 100 of 7203 at 2,850.
    pub(crate) fn new_order_fields(&self, other: &Value) -> Value {
        let mut fields = json!({
            "sZyoutoekiKazeiC": "1", "sIssueCode": "7203", "sSizyouC": "00",
            "sBaibaiKubun": "3", "sCondition": "0", "sOrderPrice": "2850", "sOrderSuryou": "100",
            "sGenkinShinyouKubun": "0", "sOrderExpireDay": "0", "sGyakusasiOrderType": "0",
            "sGyakusasiZyouken": "0", "sGyakusasiPrice": "*", "sTatebiType": "*",
            "sTategyokuZyoutoekiKazeiC": "*", "sSecondPassword": "0000",
        });
        let map = fields.as_object_mut().unwrap();
        if self.form == Form::Spec {
            for of_stops in ["sGyakusasiOrderType", "sGyakusasiZyouken", "sGyakusasiPrice"] {
                map.shift_remove(of_stops);
            }
        }
        map.extend(other.as_object().unwrap().clone());
        fields
    }

    pub(crate) fn new_order(&mut self, other: &Value) -> Value {
        let fields = self.new_order_fields(other);
        self.ask("CLMKabuNewOrder", &fields)
    }

    /// A new order that is taken; tells number and business day.
    pub(crate) fn placed(&mut self, other: &Value) -> (String, String) {
        let answer = self.new_order(other);
        assert_eq!(answer["sResultCode"], "0", "{answer}");
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        (text("sOrderNumber"), text("sEigyouDay"))
    }

    pub(crate) fn correct(&mut self, order: &(String, String), other: &Value) -> Value {
        let mut fields = json!({
            "sOrderNumber": order.0, "sEigyouDay": order.1, "sCondition": "*", "sOrderPrice": "*",
            "sOrderSuryou": "*", "sOrderExpireDay": "*", "sGyakusasiZyouken": "*",
            "sGyakusasiPrice": "*", "sSecondPassword": "0000",
        });
        fields.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        self.ask("CLMKabuCorrectOrder", &fields)
    }

    pub(crate) fn cancel(&mut self, order: &(String, String)) -> Value {
        let fields = json!({
            "sOrderNumber": order.0, "sEigyouDay": order.1, "sSecondPassword": "0000",
        });
        self.ask("CLMKabuCancelOrder", &fields)
    }

    pub(crate) fn list(&mut self) -> Vec<Value> {
        let fields = json!({ "sIssueCode": "", "sSikkouDay": "", "sOrderSyoukaiStatus": "" });
        match self.ask("CLMOrderList", &fields)["aOrderList"].clone() {
            Value::Array(rows) => rows,
            empty => {
                assert_eq!(empty, "");
                Vec::new()
            }
        }
    }

    /// Status code of an order in the list.
    pub(crate) fn status(&mut self, order: &(String, String)) -> String {
        let rows = self.list();
        let row = rows.iter().find(|row| row["sOrderOrderNumber"] == order.0).unwrap();
        row["sOrderStatusCode"].as_str().unwrap().to_owned()
    }

    pub(crate) fn events(&self) -> Events {
        self.events_after(0)
    }

    pub(crate) fn events_after(&self, number: u64) -> Events {
        Events::open(self, number).unwrap()
    }
}

pub(crate) fn money(answer: &Value, name: &str) -> i64 {
    answer[name].as_str().unwrap().parse().unwrap()
}

/// The stream of events.
pub(crate) struct Events {
    socket: WebSocket<TcpStream>,
}

/// A frame's items, in their order.
pub(crate) type Frame = Vec<(String, String)>;

pub(crate) fn item<'a>(frame: &'a Frame, name: &str) -> &'a str {
    frame.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

pub(crate) fn command(frame: &Frame) -> &str {
    match item(frame, "p_cmd") {
        "" => item(frame, "p_evt_cmd"),
        command => command,
    }
}

pub(crate) fn split(text: &str) -> Frame {
    let items = text.split('\u{1}').filter(|item| !item.is_empty());
    let items = items.map(|item| item.split_once('\u{2}').unwrap());
    items.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Events {
    pub(crate) fn open(client: &Client, after: u64) -> Result<Self, String> {
        let stream = TcpStream::connect(client.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let target = client.target("sUrlEventWebSocket");
        let url = format!(
            "ws://{}{target}?p_rid=0&p_board_no=1000&p_eno={after}&p_evt_cmd=ST,KP,EC,SS,US",
            client.address
        );
        let request = url.into_client_request().unwrap();
        let opened = tungstenite::client(request, stream).map_err(|error| error.to_string())?;
        Ok(Self { socket: opened.0 })
    }

    /// The next frame; none when the connection ends.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(split(&text)),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    pub(crate) fn next_raw(&mut self) -> String {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return text.to_string();
            }
        }
    }

    /// The next notice of an order: its kind, its number and the frame.
    pub(crate) fn notice(&mut self) -> Frame {
        loop {
            let frame = self.next().expect("the stream has ended");
            if command(&frame) == "EC" {
                return frame;
            }
        }
    }

    /// Kinds (`p_NT`) of the next notices.
    pub(crate) fn kinds(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| item(&self.notice(), "p_NT").to_owned()).collect()
    }
}
