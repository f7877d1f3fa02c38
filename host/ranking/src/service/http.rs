//! Paths and headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, HeaderName, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, ORIGIN, RANGE, RETRY_AFTER,
    VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::TraceLayer;
use tracing::Span;

use domain::clock::wall_now;

use super::context::milliseconds;
use super::failure::Failure;
use super::files::{AGAIN_SECONDS, Files, GENERATION};
use super::graphql::{Answer, Endpoint, ResponseForm};
use super::host_check::HostCheck;
use super::packing;
use super::page;
use super::request::{GraphqlRequest, ResponseType};
use super::response::{JSON, TEXT, plain};
use super::schema;
use super::token::BearerToken;
use crate::no_snapshot;
use crate::replica::ReplicaStatus;

/// The page for trying queries, in development.
const GRAPHIQL: &str = include_str!("page/graphiql.html");
/// That page may run what stands in it and talk to its own server, no more.
const GRAPHIQL_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src \
                           'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";

/// Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// For how long a browser may keep what it was told of origins.
const PREFLIGHT_AGE: Duration = Duration::from_secs(600);
/// Headers that pages of other origins may send when they load files.
const FILE_HEADERS: [HeaderName; 7] = [
    AUTHORIZATION,
    RANGE,
    IF_RANGE,
    IF_MATCH,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
    IF_UNMODIFIED_SINCE,
];

/// What the handlers share.
pub(super) struct AppState {
    pub(super) endpoint: Endpoint,
    pub(super) token: Option<BearerToken>,
    pub(super) origins: Vec<String>,
    pub(super) hosts: HostCheck,
    pub(super) graphiql: bool,
    /// What is known of the server that this one copies; none for one that copies nobody.
    pub(super) replica: Option<ReplicaStatus>,
    /// The stored files; none are handed out without.
    pub(super) files: Option<Files>,
    /// Business days that may be over after the last one before the service says that it is behind.
    pub(super) behind_days: usize,
}

type Shared = State<Arc<AppState>>;

/// All paths of the service.
pub(super) fn router(state: Arc<AppState>) -> Router {
    let no_content = || async { StatusCode::NO_CONTENT };
    let file = || get(get_file).options(no_content);
    let pages = Router::new()
        .route(
            "/",
            get(|State(state): Shared| async move { page::page(&state.endpoint.context.limits) }),
        )
        .route("/page/{name}", get(page_asset))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/schema.graphql", get(schema_text))
        .fallback(not_found);
    let graphql =
        Router::new().route("/graphql", post(post_graphql).get(get_graphql).options(no_content));
    let files =
        Router::new().route("/jp", file()).route("/jp/", file()).route("/jp/{*path}", file());
    let files = files.route("/rank/{*path}", file());
    let pages = with_cors(pages, &state, &[Method::GET, Method::HEAD], &[AUTHORIZATION]);
    let methods = [Method::GET, Method::POST];
    let graphql = with_cors(graphql, &state, &methods, &[AUTHORIZATION, CONTENT_TYPE]);
    let files = with_cors(files, &state, &[Method::GET, Method::HEAD], &FILE_HEADERS);
    pages
        .merge(graphql)
        .merge(files)
        .layer(packing::layer())
        .layer(middleware::map_response(weakened_tag))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), check_host))
        .layer(SetResponseHeaderLayer::if_not_present(
            CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        .layer(SetResponseHeaderLayer::overriding(
            X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(request_span)
                .on_request(())
                .on_response(log_access)
                .on_body_chunk(())
                .on_eos(())
                // Failures have events where they happen, with their cause.
                .on_failure(()),
        )
        .with_state(state)
}

/// A packed file is the same as the one on disk, but not byte for byte (RFC 9110, 8.8.1).
async fn weakened_tag(mut response: Response) -> Response {
    let headers = response.headers_mut();
    if headers.contains_key(CONTENT_ENCODING)
        && let Some(tag) = headers.get(ETAG)
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat())
    {
        headers.insert(ETAG, weak);
    }
    response
}

/// The access log: a line for each request, with what its spans say of it.
fn log_access(response: &Response, time: Duration, _: &Span) {
    let status = response.status().as_u16();
    // Microseconds are enough of it.
    let duration_ms = (milliseconds(time) * 1e3).round() / 1e3;
    let bytes = response.body().size_hint().exact();
    tracing::info!(target: "ranking::access", status, bytes, duration_ms, "answered");
}

/// Refuses who calls the service by a name that it does not have, by two, or in HTTP/1.1 by none (RFC 9112, 3.2).
async fn check_host(State(state): Shared, request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let must_have = request.version() == Version::HTTP_11 && request.uri().authority().is_none();
    if second.is_some() || (first.is_none() && must_have) {
        return plain(StatusCode::BAD_REQUEST, "send exactly one Host header\n");
    }
    if state.hosts.admits(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    let text = "this service does not have that name; call it by its address or as localhost, or allow the \
                name with --allow-host\n";
    plain(StatusCode::MISDIRECTED_REQUEST, text)
}

/// Lets pages of the named origins ask; without any, nothing is said about origins.
fn with_cors(
    router: Router<Arc<AppState>>,
    state: &AppState,
    methods: &[Method],
    headers: &[HeaderName],
) -> Router<Arc<AppState>> {
    if state.origins.is_empty() {
        return router;
    }
    let origins = state.origins.clone();
    let is_named = move |origin: &HeaderValue, _: &Parts| {
        origins.iter().any(|named| named.as_bytes() == origin.as_bytes())
    };
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_named))
        .allow_methods(methods.to_vec())
        .allow_headers(headers.to_vec())
        .expose_headers([ETAG, ACCEPT_RANGES, CONTENT_RANGE, GENERATION])
        .max_age(PREFLIGHT_AGE)
        .vary([ORIGIN]);
    // Not where there is nothing: a path that is not there has no methods to allow.
    router.route_layer(cors)
}

