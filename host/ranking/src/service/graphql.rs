//! One GraphQL request, from its JSON to the bytes of its answer.

use std::sync::Arc;

use async_graphql::indexmap::IndexMap;
use async_graphql::parser::parse_query;
use async_graphql::parser::types::OperationType;
use async_graphql::{Request, Response, Value, Variables};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use domain::clock::Stopwatch;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::analysis::{self, RequestAnalysis};
use super::body::{self, WrittenRows};
use super::context::{QueryContext, RequestData, milliseconds, spawn_blocking};
use super::failure::{self, Failure};
use super::memory::Reservation;
use super::metrics::GaugeGuard;
use super::packing::packed;
use super::request::{GraphqlRequest, ResponseType, with_whole_numbers};
use super::schema::{self, RankingSchema};
use super::stated;
use crate::error::Cause;
use crate::text::redacted;

/// Answers GraphQL requests, so many at a time as the limits allow.
pub(super) struct Endpoint {
    pub(super) context: Arc<QueryContext>,
    schema: RankingSchema,
    /// A permit for each large answer that may be worked on; acquired in the order asked for.
    execution_permits: Arc<Semaphore>,
    /// A permit for each request that may wait or be worked on.
    admission_permits: Arc<Semaphore>,
}

/// An answer as it is sent.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) response_type: ResponseType,
    /// Holds its memory until it is gone; the small answer of an error holds none.
    pub(super) body: Body,
    /// How the body is packed, where it is.
    pub(super) coding: Option<HeaderValue>,
    /// The generation that it was made from, where it was made from one.
    pub(super) generation: Option<String>,
    bytes: usize,
}

/// How an answer is wanted.
#[derive(Debug, Clone)]
pub(super) struct ResponseForm {
    pub(super) response_type: ResponseType,
    /// The values of Accept-Encoding.
    pub(super) codings: Vec<HeaderValue>,
}

