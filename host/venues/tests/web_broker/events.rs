//! The stream of events over real WebSockets.

use std::time::Duration;

use domain::order_mapping::field;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Receiver;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_util::sync::CancellationToken;
use venues::web_broker::{EventAddress, FollowTimes, StreamEvent, follow_with};

use crate::server::{Act, Server, login_ack, password};

const TIMES: FollowTimes = FollowTimes {
    silence: Duration::from_millis(400),
    pause: Duration::from_millis(20),
    pause_max: Duration::from_millis(100),
    stable: Duration::from_secs(60),
};

/// A socket for the stream, and its address from a login.
async fn stream() -> (TcpListener, EventAddress) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server::start(move |_, own| {
        let ack = String::from_utf8(login_ack(own)).unwrap();
        let own = format!("ws://127.0.0.1:{own}/");
        Act::Body(ack.replace(&own, &format!("ws://127.0.0.1:{port}/")).into_bytes())
    });
    let folder = tempfile::tempdir().unwrap();
    let mut transport = server.transport(folder.path(), true);
    transport.login(&password("user", "word")).await.unwrap();
    (listener, transport.event_address().unwrap())
}

fn followed(address: EventAddress) -> (Receiver<StreamEvent>, CancellationToken) {
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    let cancel = CancellationToken::new();
    tokio::spawn(follow_with(address, sender, cancel.clone(), TIMES));
    (receiver, cancel)
}

async fn accepted(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let (socket, _) = listener.accept().await.unwrap();
    #[expect(clippy::result_large_err, reason = "the form of the library's callbacks")]
    let check = |request: &Request, response: Response| {
        let asked = request.uri().to_string();
        let query = "p_rid=0&p_board_no=1000&p_eno=0&p_evt_cmd=ST,KP,EC,SS,US";
        assert_eq!(asked, format!("/event_ws/ND=virtual-secret-5/?{query}"));
        assert!(!request.headers().contains_key("sec-websocket-extensions"));
        Ok(response)
    };
    tokio_tungstenite::accept_hdr_async(socket, check).await.unwrap()
}

async fn down(receiver: &mut Receiver<StreamEvent>) -> String {
    match receiver.recv().await.unwrap() {
        StreamEvent::Down(why) => {
            assert!(!why.contains("virtual-secret") && !why.contains("127.0.0.1"), "{why}");
            why
        }
        other => panic!("{other:?}"),
    }
}

const KEEP_ALIVE: &str = "p_no\u{2}1\u{1}p_cmd\u{2}KP";

#[tokio::test]
async fn frames_come_pings_are_answered_and_what_is_lost_comes_again() {
    let (listener, address) = stream().await;
    let (mut receiver, cancel) = followed(address);
    for round in 0..3 {
        let mut socket = accepted(&listener).await;
        assert_eq!(receiver.recv().await, Some(StreamEvent::Up));
        socket.send(Message::text(KEEP_ALIVE)).await.unwrap();
        socket.send(Message::Ping(b"x".to_vec().into())).await.unwrap();
        let answer = socket.next().await.unwrap().unwrap();
        assert_eq!(answer, Message::Pong(b"x".to_vec().into()), "nothing but the answer comes");
        // Bytes of Shift-JIS cannot be a text frame.
        socket.send(Message::binary(b"p_cmd\x02EC\x01p_X\x02\x95\x5c".to_vec())).await.unwrap();
        for (name, value) in [("p_cmd", "KP"), ("p_X", "表")] {
            let Some(StreamEvent::Frame(fields)) = receiver.recv().await else { panic!() };
            assert_eq!(field(&fields, name), Some(value));
        }
        match round {
            0 => socket.close(None).await.unwrap(),
            // The connection is cut.
            _ => drop(socket),
        }
        down(&mut receiver).await;
    }
    cancel.cancel();
    while receiver.recv().await.is_some() {}
}