/// The span of a request. It names the route and not the path: that is a text of the client.
fn request_span(request: &Request) -> Span {
    static REQUESTS: AtomicU64 = AtomicU64::new(1);
    let id = REQUESTS.fetch_add(1, Ordering::Relaxed);
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    tracing::info_span!("request", id, method = method_name(request.method()), route)
}

/// A method that HTTP names itself; any other is a text of the client, and may be a long one.
fn method_name(method: &Method) -> &str {
    const NAMED: [Method; 9] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::CONNECT,
        Method::OPTIONS,
        Method::TRACE,
        Method::PATCH,
    ];
    if NAMED.contains(method) { method.as_str() } else { "another method" }
}

/// How the answer to these headers is wanted.
fn form(headers: &HeaderMap) -> ResponseForm {
    let response_type = ResponseType::accepted(headers);
    let codings = headers.get_all(ACCEPT_ENCODING).iter().cloned().collect();
    ResponseForm { response_type, codings }
}

async fn post_graphql(State(state): Shared, headers: HeaderMap, body: Body) -> Response {
    let form = form(&headers);
    let response_type = form.response_type;
    let refuse = |failure| graphql_response(state.endpoint.refuse(failure, response_type));
    if !is_authorized(&state, &headers) {
        return unauthorized_graphql(&state, response_type);
    }
    // A page of another site can only send other types without asking first.
    if !is_json(&headers) {
        let message = "send the header `Content-Type: application/json`";
        return refuse(Failure::new("MEDIA_TYPE", message));
    }
    let limits = &state.endpoint.context.limits;
    let reading = axum::body::to_bytes(body, limits.body_bytes);
    let bytes = match tokio::time::timeout(limits.receive_timeout, reading).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            let most = limits.body_bytes;
            let message = format!("the body is incomplete or has more than {most} bytes");
            return refuse(Failure::new("BODY_TOO_LARGE", message));
        }
        Err(_) => {
            let seconds = limits.receive_timeout.as_secs_f64();
            let message = format!("the body did not arrive within {seconds} seconds");
            return refuse(Failure::new("TIMEOUT", message));
        }
    };
    match GraphqlRequest::from_body(&bytes) {
        Ok(request) => graphql_response(state.endpoint.respond(request, form).await),
        Err(failure) => refuse(failure),
    }
}

