//! One connection, whose frames are not taken for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::SinkExt as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::local_broker::config::LocalBrokerConfig;
use crate::local_broker::limits::FRAMES_WAITING_MAX;

const TIME: Duration = Duration::from_secs(60);

/// If the queue is full the stream waits, and nothing is lost. A test of the whole venue cannot stop only the
/// thread that empties the queue, because the stream is on the same one.
#[tokio::test]
async fn frames_waiting_max_is_how_many_frames_wait_and_then_the_stream_does() {
    // More than the queue and the sockets' buffers take together.
    const FRAMES: usize = 40_000;
    const FRAME_BYTES: usize = 1_000;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let server = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = tokio_tungstenite::accept_async(socket).await.unwrap();
        for number in 0..FRAMES {
            stream.send(Message::text(format!("{number:FRAME_BYTES$}"))).await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
        }
        stream.close(None).await.unwrap();
    });
    let config = LocalBrokerConfig {
        base_url: Some(format!("http://127.0.0.1:{port}")),
        ..LocalBrokerConfig::default()
    };
    let (sender, mut frames) = queue();
    let (_pings, wishes) = mpsc::channel(1);
    let endpoint = Endpoint::of(&config).unwrap();
    let following = tokio::spawn(follow(endpoint, "/push".to_owned(), 7, TIME, sender, wishes));
    while frames.len() < FRAMES_WAITING_MAX {
        tokio::task::yield_now().await;
    }
    // As often as the others get their turn.
    for _ in 0..FRAMES {
        tokio::task::yield_now().await;
    }
    assert_eq!(frames.len(), FRAMES_WAITING_MAX);
    assert!(sent.load(Ordering::SeqCst) < FRAMES);
    assert!(matches!(frames.recv().await, Some((7, Pushed::Opened))));
    for number in 0..FRAMES {
        let Some((7, Pushed::Frame(frame))) = frames.recv().await else { panic!("no {number}") };
        assert_eq!(frame, format!("{number:FRAME_BYTES$}"));
    }
    let Some((7, Pushed::Closed(why))) = frames.recv().await else { panic!("it goes on") };
    assert_eq!(why, "the gateway ended the stream");
    following.await.unwrap();
    server.await.unwrap();
}
