//! The server on 127.0.0.1: which requests it answers, and what a browser may do with the answers.
//!
//! | request | answer |
//! |---|---|
//! | GET / and /assets/NAME, /shared/NAME | the page's files |
//! | POST /session `{"code"}` | a session's id and key, the IPC port, the mode, the scope |
//! | GET /report/CODE | a run's report, once, in a sandbox |
//!
//! A request for another host is no request for us (421): a page elsewhere may have its own name point here. A POST
//! comes from our own page only (403).

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::files::{self, PAGE};
use crate::sessions::{NoSession, Scope, SessionKey, Sessions};

/// Connections at the same time. With more the oldest goes: each has one request, which it has not finished.
const CONNECTIONS_MAX: usize = 32;
/// How long a connection may take in all.
const CONNECTION_TIME: Duration = Duration::from_secs(10);
/// Bytes of a request's headers.
const HEADER_BYTES_MAX: usize = 8 << 10;
/// Bytes of the body of a POST: a code has 64.
const BODY_BYTES_MAX: usize = 1 << 10;
/// Pause after the system refuses a connection, until there is room again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// A report runs its scripts, and reaches nothing of ours.
const REPORT_POLICY: &str = "sandbox allow-scripts; frame-ancestors 'none'";

/// What a page is told of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The port of the engine's WebSocket.
    pub ipc_port: u16,
    /// `live` or `replay`.
    pub mode: &'static str,
}

/// A console that listens.
#[derive(Debug, Clone)]
pub struct Console(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    sessions: Arc<Sessions>,
    place: Place,
    /// `127.0.0.1:PORT`, and the same as an origin.
    host: String,
    origin: String,
    policy: HeaderValue,
}

impl Console {
    /// Listens on a port of 127.0.0.1; 0 takes any. It answers once [`Self::serve`] runs.
    ///
    /// # Errors
    /// The port cannot be had.
    pub fn bind(
        port: u16,
        place: Place,
        sessions: Arc<Sessions>,
    ) -> io::Result<(Self, std::net::TcpListener)> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let host = format!("127.0.0.1:{}", listener.local_addr()?.port());
        let policy = format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' \
             ws://127.0.0.1:{}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'",
            place.ipc_port
        );
        let policy = HeaderValue::try_from(policy).map_err(io::Error::other)?;
        let origin = format!("http://{host}");
        Ok((Self(Arc::new(Shared { sessions, place, host, origin, policy })), listener))
    }

    /// The page's origin, like `http://127.0.0.1:19875`.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.0.origin
    }

    /// An address that opens a page, once. What opens it stands in the fragment, which no server and no referrer gets.
    #[must_use]
    pub fn page_url(&self, scope: Scope) -> String {
        format!("{}/#{}", self.0.origin, self.0.sessions.code(scope))
    }

    /// An address that shows a report, once.
    #[must_use]
    pub fn report_url(&self, file: std::path::PathBuf) -> String {
        format!("{}/report/{}", self.0.origin, self.0.sessions.report(file))
    }

    /// Answers until the end.
    pub async fn serve(self, listener: std::net::TcpListener, end: CancellationToken) {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "the console cannot listen"),
        };
        let router = router(Arc::clone(&self.0));
        let open = Arc::new(Mutex::new(BTreeMap::new()));
        let mut number = 0_u64;
        loop {
            let accepted = tokio::select! {
                () = end.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            number += 1;
            let goes = end.child_token();
            {
                let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                if open.len() >= CONNECTIONS_MAX
                    && let Some((_, oldest)) = open.pop_first()
                {
                    CancellationToken::cancel(&oldest);
                }
                open.insert(number, goes.clone());
            }
            let (router, open) = (router.clone(), Arc::clone(&open));
            tokio::spawn(async move {
                tokio::select! {
                    () = goes.cancelled() => {}
                    () = connection(stream, router) => {}
                }
                open.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
            });
        }
    }
}

