//! Paths and headers.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, ORIGIN, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use axum::middleware::{self, Next};
use axum::routing::{get, post};

use super::compress::Encoding;
use super::failure::Failure;
use super::files::Files;
use super::graphql::{EncodedResponse, Endpoint};
use super::token::BearerToken;

/// The ranking page. It holds all that it needs; nothing is loaded from elsewhere.
const PAGE: &str = include_str!("page/ranking.html");
/// The page for trying queries, in development.
const GRAPHIQL: &str = include_str!("page/graphiql.html");
/// The pages may run what stands in them and talk to their own server, no more.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src \
                           'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";

/// What the handlers share.
pub(super) struct AppState {
    pub(super) endpoint: Endpoint,
    pub(super) token: Option<BearerToken>,
    pub(super) origins: Vec<String>,
    pub(super) graphiql: bool,
    /// The stored files; none are handed out without.
    pub(super) files: Option<Files>,
}

type Shared = State<Arc<AppState>>;

/// All paths of the service.
pub(super) fn router(state: Arc<AppState>) -> Router {
    let graphql = post(post_graphql).get(graphiql).options(|state: Shared| async move {
        preflight(&state, "POST", "authorization, content-type")
    });
    let files = || {
        let asked = "authorization, range, if-range, if-match, if-none-match, if-modified-since, \
                     if-unmodified-since";
        get(get_file).options(async move |state: Shared| preflight(&state, "GET, HEAD", asked))
    };
    Router::new()
        .route("/", get(|| async { page(PAGE) }))
        .route("/graphql", graphql)
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/jp", files())
        .route("/jp/", files())
        .route("/jp/{*path}", files())
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(Arc::clone(&state), common_headers))
        .with_state(state)
}

/// Headers of every answer.
async fn common_headers(State(state): Shared, request: Request, next: Next) -> Response<Body> {
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if state.origins.is_empty() {
        return response;
    }
    headers.append(VARY, HeaderValue::from_static("origin"));
    let allowed = origin.filter(|origin| {
        state.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes())
    });
    if let Some(origin) = allowed {
        headers.insert(HeaderName::from_static("access-control-allow-origin"), origin);
        let exposed = HeaderValue::from_static("etag, accept-ranges, content-range");
        headers.insert(HeaderName::from_static("access-control-expose-headers"), exposed);
    }
    response
}

async fn post_graphql(State(state): Shared, headers: HeaderMap, body: Body) -> Response<Body> {
    let refuse = |status, failure| json_response(status, state.endpoint.refuse(failure));
    if !is_authorized(&state, &headers) {
        let mut response = refuse(
            StatusCode::UNAUTHORIZED,
            Failure::new("UNAUTHORIZED", "send the header `Authorization: Bearer <token>`"),
        );
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    // A page of another site can only send other types without asking first.
    if !is_json(&headers) {
        let failure =
            Failure::new("MEDIA_TYPE", "send the header `Content-Type: application/json`");
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, failure);
    }
    let limits = &state.endpoint.context.limits;
    let reading = axum::body::to_bytes(body, limits.body_bytes);
    let bytes = match tokio::time::timeout(limits.receive_timeout, reading).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            let most = limits.body_bytes;
            let message = format!("the body is not whole, or has more than {most} bytes");
            return refuse(StatusCode::OK, Failure::new("BODY_TOO_LARGE", message));
        }
        Err(_) => {
            let seconds = limits.receive_timeout.as_secs_f64();
            let message = format!("the body did not arrive within {seconds} seconds");
            return refuse(StatusCode::OK, Failure::new("TIMEOUT", message));
        }
    };
    let accepted: Vec<&str> =
        headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).collect();
    let encoding = Encoding::choose(&accepted.join(","));
    json_response(StatusCode::OK, state.endpoint.respond(&bytes, encoding).await)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
        || kind.eq_ignore_ascii_case("application/graphql+json")
}

fn is_authorized(state: &AppState, headers: &HeaderMap) -> bool {
    let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    state.token.as_ref().is_none_or(|token| token.admits(header))
}

fn json_response(status: StatusCode, answer: EncodedResponse) -> Response<Body> {
    let mut response = text_response(status, "application/json", answer.bytes);
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(name) = answer.encoding.name() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    response
}

fn text_response(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn page(html: &'static str) -> Response<Body> {
    let mut response = text_response(StatusCode::OK, "text/html; charset=utf-8", html);
    let policy = HeaderValue::from_static(PAGE_POLICY);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

async fn graphiql(State(state): Shared) -> Response<Body> {
    if state.graphiql {
        return page(GRAPHIQL);
    }
    let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "send POST\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Tells a browser what a page of an allowed origin may send.
fn preflight(state: &AppState, methods: &'static str, asked: &'static str) -> Response<Body> {
    let mut response = text_response(StatusCode::NO_CONTENT, "text/plain", "");
    if !state.origins.is_empty() {
        for (name, value) in [
            ("access-control-allow-methods", methods),
            ("access-control-allow-headers", asked),
            ("access-control-max-age", "600"),
        ] {
            let name = HeaderName::from_static(name);
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

/// 200 while there is a snapshot to ask.
async fn health(State(state): Shared) -> Response<Body> {
    let snapshot = state.endpoint.context.backend.snapshot();
    let ready = snapshot.days > 0;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let state = if ready { "ok" } else { "no data" };
    let body = serde_json::json!({
        "status": state, "snapshot": snapshot.number, "days": snapshot.days, "codes": snapshot.codes,
    });
    text_response(status, "application/json", body.to_string())
}

async fn metrics(State(state): Shared, headers: HeaderMap) -> Response<Body> {
    if !is_authorized(&state, &headers) {
        return unauthorized();
    }
    let context = &state.endpoint.context;
    match context.metrics.text(&context.backend.snapshot()) {
        Ok(numbers) => {
            text_response(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", numbers)
        }
        Err(error) => {
            tracing::error!(cause = %error, "the metrics have no text");
            text_response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "no metrics\n")
        }
    }
}

/// A stored file. Who may not ask is not told what there is.
async fn get_file(State(state): Shared, request: Request) -> Response<Body> {
    if !is_authorized(&state, request.headers()) {
        return unauthorized();
    }
    match &state.files {
        Some(files) => {
            files.respond(request.method(), request.uri().path(), request.headers()).await
        }
        None => text_response(StatusCode::NOT_FOUND, "text/plain", "Not Found"),
    }
}

fn unauthorized() -> Response<Body> {
    let mut response =
        text_response(StatusCode::UNAUTHORIZED, "text/plain", "send the bearer token\n");
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

async fn not_found(method: Method) -> Response<Body> {
    let body =
        format!("there is nothing here for {method}; see /, /graphql, /jp/, /health, /metrics\n");
    text_response(StatusCode::NOT_FOUND, "text/plain", body)
}
