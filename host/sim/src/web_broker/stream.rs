//! The stream of events: one WebSocket for a login; the last one wins.

use std::sync::Arc;

use domain::clock;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::broker::{Seen, Stream, ToStream};
use super::config::MarketStart;
use super::event_log::{EventKind, event_frame, frame};
use super::faults::FaultKind;
use super::limits::CLIENT_FRAME_BYTES_MAX;
use super::server::{Shared, plain};
use super::times;
use super::wire;
use crate::http::Head;

/// What a client asks for.
#[derive(Debug)]
struct Asked {
    /// The last event that it has.
    after: u64,
    kinds: Vec<String>,
}

/// Makes a connection the stream of events.
pub(crate) async fn upgrade(
    mut connection: TcpStream,
    head: &Head,
    token: &str,
    shared: Arc<Shared>,
) {
    let key = head.header("sec-websocket-key").unwrap_or_default();
    let wants = head.method == "GET" && head.says("upgrade", "websocket") && !key.is_empty();
    if !wants {
        plain(&mut connection, 400, "this address takes WebSockets only").await;
        return;
    }
    let (asked, fields) = read_arguments(&head.query);
    let (number, is_refused) = {
        let mut broker = shared.broker();
        let number = broker.see(Seen {
            number: 0,
            at: times::milli(clock::wall_now()),
            door: "event",
            fields,
            left_plain: wire::left_plain(&head.query),
            overlaps: false,
            outcome: String::new(),
        });
        (number, broker.faults.has(FaultKind::RefuseEvents))
    };
    if is_refused {
        shared.broker().outcome(number, "refused");
        plain(&mut connection, 503, "a simulated fault").await;
        return;
    }
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    if connection.write_all(answer.as_bytes()).await.is_err() {
        return;
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(CLIENT_FRAME_BYTES_MAX))
        .max_frame_size(Some(CLIENT_FRAME_BYTES_MAX));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    let mut sender = Sender { socket, shared, count: 0 };
    let Some((commands, id)) = take_over(&sender.shared, number, token) else {
        return sender.end(Some(2)).await;
    };
    sender.follow(&asked, commands).await;
    let mut broker = sender.shared.broker();
    if broker.stream.as_ref().is_some_and(|stream| stream.id == id) {
        broker.stream = None;
    }
}

/// Displaces the stream before, and lets the market begin; none where the address is of no session, which
/// may have ended just now.
fn take_over(
    shared: &Shared,
    number: u64,
    token: &str,
) -> Option<(UnboundedReceiver<ToStream>, u64)> {
    // One word a command; a client that takes none is displaced or ends.
    let (sender, commands) = unbounded_channel();
    let mut broker = shared.broker();
    if broker.session.as_ref().is_none_or(|session| session.token != token) {
        broker.counts.stale_addresses += 1;
        broker.outcome(number, "errno 2");
        return None;
    }
    broker.counts.streams_displaced += u64::from(broker.end_stream(Some(2)));
    broker.counts.streams += 1;
    let id = broker.counts.streams;
    broker.stream = Some(Stream { id, sender });
    broker.outcome(number, "connected");
    let begins = broker.config.data.as_ref().map(|data| data.begins);
    broker.market_runs |= begins == Some(MarketStart::AtLogin);
    Some((commands, id))
}

fn read_arguments(query: &str) -> (Asked, Value) {
    let mut fields = Map::new();
    for pair in query.split('&').take(50) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = wire::decode_query(value).unwrap_or_default();
        fields.insert(name.to_owned(), json!(value));
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let after = text("p_eno").parse().unwrap_or_default();
    let kinds = text("p_evt_cmd").split(',').map(str::to_owned).collect();
    (Asked { after, kinds }, Value::Object(fields))
}

struct Sender {
    socket: WebSocketStream<TcpStream>,
    shared: Arc<Shared>,
    /// Frames so far.
    count: u64,
}

