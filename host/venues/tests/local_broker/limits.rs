//! Limits of data from sockets and of the queue to the venue's thread: each limit, and one above.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use domain::clock::sleep;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use venues::Busy;
use venues::local_broker::limits::{
    ANSWER_BYTES_MAX, COMMANDS_WAITING_MAX, END_TIME, FRAME_RECEIVED_BYTES_MAX,
    HANDSHAKE_BYTES_MAX, SHORT_ANSWER_BYTES_MAX,
};

use crate::server::{Server, Stream, usual};
use crate::venue::{PATIENCE, Venue};

const HOUR: Duration = Duration::from_secs(3_600);

/// A board as the gateway pushes it.
fn board(volume: u64) -> Value {
    json!({ "Symbol": "7203", "Exchange": 1, "CurrentPrice": 2_850, "TradingVolume": volume })
}

fn push(stream: &mut Stream, text: String) {
    stream.send(Message::text(text)).unwrap();
}

#[test]
fn frame_received_bytes_max_is_the_longest_frame_of_a_connection_that_stays() {
    let server = Server::usual();
    let venue = Venue::subscribed(&server);
    let mut first = server.streams.recv_timeout(PATIENCE).unwrap();
    venue.until_push("Streaming");
    // It is too long to be read, but does not end the connection.
    push(&mut first, " ".repeat(FRAME_RECEIVED_BYTES_MAX));
    push(&mut first, board(100).to_string());
    venue.until("Market");
    assert!(server.streams.try_recv().is_err(), "the first connection stays");
    // The venue may end the connection while the last bytes are under way.
    let _ = first.send(Message::text(" ".repeat(FRAME_RECEIVED_BYTES_MAX + 1)));
    let mut second = server.streams.recv_timeout(PATIENCE).unwrap();
    venue.until_push("Streaming");
    push(&mut second, board(200).to_string());
    venue.until("Market");
    venue.service.stop();
}

#[test]
fn handshake_bytes_max_is_the_longest_head_with_which_a_stream_begins() {
    let server = Server::with_long_handshakes(HANDSHAKE_BYTES_MAX);
    let venue = Venue::subscribed(&server);
    venue.until_push("Streaming");
    venue.service.stop();
    let server = Server::with_long_handshakes(HANDSHAKE_BYTES_MAX + 1);
    let venue = Venue::start(&server);
    venue.send("RequestVenueLogin", json!({})).unwrap();
    let reported = venue.until("VenueError")["message"].to_string();
    assert!(reported.contains("the answer's head has more than 16384 bytes"), "{reported}");
    venue.service.stop();
}

#[test]
fn short_answer_bytes_max_is_the_longest_answer_that_is_no_list() {
    for more in [0, 1] {
        let server = Server::start(move |asked, body| {
            let (status, mut answer) = usual(asked, body);
            if asked.starts_with("GET ") {
                answer.resize(SHORT_ANSWER_BYTES_MAX + more, b' ');
            }
            (status, answer)
        });
        let venue = Venue::subscribed(&server);
        venue.send("GetBuyingPower", json!({})).unwrap();
        if more == 0 {
            assert_eq!(venue.until("BuyingPowerUpdated")["cash_available"], "1");
        } else {
            let reported = venue.until("Error")["message"].to_string();
            assert!(reported.contains("the answer has more than 65536 bytes"), "{reported}");
        }
        venue.service.stop();
    }
}

#[test]
fn answer_bytes_max_is_the_longest_list() {
    for more in [0, 1] {
        let server = Server::start(move |asked, body| {
            if !asked.starts_with("GET /orders") {
                return usual(asked, body);
            }
            let mut rows = b"[]".to_vec();
            rows.resize(ANSWER_BYTES_MAX + more, b' ');
            (200, rows)
        });
        let venue = Venue::subscribed(&server);
        venue.send("GetOrderList", json!({ "filter": {} })).unwrap();
        if more == 0 {
            assert_eq!(venue.until("OrderListUpdated")["orders"], json!([]));
        } else {
            let reported = venue.until("Error")["message"].to_string();
            assert!(reported.contains("the answer has more than 16777216 bytes"), "{reported}");
        }
        venue.service.stop();
    }
}

/// The venue's thread is stopped during a broadcast; nothing takes commands out of the queue meanwhile.
#[test]
fn commands_waiting_max_is_how_many_commands_wait() {
    let server = Server::usual();
    let ((holds, held), (go, goes)) = (mpsc::channel(), mpsc::channel::<()>());
    let venue = Venue::start_with(&server, HOUR, move || {
        // Only the first time: the other end is gone then.
        if holds.send(()).is_ok() {
            let _ = goes.recv();
        }
    });
    venue.send("GetVenueState", json!({})).unwrap();
    held.recv_timeout(PATIENCE).unwrap();
    for number in 0..COMMANDS_WAITING_MAX {
        assert_eq!(venue.send("GetVenueState", json!({})), Ok(()), "{number}");
    }
    assert_eq!(venue.send("GetVenueState", json!({})), Err(Busy));
    drop((held, go));
    for _ in 0..=COMMANDS_WAITING_MAX {
        venue.until("VenueState");
    }
    assert_eq!(venue.send("GetVenueState", json!({})), Ok(()));
    venue.until("VenueState");
    venue.service.stop();
}