impl Endpoint {
    pub(super) fn new(context: Arc<QueryContext>) -> Self {
        let (answers, queue) = (context.limits.concurrent_answers, context.limits.queue);
        let cap = |count: usize| count.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            schema: schema::build(Arc::clone(&context)),
            execution_permits: Arc::new(Semaphore::new(cap(answers))),
            admission_permits: Arc::new(Semaphore::new(cap(answers.saturating_add(queue)))),
            context,
        }
    }

    /// Answers one request. Who drops the future ends the query, waiting or running.
    pub(super) async fn respond(&self, sent: GraphqlRequest, form: ResponseForm) -> Answer {
        let (watch, response_type) = (Stopwatch::start(), form.response_type);
        let mut gone = DisconnectGuard { context: &self.context, armed: true };
        let limit = self.context.limits.request_timeout;
        let executed = tokio::time::timeout(limit, self.execute(sent, form)).await;
        gone.armed = false;
        let (answer, outcome) = match executed {
            Ok(done) => done,
            Err(_) => {
                let late = Failure::new(
                    "TIMEOUT",
                    format!(
                        "no answer within {} seconds; ask for fewer days, or try again later",
                        limit.as_secs_f64()
                    ),
                );
                plain(late.into_response(), response_type)
            }
        };
        let (time, bytes) = (watch.elapsed(), answer.bytes);
        let duration_ms = milliseconds(time);
        tracing::debug!(code = outcome, bytes, duration_ms, "a GraphQL request was answered");
        self.context.metrics.answered(&outcome, time);
        self.context.metrics.bytes.inc_by(bytes as u64);
        answer
    }

    /// An answer for what could not even be read.
    pub(super) fn refuse(&self, failure: Failure, response_type: ResponseType) -> Answer {
        let (answer, outcome) = plain(failure.into_response(), response_type);
        self.context.metrics.answered(&outcome, std::time::Duration::ZERO);
        answer
    }

    async fn execute(&self, sent: GraphqlRequest, form: ResponseForm) -> (Answer, String) {
        let response_type = form.response_type;
        let refuse = |failure: Failure| plain(failure.into_response(), response_type);
        let data = RequestData(Arc::clone(&self.context.backend).pinned());
        let generation = data.0.generation();
        let (request, analysis) = match self.prepare(sent, &data) {
            Ok(prepared) => prepared,
            Err(refused) => return plain(*refused, response_type),
        };
        let (permits, memory) = match self.acquire(&analysis).await {
            Ok(acquired) => acquired,
            Err(failure) => return refuse(failure),
        };
        let written = Arc::new(WrittenRows::default());
        let request = request.data(data).data(Arc::clone(&written)).data(Arc::clone(&memory));
        let mut response = self.schema.execute(request).await;
        failure::finish(&mut response);
        if !response.errors.is_empty() {
            return plain(response, response_type);
        }
        let mut data = match response.data {
            Value::Object(data) => data,
            // Where every field is left out by a directive, the answer is an object without fields.
            _ => IndexMap::new(),
        };
        for key in &analysis.introspection {
            if let Some(value) = data.get_mut(key) {
                stated::state(value, &self.context.limits);
            }
        }
        let context = Arc::clone(&self.context);
        let encode = move || -> Result<Option<Answer>, Cause> {
            // Released when the bytes are there: what waits for its client holds no thread.
            let _permits = permits;
            let blocks = body::blocks(&data, &analysis.keys, &written)?;
            let (mut blocks, coding) = packed(blocks, form.codings)?;
            // A small answer may have been given less than a block.
            blocks.close_short();
            if !memory.resize(blocks.held() as u64) {
                return Ok(None);
            }
            let (status, bytes) = (StatusCode::OK, blocks.len());
            let body = context.memory.body(blocks.finish(), memory);
            Ok(Some(Answer { status, response_type, body, coding, generation, bytes }))
        };
        let problem = match spawn_blocking(encode).await {
            Ok(Ok(Some(answer))) => return (answer, "OK".to_owned()),
            Ok(Ok(None)) => {
                let message = "there is no memory left for the answer; try again later";
                return refuse(Failure::new("BUSY", message));
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(cause = redacted(&problem), "an answer could not be written");
        refuse(Failure::new("INTERNAL", "the answer could not be written"))
    }

    /// Parses and analyzes a request; nothing of it runs.
    fn prepare(
        &self,
        sent: GraphqlRequest,
        data: &RequestData,
    ) -> Result<(Request, RequestAnalysis), Box<Response>> {
        analysis::check_brackets(&sent.query).map_err(boxed)?;
        let document = parse_query(&sent.query).map_err(|error| {
            let mut refused = Response::from_errors(vec![error.into()]);
            failure::finish(&mut refused);
            Box::new(refused)
        })?;
        let name = sent.operation_name.as_deref().filter(|name| !name.is_empty());
        let operations = analysis::operations(&document, name);
        if sent.is_get && operations.iter().any(|one| one.ty != OperationType::Query) {
            return Err(boxed(Failure::new("METHOD", "GET is for queries; send POST")));
        }
        let variables =
            Variables::from_json(with_whole_numbers(sent.variables.unwrap_or_default()));
        if let [operation] = operations[..] {
            analysis::check_variables(operation, &variables).map_err(boxed)?;
        }
        let limits = &self.context.limits;
        let analysis = analysis::analyze(&document, name, &variables, &*data.0, limits);
        let analysis = analysis.map_err(boxed)?;
        let mut request = Request::new(sent.query.clone()).variables(variables);
        if let Some(name) = name {
            request = request.operation_name(name);
        }
        request.set_parsed_query(document);
        Ok((request, analysis))
    }

    /// Waits for the permits that reading data needs, then for the memory of the answer. Large answers wait in
    /// their order, and of them only those that may be worked on wait for memory, so none is passed for long.
    async fn acquire(
        &self,
        analysis: &RequestAnalysis,
    ) -> Result<(Vec<OwnedSemaphorePermit>, Arc<Reservation>), Failure> {
        let (memory, reads) = (&self.context.memory, analysis.reads_prices());
        let mut permits = Vec::new();
        if reads {
            let admission = Arc::clone(&self.admission_permits).try_acquire_owned();
            permits.push(admission.map_err(|_| {
                let queue = self.context.limits.queue;
                Failure::new("BUSY", format!("{queue} requests wait already; try again later"))
            })?);
        }
        let _waiting = reads.then(|| GaugeGuard::new(&self.context.metrics.waiting));
        if reads && !memory.is_small(analysis.bytes) {
            let execution = Arc::clone(&self.execution_permits).acquire_owned().await;
            permits.push(execution.map_err(|_| Failure::new("BUSY", "the service is ending"))?);
        }
        let reserved = Arc::new(memory.reserve(analysis.bytes).await?);
        Ok((permits, reserved))
    }
}

/// A failure as the whole answer; boxed, because answers are large and failures are rare.
fn boxed(failure: Failure) -> Box<Response> {
    Box::new(failure.into_response())
}

/// Counts a client that went away: its future was dropped before it ended.
struct DisconnectGuard<'a> {
    context: &'a QueryContext,
    armed: bool,
}

impl Drop for DisconnectGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.context.metrics.gone.inc();
        }
    }
}

fn outcome(response: &Response) -> String {
    let Some(error) = response.errors.first() else { return "OK".to_owned() };
    match error.extensions.as_ref().and_then(|values| values.get("code")) {
        Some(Value::String(code)) => code.clone(),
        _ => "GRAPHQL_INVALID".to_owned(),
    }
}

/// A small answer of an error, as it is.
fn plain(response: Response, response_type: ResponseType) -> (Answer, String) {
    let outcome = outcome(&response);
    // The library names the field that failed where it asked one.
    let was_executed = response.errors.iter().any(|error| !error.path.is_empty());
    let status = response_type.status(&outcome, was_executed);
    // An answer without data is one of a request that was not run (GraphQL 7.1).
    let has_data = was_executed && !status.is_server_error();
    let text = if has_data || response.errors.is_empty() {
        serde_json::to_vec(&response)
    } else {
        serde_json::to_vec(&serde_json::json!({ "errors": response.errors }))
    };
    let text = text.unwrap_or_else(|_| {
        br#"{"errors":[{"message":"failed","extensions":{"code":"INTERNAL"}}]}"#.to_vec()
    });
    let bytes = text.len();
    let (body, coding, generation) = (text.into(), None, None);
    let answer = Answer { status, response_type, body, coding, generation, bytes };
    (answer, outcome)
}