impl Sender {
    async fn follow(&mut self, asked: &Asked, mut commands: UnboundedReceiver<ToStream>) {
        let keep_alive = self.shared.broker().config.keep_alive;
        let stop = self.shared.stop.clone();
        let mut changed = self.shared.changed.clone();
        let mut next = self.shared.broker().log.day_start;
        if !self.keep_alive().await {
            return;
        }
        loop {
            changed.mark_unchanged();
            let texts = self.due(asked, &mut next);
            for text in texts {
                if !self.send(text).await {
                    return;
                }
            }
            let silence = sleep(keep_alive);
            tokio::select! {
                () = stop.cancelled() => return self.end(None).await,
                command = commands.recv() => match command {
                    Some(ToStream::Raw(text)) => {
                        if !self.send(text).await {
                            return;
                        }
                    }
                    Some(ToStream::End(errno)) => return self.end(errno).await,
                    None => return,
                },
                _ = changed.changed() => {}
                message = self.socket.next() => match message {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(Message::Ping(_))) => self.shared.broker().counts.client_pings += 1,
                    Some(Ok(Message::Text(_) | Message::Binary(_))) => {
                        self.shared.broker().counts.client_frames += 1;
                    }
                    Some(Ok(_)) => {}
                },
                () = silence => {
                    if !self.keep_alive().await {
                        return;
                    }
                }
            }
        }
    }

    /// The frames that may go out now.
    fn due(&mut self, asked: &Asked, next: &mut usize) -> Vec<String> {
        let shared = Arc::clone(&self.shared);
        let mut broker = shared.broker();
        let is_held = broker.faults.has(FaultKind::HoldNotices);
        let mut order = Vec::new();
        while *next < broker.log.visible {
            let event = &broker.log.events[*next];
            let is_order = event.kind == EventKind::Ec;
            let is_asked = event.number > asked.after
                && asked.kinds.iter().any(|kind| kind == event.kind.name());
            if is_order && is_asked {
                if is_held {
                    break;
                }
                if broker.faults.has(FaultKind::ReorderNotices) {
                    // The notice that follows it, if there is one yet.
                    let after = (*next + 1..broker.log.visible)
                        .find(|index| broker.log.events[*index].kind == EventKind::Ec);
                    let Some(after) = after else { break };
                    broker.faults.of_notice(FaultKind::ReorderNotices);
                    order.push(after);
                    order.extend(*next..after);
                    *next = after + 1;
                    continue;
                }
            }
            if is_asked {
                order.push(*next);
            }
            *next += 1;
        }
        let date = times::milli(broker.clock());
        let ends = broker.faults.has(FaultKind::TrailingSeparator);
        let mut texts = Vec::new();
        for index in order {
            let is_order = broker.log.events[index].kind == EventKind::Ec;
            let twice = is_order && broker.faults.of_notice(FaultKind::DuplicateNotices);
            for _ in 0..=usize::from(twice) {
                self.count += 1;
                let event = &broker.log.events[index];
                let mut text = event_frame(shared.form, self.count, &date, event);
                if ends {
                    text.push('\u{1}');
                }
                texts.push(text);
            }
            broker.log.events[index].was_sent = true;
        }
        texts
    }

    async fn send(&mut self, text: String) -> bool {
        self.socket.send(Message::text(text)).await.is_ok()
    }

    async fn keep_alive(&mut self) -> bool {
        let date = {
            let broker = self.shared.broker();
            if broker.faults.has(FaultKind::Silent) {
                return true;
            }
            times::milli(broker.clock())
        };
        self.count += 1;
        let text = frame(self.shared.form, self.count, &date, "KP", &[]);
        self.send(text).await && self.socket.send(Message::Ping(Vec::new().into())).await.is_ok()
    }

    /// Ends the connection, with a frame where the broker says why.
    async fn end(&mut self, errno: Option<i32>) {
        if let Some(errno) = errno {
            let date = times::milli(self.shared.broker().clock());
            self.count += 1;
            let why = if errno == 2 { "session inactive." } else { "a simulated fault." };
            let items = [("p_errno", errno.to_string()), ("p_err", why.to_owned())];
            let text = frame(self.shared.form, self.count, &date, "ST", &items);
            if !self.send(text).await {
                return;
            }
        }
        self.socket.close(None).await.ok();
    }
}
