//! One GraphQL request, from its JSON to the bytes of its answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_graphql::parser::parse_query;
use async_graphql::{Pos, Request, Response, ServerError, Variables};
use domain::clock::Stopwatch;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body;
use super::compress::Encoding;
use super::failure::{self, Failure};
use super::metrics::Up;
use super::outline::{self, Outline};
use super::resolve::{Desk, InOrder};
use super::schema::{self, RankingSchema};

/// Answers requests.
pub(super) struct Endpoint {
    pub(super) desk: Arc<Desk>,
    schema: RankingSchema,
    /// One for each answer that may be worked on; handed out in the order asked for.
    turns: Arc<Semaphore>,
    /// One for each request that may wait or be worked on.
    places: Arc<Semaphore>,
}

/// An answer's body and how it is packed.
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) encoding: Encoding,
}

/// A request that was read and may run.
struct Prepared {
    request: Request,
    outline: Outline,
}

/// The JSON of a request. `extensions` and other members are ignored, as GraphQL over HTTP says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    query: String,
    #[serde(default)]
    operation_name: Option<String>,
    #[serde(default)]
    variables: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Endpoint {
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        let (answers, queue) = (desk.limits.concurrent_answers, desk.limits.queue);
        let cap = |count: usize| count.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            schema: schema::build(Arc::clone(&desk)),
            turns: Arc::new(Semaphore::new(cap(answers))),
            places: Arc::new(Semaphore::new(cap(answers.saturating_add(queue)))),
            desk,
        }
    }

    /// Answers one body. Who drops the future ends the query, waiting or running.
    pub(super) async fn answer(&self, sent: &[u8], encoding: Encoding) -> Answer {
        let watch = Stopwatch::start();
        let mut gone = Gone { desk: &self.desk, armed: true };
        let limit = self.desk.limits.request_time;
        let worked = tokio::time::timeout(limit, self.work(sent, encoding)).await;
        gone.armed = false;
        let (answer, outcome) = match worked {
            Ok(done) => done,
            Err(_) => {
                let late = Failure::new(
                    "TIMEOUT",
                    format!(
                        "no answer within {} seconds; ask for fewer days, or try again later",
                        limit.as_secs_f64()
                    ),
                );
                plain(late.into_response())
            }
        };
        self.desk.metrics.answered(&outcome, watch.elapsed());
        self.desk.metrics.bytes.fetch_add(answer.bytes.len() as u64, Ordering::Relaxed);
        answer
    }

    /// An answer for what could not even be read.
    pub(super) fn refuse(&self, failure: Failure) -> Answer {
        let (answer, outcome) = plain(failure.into_response());
        self.desk.metrics.answered(&outcome, std::time::Duration::ZERO);
        answer
    }

    async fn work(&self, sent: &[u8], encoding: Encoding) -> (Answer, String) {
        let Prepared { request, outline } = match self.prepare(sent) {
            Ok(prepared) => prepared,
            Err(refused) => return plain(*refused),
        };
        let turn = match self.turn(&outline).await {
            Ok(turn) => turn,
            Err(failure) => return plain(failure.into_response()),
        };
        let keys = outline.keys.clone();
        let mut response =
            self.schema.execute(request.data(outline).data(InOrder::default())).await;
        failure::finish(&mut response);
        let outcome = outcome(&response);
        let pack = move || {
            // The turn ends when the bytes are there: what waits holds no rows.
            let _turn = turn;
            let pieces = body::pieces(response, &keys)?;
            let size = pieces.iter().map(|piece| piece.len()).sum();
            let encoding = encoding.for_size(size);
            Ok(Answer { bytes: encoding.pack(&pieces)?, encoding })
        };
        let packed: Result<Result<Answer, Box<dyn std::error::Error + Send + Sync>>, _> =
            tokio::task::spawn_blocking(pack).await;
        let problem = match packed {
            Ok(Ok(answer)) => return (answer, outcome),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        (self.desk.log)(&format!("an answer could not be written: {problem}"));
        let failure = Failure::new("INTERNAL", "the answer could not be written");
        plain(failure.into_response())
    }

    /// Reads and looks at a request; nothing of it runs.
    fn prepare(&self, sent: &[u8]) -> Result<Prepared, Box<Response>> {
        let sent: Sent = serde_json::from_slice(sent).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            let message = format!(
                "the body is not a GraphQL request ({place}); send JSON like {{\"query\": \"{{ \
                 schemaVersion }}\"}}"
            );
            boxed(Failure::new("REQUEST_INVALID", message))
        })?;
        outline::check_nesting(&sent.query).map_err(boxed)?;
        let document = parse_query(&sent.query).map_err(|error| {
            let at: Vec<Pos> = error.positions().collect();
            let mut parse = ServerError::new(error.to_string(), None);
            parse.locations = at;
            let mut refused = Response::from_errors(vec![parse]);
            failure::finish(&mut refused);
            Box::new(refused)
        })?;
        let name = sent.operation_name.as_deref().filter(|name| !name.is_empty());
        let outline = outline::outline(&document, name, &self.desk.limits).map_err(boxed)?;
        let mut request = Request::new(sent.query.clone());
        if let Some(name) = name {
            request = request.operation_name(name);
        }
        if let Some(variables) = sent.variables {
            request = request.variables(Variables::from_json(variables.into()));
        }
        request.set_parsed_query(document);
        Ok(Prepared { request, outline })
    }

    /// Waits for a turn, where the request needs one.
    async fn turn(&self, outline: &Outline) -> Result<Option<Turn>, Failure> {
        if outline.rankings == 0 {
            return Ok(None);
        }
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let queue = self.desk.limits.queue;
            Failure::new("BUSY", format!("{queue} requests wait already; try again later"))
        })?;
        let _waiting = Up::new(&self.desk.metrics.waiting);
        let turn = Arc::clone(&self.turns)
            .acquire_owned()
            .await
            .map_err(|_| Failure::new("BUSY", "the service ends"))?;
        Ok(Some(Turn { _place: place, _turn: turn }))
    }
}

/// A failure as the whole answer; boxed, because answers are large and failures are rare.
fn boxed(failure: Failure) -> Box<Response> {
    Box::new(failure.into_response())
}

/// A request's right to be worked on.
struct Turn {
    _place: OwnedSemaphorePermit,
    _turn: OwnedSemaphorePermit,
}

/// Counts a client that went away: its future was dropped before it ended.
struct Gone<'a> {
    desk: &'a Desk,
    armed: bool,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.desk.metrics.gone.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn outcome(response: &Response) -> String {
    let code = response.errors.first().map(|error| {
        let code = error.extensions.as_ref().and_then(|values| values.get("code")).cloned();
        code.and_then(|code| code.into_json().ok())
    });
    match code {
        None => "OK".to_owned(),
        Some(code) => {
            code.as_ref().and_then(|code| code.as_str()).unwrap_or("GRAPHQL_INVALID").to_owned()
        }
    }
}

/// A small answer of an error, as it is.
fn plain(response: Response) -> (Answer, String) {
    let outcome = outcome(&response);
    let bytes = serde_json::to_vec(&response).unwrap_or_else(|_| {
        br#"{"data":null,"errors":[{"message":"failed","extensions":{"code":"INTERNAL"}}]}"#
            .to_vec()
    });
    (Answer { bytes, encoding: Encoding::Identity }, outcome)
}
