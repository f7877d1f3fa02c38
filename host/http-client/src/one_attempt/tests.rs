//! One attempt is one request, whatever the server does, and how far it came is told apart.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const TIME: Duration = Duration::from_secs(5);

fn client() -> OneAttempt {
    OneAttempt::new(true, TIME, Duration::from_secs(1)).unwrap()
}

fn address(port: u16) -> SecretString {
    SecretString::from(format!("http://127.0.0.1:{port}/secret-path?secret-query"))
}

/// A server that keeps its connections, and how many requests it has read. A connection takes one
/// request: a second one on it is counted a hundred times.
fn server(act: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, act) = (count.clone(), Arc::new(act));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (counted, act, mut socket) = (counted.clone(), act.clone(), socket.unwrap());
            std::thread::spawn(move || {
                let (mut head, mut byte, mut worth) = (Vec::new(), [0], 1);
                while socket.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        counted.fetch_add(worth, Ordering::SeqCst);
                        worth = 100;
                        act(&mut socket);
                        head.clear();
                    }
                }
            });
        }
    });
    (port, count)
}

#[tokio::test]
async fn one_attempt_is_one_request() {
    type Act = fn(&mut TcpStream);
    let hang_up: Act = |socket| socket.shutdown(Shutdown::Both).unwrap();
    let late: Act = |_| std::thread::sleep(Duration::from_secs(2));
    let half: Act = |socket| {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").unwrap();
        socket.shutdown(Shutdown::Both).unwrap();
    };
    let elsewhere: Act = |socket| {
        let head = b"HTTP/1.1 307 Go\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n";
        socket.write_all(head).unwrap();
    };
    let large: Act = |socket| {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n").unwrap();
        let _ = socket.write_all(&[b' '; 99]);
    };
    let acts = [
        ("hangs up", hang_up),
        ("late", late),
        ("half", half),
        ("307", elsewhere),
        ("large", large),
    ];
    for (what, act) in acts {
        let (port, count) = server(act);
        let error = client().get(&address(port), 20).await.unwrap_err();
        match what {
            "307" => assert_eq!(error, AttemptError::Status(307)),
            "large" => assert_eq!(error, AttemptError::TooLarge { limit: 20 }),
            "late" => assert!(matches!(error, AttemptError::MayBeSent(_)), "{error}"),
            _ => assert!(matches!(error, AttemptError::Broken(_)), "{what}: {error}"),
        }
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(count.load(Ordering::SeqCst), 1, "{what}");
    }
}

#[tokio::test]
async fn a_connection_that_was_kept_is_not_used_again() {
    let answers = AtomicUsize::new(0);
    let (port, count) = server(move |socket| {
        // The first answer leaves the connection open; no request after it is answered.
        if answers.fetch_add(1, Ordering::SeqCst) == 0 {
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        } else {
            socket.shutdown(Shutdown::Both).unwrap();
        }
    });
    let client = client();
    assert_eq!(client.get(&address(port), 20).await.unwrap(), b"ok");
    for requests in 2..5 {
        let error = client.get(&address(port), 20).await.unwrap_err();
        assert!(matches!(error, AttemptError::Broken(_)), "{error}");
        assert_eq!(count.load(Ordering::SeqCst), requests);
    }
}

#[tokio::test]
async fn what_was_not_sent_is_told_apart() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client = client();
    assert_eq!(client.get(&address(port), 20).await, Err(AttemptError::Refused));
    let none = SecretString::from("secret".to_owned());
    let error = client.get(&none, 20).await.unwrap_err();
    assert!(matches!(&error, AttemptError::NotSent(text) if !text.contains("secret")), "{error}");
    assert!(!format!("{client:?}").contains("secret"));
}