/// One request.
async fn connection(stream: TcpStream, router: Router) {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIME)
        .max_buf_size(HEADER_BYTES_MAX)
        .keep_alive(false);
    let service = TowerToHyperService::new(router);
    let served = protocol.serve_connection(TokioIo::new(stream), service);
    // Who breaks off, or takes too long, has no answer.
    let _ = timeout(CONNECTION_TIME, served).await;
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(|| async { file(PAGE) }))
        .route("/assets/{name}", get(|Path(name): Path<String>| async move { file(&name) }))
        .route("/shared/{name}", get(|Path(name): Path<String>| async move { shared_file(&name) }))
        .route("/session", post(session))
        .route("/report/{code}", get(report))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// Refuses who is not ours, and says what a browser may do with an answer.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let refused = refusal(&shared, request.method() == "POST", request.headers());
    let mut response = match refused {
        Some(refused) => refused.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CONTENT_SECURITY_POLICY).or_insert_with(|| shared.policy.clone());
    response
}

/// Why a request gets no answer.
fn refusal(
    shared: &Shared,
    is_post: bool,
    headers: &HeaderMap,
) -> Option<(StatusCode, &'static str)> {
    let is = |name: &HeaderName, value: &str| {
        let mut all = headers.get_all(name).iter();
        all.next().is_some_and(|first| first.as_bytes() == value.as_bytes()) && all.next().is_none()
    };
    if !is(&HOST, &shared.host) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "this server has another name\n"));
    }
    let is_json =
        headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
            value.split(';').next().is_some_and(|kind| kind.trim() == "application/json")
        });
    let is_own = is(&ORIGIN, &shared.origin)
        && is(&HeaderName::from_static("sec-fetch-site"), "same-origin")
        && is_json;
    (is_post && !is_own)
        .then_some((StatusCode::FORBIDDEN, "only the console's own page may ask this\n"))
}

fn with_kind(kind: &'static str, text: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, kind)], text.into()).into_response()
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "there is no such page\n").into_response()
}

fn file(name: &str) -> Response {
    files::find(name).map_or_else(not_found, |(kind, text)| with_kind(kind, text))
}