#[tokio::test]
async fn a_text_in_pieces_is_one_frame() {
    let (listener, address) = stream().await;
    let (mut receiver, _cancel) = followed(address);
    let mut socket = accepted(&listener).await;
    assert_eq!(receiver.recv().await, Some(StreamEvent::Up));
    // Two fragments that split the three bytes of a character.
    let raw = socket.get_mut();
    let text = "p_X\u{2}表".as_bytes();
    let (one, two) = text.split_at(text.len() - 1);
    raw.write_all(&[&[0x01, one.len() as u8], one].concat()).await.unwrap();
    raw.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    raw.write_all(&[&[0x80, two.len() as u8], two].concat()).await.unwrap();
    let Some(StreamEvent::Frame(fields)) = receiver.recv().await else { panic!() };
    assert_eq!(field(&fields, "p_X"), Some("表"));
}

/// The broker sends the day's frames again at each connection: an unreadable one must not end it.
#[tokio::test]
async fn an_unreadable_frame_is_reported_and_the_next_one_comes() {
    let (listener, address) = stream().await;
    let (mut receiver, _cancel) = followed(address);
    let mut socket = accepted(&listener).await;
    assert_eq!(receiver.recv().await, Some(StreamEvent::Up));
    for (frame, words) in [
        ([&[0x81, 3][..], b"abc"].concat(), "no key"),
        ([&[0x81, 3][..], b"a\x02\x81"].concat(), "neither UTF-8 nor Shift-JIS"),
        ([&[0x82, 3][..], b"a\x02\x81"].concat(), "neither UTF-8 nor Shift-JIS"),
    ] {
        socket.get_mut().write_all(&frame).await.unwrap();
        let Some(StreamEvent::Unreadable(why)) = receiver.recv().await else { panic!("{words}") };
        assert!(why.contains(words), "{words}: {why}");
        socket.send(Message::text(KEEP_ALIVE)).await.unwrap();
        let Some(StreamEvent::Frame(fields)) = receiver.recv().await else { panic!("{words}") };
        assert_eq!(field(&fields, "p_cmd"), Some("KP"));
    }
    // Shift-JIS in a text frame breaks the rules of WebSockets, but can be read.
    socket.get_mut().write_all(b"\x81\x05X\x02\x95\x5c\x01").await.unwrap();
    let Some(StreamEvent::Frame(fields)) = receiver.recv().await else { panic!() };
    assert_eq!(field(&fields, "X"), Some("表"));
}

#[tokio::test]
async fn what_is_no_stream_ends_the_connection_and_it_is_tried_again() {
    let (listener, address) = stream().await;
    let (mut receiver, _cancel) = followed(address);
    type Sent = (&'static str, Vec<u8>);
    let large = [&[0x82, 127][..], &(1_u64 << 20).to_be_bytes()].concat();
    let wrong: [Sent; 3] = [
        ("nothing came", Vec::new()),
        ("more than", large),
        ("break the rules", vec![0xc1, 1, b'x']),
    ];
    for (words, bytes) in wrong {
        let mut socket = accepted(&listener).await;
        assert_eq!(receiver.recv().await, Some(StreamEvent::Up));
        socket.get_mut().write_all(&bytes).await.unwrap();
        let why = down(&mut receiver).await;
        assert!(why.contains(words), "{words}: {why}");
    }
    let mut lost = accepted(&listener).await;
    assert_eq!(receiver.recv().await, Some(StreamEvent::Up));
    lost.get_mut().shutdown().await.unwrap();
    assert_eq!(down(&mut receiver).await, "the connection to the broker was lost");
    for (answer, words) in [
        ("HTTP/1.1 503 Busy\r\n\r\n", "503"),
        ("HTTP/1.1 302 Found\r\nLocation: /other\r\n\r\n", "302"),
        (
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n",
            "does not open the WebSocket",
        ),
        ("garbage\r\n\r\n", "is not HTTP"),
        ("", "ended"),
    ] {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(answer.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        let why = down(&mut receiver).await;
        assert!(why.contains(words), "{words}: {why}");
    }
    accepted(&listener).await;
    assert_eq!(receiver.recv().await, Some(StreamEvent::Up));
}

#[tokio::test]
async fn a_stream_without_a_receiver_ends() {
    let (listener, address) = stream().await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let following = tokio::spawn(follow_with(address, sender, CancellationToken::new(), TIMES));
    let _socket = accepted(&listener).await;
    drop(receiver);
    tokio::time::timeout(Duration::from_secs(5), following).await.unwrap().unwrap();
}