/// A query in a URL, or the page for trying queries.
async fn get_graphql(State(state): Shared, headers: HeaderMap, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    if query.is_empty() && state.graphiql {
        let kind = (CONTENT_TYPE, "text/html; charset=utf-8");
        return ([kind, (CONTENT_SECURITY_POLICY, GRAPHIQL_POLICY)], GRAPHIQL).into_response();
    }
    let form = form(&headers);
    if !is_authorized(&state, &headers) {
        return unauthorized_graphql(&state, form.response_type);
    }
    let request = if is_foreign(&state, &headers) {
        let message =
            "a page of another site must send POST, and --allow-origin must name its origin";
        Err(Failure::new("FORBIDDEN", message))
    } else {
        GraphqlRequest::from_url(query)
    };
    match request {
        Ok(request) => graphql_response(state.endpoint.respond(request, form).await),
        Err(failure) => graphql_response(state.endpoint.refuse(failure, form.response_type)),
    }
}

/// Whether a page of another site sent this, by its browser's own words, and its origin is not named.
/// A GET needs no leave of ours, so an image there would be enough to make work here.
fn is_foreign(state: &AppState, headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    let is_named = state.origins.iter().any(|named| origin == Some(named.as_bytes()));
    matches!(site, Some(b"cross-site" | b"same-site")) && !is_named
}