/// A venue with an open stream; its thread calls `before` before each broadcast, from the signal on.
fn streaming(
    mut before: impl FnMut() + Send + 'static,
) -> (Server, Venue, Stream, Arc<AtomicBool>) {
    let server = Server::usual();
    let is_on = Arc::new(AtomicBool::new(false));
    let is_wanted = Arc::clone(&is_on);
    let venue = Venue::start_with(&server, HOUR, move || {
        if is_wanted.load(Ordering::SeqCst) {
            before();
        }
    });
    venue.send("RequestVenueLogin", json!({})).unwrap();
    venue.until("VenueReady");
    venue.send("Subscribe", json!({ "ticker": "7203" })).unwrap();
    venue.until("Subscribed");
    venue.until_push("Streaming");
    let stream = server.streams.recv_timeout(PATIENCE).unwrap();
    (server, venue, stream, is_on)
}

/// The same with a thread that waits, during a broadcast, until the last value is dropped.
fn held() -> (Server, Venue, Stream, (mpsc::Receiver<()>, mpsc::Sender<()>)) {
    let ((holds, held), (go, goes)) = (mpsc::channel(), mpsc::channel::<()>());
    let (server, venue, stream, is_on) = streaming(move || {
        if holds.send(()).is_ok() {
            let _ = goes.recv();
        }
    });
    is_on.store(true, Ordering::SeqCst);
    venue.send("GetVenueState", json!({})).unwrap();
    held.recv_timeout(PATIENCE).unwrap();
    (server, venue, stream, (held, go))
}

/// A client with a full queue of commands delays no frames.
#[test]
fn frames_pass_a_queue_that_is_full_of_commands() {
    let (server, venue, mut stream, held) = held();
    for _ in 0..COMMANDS_WAITING_MAX {
        venue.send("GetVenueState", json!({})).unwrap();
    }
    push(&mut stream, board(100).to_string());
    // The frame waits too, and not on its way through the socket.
    sleep(Duration::from_millis(300));
    drop(held);
    let mut answered = 0;
    loop {
        match venue.next()["event"].as_str() {
            Some("VenueState") => answered += 1,
            Some("Market") => break,
            _ => {}
        }
    }
    assert!(answered < COMMANDS_WAITING_MAX / 2, "the frame came after {answered} answers");
    venue.service.stop();
    drop(server);
}

/// Frames that arrive while the thread is busy are all broadcast, however many are taken at once.
#[test]
fn no_frame_of_many_that_wait_is_lost() {
    let (server, venue, mut stream, held) = held();
    for number in 1..=1_000 {
        push(&mut stream, board(100 * number).to_string());
    }
    drop(held);
    for _ in 0..1_000 {
        venue.until("Market");
    }
    venue.service.stop();
    drop(server);
}

/// Market data of a frame wait a millisecond for the frames behind it, however many there are.
#[test]
fn market_data_goes_out_before_frames_that_take_their_time() {
    let (server, venue, mut stream, is_on) = streaming(|| sleep(Duration::from_millis(2)));
    is_on.store(true, Ordering::SeqCst);
    for number in 1..=20 {
        push(&mut stream, board(100 * number).to_string());
    }
    let reported: Vec<String> =
        (0..40).map(|_| venue.next()["event"].as_str().unwrap_or_default().to_owned()).collect();
    let expected = ["Market", "MarketPause"].repeat(20);
    assert_eq!(reported, expected);
    venue.service.stop();
    drop(server);
}

/// A gateway that stops to answer does not delay the end: without the limit the venue would wait for an hour.
#[test]
fn end_time_is_how_long_the_end_waits_for_the_gateway() {
    assert!(END_TIME < HOUR);
    for answers in [true, false] {
        let (asks, asked) = mpsc::channel();
        let (go, goes) = mpsc::channel::<()>();
        let shared = Arc::new(Mutex::new((asks, goes)));
        let server = Server::start(move |request, body| {
            if request == "PUT /unregister" {
                let (asks, goes) = &*shared.lock().unwrap();
                asks.send(body.to_owned()).unwrap();
                if !answers {
                    let _ = goes.recv();
                }
            }
            usual(request, body)
        });
        let venue = Venue::start_with(&server, HOUR, || {});
        venue.send("RequestVenueLogin", json!({})).unwrap();
        venue.until("VenueReady");
        venue.send("Subscribe", json!({ "ticker": "7203" })).unwrap();
        venue.until("Subscribed");
        venue.service.stop();
        assert_eq!(
            asked.recv_timeout(PATIENCE).unwrap(),
            r#"{"Symbols":[{"Symbol":"7203","Exchange":1}]}"#
        );
        drop(go);
    }
}