fn shared_file(name: &str) -> Response {
    files::find_shared(name).map_or_else(not_found, |(kind, text)| with_kind(kind, text))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeBody {
    code: String,
}

#[derive(Serialize)]
struct SessionBody {
    session_id: String,
    key: String,
    port: u16,
    mode: &'static str,
    scope: Scope,
}

async fn session(State(shared): State<Arc<Shared>>, body: Body) -> Response {
    let wrong = |status, text: &'static str| (status, text).into_response();
    let Ok(body) = axum::body::to_bytes(body, BODY_BYTES_MAX).await else {
        return wrong(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long\n");
    };
    let Ok(CodeBody { code }) = read(&body) else {
        return wrong(StatusCode::BAD_REQUEST, "the body must be {\"code\": \"...\"}\n");
    };
    match shared.sessions.begin(&code) {
        Ok(SessionKey { session_id, key, scope }) => {
            let Place { ipc_port: port, mode } = shared.place;
            let key = key.expose().to_owned();
            let body = SessionBody { session_id, key, port, mode, scope };
            // An object of texts and numbers can always be written.
            with_kind("application/json", serde_json::to_string(&body).unwrap_or_default())
        }
        Err(NoSession::WrongCode) => wrong(
            StatusCode::UNAUTHORIZED,
            "the code is wrong, was used, or is older than 60 s; open the console again\n",
        ),
        Err(NoSession::TooMany) => {
            wrong(StatusCode::TOO_MANY_REQUESTS, "8 pages are open; sign one out\n")
        }
    }
}

fn read(body: &Bytes) -> serde_json::Result<CodeBody> {
    serde_json::from_slice(body)
}

async fn report(State(shared): State<Arc<Shared>>, Path(code): Path<String>) -> Response {
    let Some(path) = shared.sessions.take_report(&code) else { return not_found() };
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
    match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(bytes) => {
            let mut response = with_kind("text/html; charset=utf-8", bytes);
            let policy = HeaderValue::from_static(REPORT_POLICY);
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
            response
        }
        Err(error) => {
            tracing::warn!(%error, "a report cannot be read");
            not_found()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use tower::ServiceExt;

    use super::*;

    const HOST_NAME: &str = "127.0.0.1:19875";

    fn console() -> (Console, Router) {
        let shared = Shared {
            sessions: Arc::default(),
            place: Place { ipc_port: 19876, mode: "replay" },
            host: HOST_NAME.to_owned(),
            origin: format!("http://{HOST_NAME}"),
            policy: HeaderValue::from_static("default-src 'none'"),
        };
        let shared = Arc::new(shared);
        (Console(Arc::clone(&shared)), router(shared))
    }

    /// A request with these headers: its status, and its headers.
    fn ask(
        router: &Router,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(router.clone().oneshot(request)).unwrap()
    }

    const OWN: [(&str, &str); 4] = [
        ("host", HOST_NAME),
        ("origin", "http://127.0.0.1:19875"),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/json"),
    ];

    #[test]
    fn a_request_for_another_name_is_no_request_for_us() {
        let (_, router) = console();
        for host in ["localhost:19875", "evil.example:19875", "127.0.0.1", "127.0.0.1:19876"] {
            let response = ask(&router, Method::GET, "/", &[("host", host)], "");
            assert_eq!(response.status(), StatusCode::MISDIRECTED_REQUEST, "{host}");
        }
        let twice = [("host", HOST_NAME), ("host", "evil.example")];
        assert_eq!(
            ask(&router, Method::GET, "/", &twice, "").status(),
            StatusCode::MISDIRECTED_REQUEST
        );
        let response = ask(&router, Method::GET, "/", &[("host", HOST_NAME)], "");
        assert_eq!(response.status(), StatusCode::OK);
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("content-security-policy", "default-src 'none'"),
        ] {
            assert_eq!(response.headers()[name], value, "{name}");
        }
    }

    #[test]
    fn c2_only_the_own_page_begins_a_session_and_a_refused_request_uses_no_code_up() {
        let (console, router) = console();
        let url = console.page_url(Scope::Full);
        let code = url.split_once('#').unwrap().1;
        let body = format!(r#"{{"code":"{code}"}}"#);
        for (name, value) in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("content-type", "text/plain"),
        ] {
            let headers = OWN.map(|header| if header.0 == name { (name, value) } else { header });
            let response = ask(&router, Method::POST, "/session", &headers, &body);
            assert_eq!(response.status(), StatusCode::FORBIDDEN, "{name} {value}");
            let without: Vec<_> = OWN.into_iter().filter(|header| header.0 != name).collect();
            let response = ask(&router, Method::POST, "/session", &without, &body);
            assert_eq!(response.status(), StatusCode::FORBIDDEN, "without {name}");
        }
        let guessed = r#"{"code":"0000"}"#;
        let response = ask(&router, Method::POST, "/session", &OWN, guessed);
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        let long = format!(r#"{{"code":"{}"}}"#, "0".repeat(BODY_BYTES_MAX));
        let response = ask(&router, Method::POST, "/session", &OWN, &long);
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let response = ask(&router, Method::POST, "/session", &OWN, &body);
        assert_eq!(response.status(), StatusCode::OK);
        let response = ask(&router, Method::POST, "/session", &OWN, &body);
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "once");
    }

    #[test]
    fn a_report_is_shown_once_and_in_a_sandbox() {
        let (console, router) = console();
        let file = std::env::current_exe().unwrap();
        let url = console.report_url(file);
        let path = url.strip_prefix(console.origin()).unwrap();
        let response = ask(&router, Method::GET, path, &OWN, "");
        assert_eq!(response.headers()["content-security-policy"], REPORT_POLICY);
        let response = ask(&router, Method::GET, path, &OWN, "");
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
    }
}