fn unauthorized_graphql(state: &AppState, response_type: ResponseType) -> Response {
    let failure = Failure::new("UNAUTHORIZED", "send the header `Authorization: Bearer <token>`");
    let refused = graphql_response(state.endpoint.refuse(failure, response_type));
    ([(WWW_AUTHENTICATE, "Bearer")], refused).into_response()
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

fn graphql_response(answer: Answer) -> Response {
    let status = answer.status;
    let headers = [(CONTENT_TYPE, answer.response_type.name()), (VARY, "accept, accept-encoding")];
    let allow = (status == StatusCode::METHOD_NOT_ALLOWED).then_some([(ALLOW, "POST")]);
    let generation = answer.generation.map(|name| [(GENERATION, name)]);
    let coding = answer.coding.map(|coding| [(CONTENT_ENCODING, coding)]);
    (status, headers, coding, allow, retry_after(status), generation, answer.body).into_response()
}

/// A file that the ranking page loads.
async fn page_asset(Path(name): Path<String>, method: Method) -> Response {
    match page::asset(&name) {
        Some(asset) => asset,
        None => not_found(method).await,
    }
}

/// 200 while there is a snapshot to ask. Its status tells the first that holds:
///
/// | status | when |
/// |---|---|
/// | `refused` | what is published cannot be used (`refused` says why); an older snapshot is, if `days` > 0 |
/// | `no data` | nothing was published yet |
/// | `damaged` | files of a replica's copy are gone or damaged (`replica.damaged`) |
/// | `refused` | or a replica has tried its primary's generation and thrown it away (`replica.refused_generation`, `replica.last_error`) |
/// | `stale` | a replica could not copy for long (`replica.failing_since`, `replica.last_error`) |
/// | `lost` | what the update job has told of the data is gone or cannot be read (`message` says why); what was read last is shown |
/// | `unknown` | the update job has told nothing of the data that are served, only of others: it was ended in between, or another program has published since |
/// | `gap` | a business day is missing in the data |
/// | `incomplete` | a day that was due is not complete (`incomplete` says which) |
/// | `behind` | more business days are over after the last one than the service was told to expect (`days_behind`), so no update has run |
/// | `doubts` | published days or answers need a look (`doubts` says which) |
/// | `ok` | none of these |
async fn health(State(state): Shared) -> Response {
    let snapshot = state.endpoint.context.backend.snapshot();
    let ready = snapshot.days > 0;
    let dataset = state.endpoint.context.backend.dataset();
    let has_gap = dataset.as_ref().is_some_and(|dataset| !dataset.gaps.is_empty());
    let is_short = dataset.as_ref().is_some_and(|dataset| !dataset.incomplete.is_empty());
    let has_doubts = dataset.as_ref().is_some_and(|dataset| !dataset.doubts.is_empty());
    // Of what no update job has made, nobody knows what should follow.
    let days_behind = dataset
        .as_ref()
        .filter(|_| ready)
        .map(|dataset| dataset.days_behind(snapshot.last, wall_now().jst_date()));
    let is_behind = days_behind.is_some_and(|days| days > state.behind_days);
    let (trouble, replica) = state.replica.as_ref().map(ReplicaStatus::health).unzip();
    let trouble = trouble.flatten();
    let lost = state.endpoint.context.backend.lost_dataset();
    let is_unknown = dataset.is_none() && state.endpoint.context.backend.is_dataset_of_another();
    let word = match (&snapshot.refused, ready, &trouble, has_gap) {
        (Some(_), ..) => "refused",
        (None, false, ..) => "no data",
        (None, true, Some(trouble), _) => trouble.status,
        (None, true, None, _) if lost.is_some() => "lost",
        (None, true, None, _) if is_unknown => "unknown",
        (None, true, None, true) => "gap",
        (None, true, None, false) if is_short => "incomplete",
        (None, true, None, false) if is_behind => "behind",
        (None, true, None, false) if has_doubts => "doubts",
        (None, true, None, false) => "ok",
    };
    let incomplete = dataset.as_ref().map(|dataset| &dataset.incomplete);
    let generation = state.endpoint.context.backend.generation();
    let mut told = serde_json::json!({
        "status": word,
        "generation": generation,
        "snapshot": snapshot.number,
        "days": snapshot.days,
        "codes": snapshot.codes,
        "refused": snapshot.refused,
        "snapshot_last_date": ready.then(|| snapshot.last.to_string()),
        "days_behind": days_behind,
        "incomplete": incomplete,
        "gaps": dataset.as_ref().map(|dataset| &dataset.gaps),
        "doubts": dataset.as_ref().map(|dataset| &dataset.doubts),
    });
    if !ready {
        let why = no_snapshot(snapshot.refused.as_deref(), replica.is_some());
        told["message"] = why.to_string().into();
    } else if let Some(trouble) = trouble {
        told["message"] = trouble.message.into();
    } else if let Some(lost) = lost {
        told["message"] = format!(
            "the update job's status of these data cannot be read: {lost}; the last status is shown"
        )
        .into();
    } else if is_unknown {
        let text = "the update job's status belongs to other data than the served ones; its next run says how \
                    complete these are";
        told["message"] = text.into();
    }
    if let Some(replica) = replica {
        told["replica"] = replica;
    }
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let generation = generation.map(|name| [(GENERATION, name)]);
    let headers = [(CONTENT_TYPE, JSON)];
    (status, retry_after(status), headers, generation, told.to_string()).into_response()
}

/// When to ask again where there is nothing yet.
fn retry_after(status: StatusCode) -> Option<[(HeaderName, &'static str); 1]> {
    (status == StatusCode::SERVICE_UNAVAILABLE).then_some([(RETRY_AFTER, AGAIN_SECONDS)])
}

/// The schema with the limits of this service.
async fn schema_text(State(state): Shared, headers: HeaderMap) -> Response {
    if !is_authorized(&state, &headers) {
        return unauthorized();
    }
    let text = schema::sdl(&state.endpoint.context.limits);
    ([(CONTENT_TYPE, "application/graphql; charset=utf-8")], text).into_response()
}

async fn metrics(State(state): Shared, headers: HeaderMap) -> Response {
    if !is_authorized(&state, &headers) {
        return unauthorized();
    }
    let context = &state.endpoint.context;
    let replica = state.replica.as_ref();
    let dataset = context.backend.dataset();
    context.metrics.answer_bytes.set(context.memory.held().cast_signed());
    match context.metrics.text(&context.backend.snapshot(), dataset.as_ref(), replica) {
        Ok(numbers) => ([(CONTENT_TYPE, METRICS)], numbers).into_response(),
        Err(error) => {
            tracing::error!(cause = %error, "the metrics have no text");
            plain(StatusCode::INTERNAL_SERVER_ERROR, "no metrics\n")
        }
    }
}

/// A stored file. Who may not ask is not told what there is.
async fn get_file(State(state): Shared, request: Request) -> Response {
    if !is_authorized(&state, request.headers()) {
        return unauthorized();
    }
    match &state.files {
        Some(files) => {
            files.respond(request.method(), request.uri().path(), request.headers()).await
        }
        None => plain(StatusCode::NOT_FOUND, "Not Found"),
    }
}

fn unauthorized() -> Response {
    let headers = [(CONTENT_TYPE, TEXT), (WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, headers, "send the bearer token\n").into_response()
}

async fn not_found(method: Method) -> Response {
    let method = method_name(&method);
    let body = format!(
        "there is nothing here for {method}; see /, /graphql, /schema.graphql, /jp/, /health, \
         /metrics\n"
    );
    plain(StatusCode::NOT_FOUND, body)
}
