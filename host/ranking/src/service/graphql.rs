//! One GraphQL request, from its JSON to the bytes of its answer.

use std::collections::VecDeque;
use std::sync::Arc;

use async_graphql::indexmap::IndexMap;
use async_graphql::parser::parse_query;
use async_graphql::parser::types::OperationType;
use async_graphql::{Pos, Request, Response, ServerError, Value, Variables};
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use domain::clock::Stopwatch;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::analysis::{self, RequestAnalysis};
use super::answer_body::AnswerBody;
use super::body::{self, WrittenRows};
use super::budget::Reservation;
use super::compress::Encoding;
use super::context::{QueryContext, RequestData, milliseconds, spawn_blocking};
use super::estimate::{self, VariableValues};
use super::failure::{self, Failure};
use super::metrics::GaugeGuard;
use super::request::{GraphqlRequest, ResponseType};
use super::resolve::SequentialLock;
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
    /// The same for small answers, which wait for no large one.
    small_execution_permits: Arc<Semaphore>,
    /// A permit for each request that may wait or be worked on.
    admission_permits: Arc<Semaphore>,
}

/// An answer's body and its content coding.
pub(super) struct EncodedResponse {
    pub(super) status: StatusCode,
    pub(super) response_type: ResponseType,
    blocks: VecDeque<Bytes>,
    pub(super) encoding: Encoding,
    /// The generation that it was made from, where it was made from one.
    pub(super) generation: Option<String>,
    /// What the blocks hold; nothing for the small answer of an error.
    memory: Option<Arc<Reservation>>,
}

impl EncodedResponse {
    fn len(&self) -> usize {
        self.blocks.iter().map(Bytes::len).sum()
    }

    /// The body, which holds its memory until it is gone.
    pub(super) fn body(mut self, context: &Arc<QueryContext>) -> Body {
        match self.memory {
            Some(memory) => Body::new(AnswerBody::new(self.blocks, memory, Arc::clone(context))),
            None => Body::from(self.blocks.pop_front().unwrap_or_default()),
        }
    }
}

/// How an answer is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseForm {
    pub(super) response_type: ResponseType,
    pub(super) encoding: Encoding,
}

/// A request that was read and may run.
struct PreparedRequest {
    request: Request,
    analysis: RequestAnalysis,
    /// Memory that its answer takes at most.
    bytes: u64,
}

impl Endpoint {
    pub(super) fn new(context: Arc<QueryContext>) -> Self {
        let (answers, queue) = (context.limits.concurrent_answers, context.limits.queue);
        let cap = |count: usize| count.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            schema: schema::build(Arc::clone(&context)),
            execution_permits: Arc::new(Semaphore::new(cap(answers))),
            small_execution_permits: Arc::new(Semaphore::new(cap(answers))),
            admission_permits: Arc::new(Semaphore::new(cap(answers.saturating_add(queue)))),
            context,
        }
    }

    /// Answers one request. Who drops the future ends the query, waiting or running.
    pub(super) async fn respond(
        &self,
        sent: GraphqlRequest,
        form: ResponseForm,
    ) -> EncodedResponse {
        let watch = Stopwatch::start();
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
                plain(late.into_response(), form.response_type)
            }
        };
        let (time, bytes) = (watch.elapsed(), answer.len());
        let duration_ms = milliseconds(time);
        tracing::debug!(code = outcome, bytes, duration_ms, "a GraphQL request was answered");
        self.context.metrics.answered(&outcome, time);
        self.context.metrics.bytes.inc_by(bytes as u64);
        answer
    }

    /// An answer for what could not even be read.
    pub(super) fn refuse(&self, failure: Failure, form: ResponseForm) -> EncodedResponse {
        let (answer, outcome) = plain(failure.into_response(), form.response_type);
        self.context.metrics.answered(&outcome, std::time::Duration::ZERO);
        answer
    }

    async fn execute(
        &self,
        sent: GraphqlRequest,
        ResponseForm { response_type, encoding }: ResponseForm,
    ) -> (EncodedResponse, String) {
        let refuse = |failure: Failure| plain(failure.into_response(), response_type);
        let data = RequestData(Arc::clone(&self.context.backend).pinned());
        let generation = data.0.generation();
        let prepared = match self.prepare(sent, &data) {
            Ok(prepared) => prepared,
            Err(refused) => return plain(*refused, response_type),
        };
        let (permits, memory) = match self.acquire(&prepared.analysis, prepared.bytes).await {
            Ok(acquired) => acquired,
            Err(failure) => return refuse(failure),
        };
        let keys = prepared.analysis.keys.clone();
        let introspection = prepared.analysis.introspection.clone();
        let written = Arc::new(WrittenRows::default());
        let request = prepared.request.data(data);
        let request = request.data(prepared.analysis).data(SequentialLock::default());
        let request = request.data(Arc::clone(&written)).data(Arc::clone(&memory));
        let mut response = self.schema.execute(request).await;
        failure::finish(&mut response);
        if !response.errors.is_empty() {
            return plain(response, response_type);
        }
        // Where every field is left out by a directive, the answer is an object without fields.
        if response.data == Value::Null {
            response.data = Value::Object(IndexMap::new());
        }
        if let Value::Object(data) = &mut response.data {
            for key in &introspection {
                if let Some(value) = data.get_mut(key) {
                    stated::state(value, &self.context.limits);
                }
            }
        }
        let encode = move || -> Result<Option<EncodedResponse>, Cause> {
            // Released when the bytes are there: what waits holds no rows.
            let _permits = permits;
            let blocks = body::blocks(response, &keys, &written)?;
            let encoding = encoding.for_size(blocks.len());
            let mut blocks = encoding.compress(blocks)?;
            // A small answer may have been given less than a block.
            blocks.close_short();
            if !memory.resize(blocks.held() as u64) {
                return Ok(None);
            }
            let (status, blocks, memory) = (StatusCode::OK, blocks.finish(), Some(memory));
            let answer =
                EncodedResponse { status, response_type, blocks, encoding, generation, memory };
            Ok(Some(answer))
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
    ) -> Result<PreparedRequest, Box<Response>> {
        analysis::check_nesting(&sent.query).map_err(boxed)?;
        let document = parse_query(&sent.query).map_err(|error| {
            let at: Vec<Pos> = error.positions().collect();
            let mut parse = ServerError::new(error.to_string(), None);
            parse.locations = at;
            let mut refused = Response::from_errors(vec![parse]);
            failure::finish(&mut refused);
            Box::new(refused)
        })?;
        let name = sent.operation_name.as_deref().filter(|name| !name.is_empty());
        let operations = analysis::operations(&document, name);
        if sent.is_get && operations.iter().any(|one| one.ty != OperationType::Query) {
            return Err(boxed(Failure::new("METHOD", "GET is for queries; send POST")));
        }
        let analysis = analysis::analyze(&document, name, &self.context.limits).map_err(boxed)?;
        let variables = Variables::from_json(sent.variables.unwrap_or_default().into());
        if let [operation] = operations[..] {
            analysis::check_variables(operation, &variables).map_err(boxed)?;
        }
        let snapshot = data.0.snapshot();
        let rankings = estimate::bytes(
            &analysis.uses,
            analysis.merges,
            &VariableValues::new(&variables, operations.into_iter()),
            &snapshot,
            data.0.listed().longest(),
            &self.context.limits,
        );
        let prices = estimate::price_bytes(analysis.prices, &snapshot);
        let bytes = rankings.saturating_add(prices);
        let mut request = Request::new(sent.query.clone()).variables(variables);
        if let Some(name) = name {
            request = request.operation_name(name);
        }
        request.set_parsed_query(document);
        Ok(PreparedRequest { request, analysis, bytes })
    }

    /// Waits for the memory of a request and for the permits that reading data needs. Memory first: what
    /// waits for it must not keep others from working.
    async fn acquire(
        &self,
        analysis: &RequestAnalysis,
        bytes: u64,
    ) -> Result<(Option<Permits>, Arc<Reservation>), Failure> {
        if analysis.uses.is_empty() && analysis.prices == 0 {
            return Ok((None, Arc::new(self.context.budget.reserve(bytes).await?)));
        }
        let admission = Arc::clone(&self.admission_permits).try_acquire_owned().map_err(|_| {
            let queue = self.context.limits.queue;
            Failure::new("BUSY", format!("{queue} requests wait already; try again later"))
        })?;
        let _waiting = GaugeGuard::new(&self.context.metrics.waiting);
        let memory = self.context.budget.reserve(bytes).await?;
        let lane = match self.context.budget.is_small(bytes) {
            true => &self.small_execution_permits,
            false => &self.execution_permits,
        };
        let execution = Arc::clone(lane)
            .acquire_owned()
            .await
            .map_err(|_| Failure::new("BUSY", "the service ends"))?;
        Ok((Some(Permits { _admission: admission, _execution: execution }), Arc::new(memory)))
    }
}

/// A failure as the whole answer; boxed, because answers are large and failures are rare.
fn boxed(failure: Failure) -> Box<Response> {
    Box::new(failure.into_response())
}

/// A request's right to be worked on.
struct Permits {
    _admission: OwnedSemaphorePermit,
    _execution: OwnedSemaphorePermit,
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
fn plain(response: Response, response_type: ResponseType) -> (EncodedResponse, String) {
    let outcome = outcome(&response);
    // The library names the field that failed where it asked one.
    let was_executed = response.errors.iter().any(|error| !error.path.is_empty());
    let status = response_type.status(&outcome, was_executed);
    // An answer without data is one of a request that was not run (GraphQL 7.1).
    let has_data = was_executed && !status.is_server_error();
    let bytes = if has_data || response.errors.is_empty() {
        serde_json::to_vec(&response)
    } else {
        serde_json::to_vec(&serde_json::json!({ "errors": response.errors }))
    };
    let bytes = bytes.unwrap_or_else(|_| {
        br#"{"errors":[{"message":"failed","extensions":{"code":"INTERNAL"}}]}"#.to_vec()
    });
    let blocks = VecDeque::from([Bytes::from(bytes)]);
    let encoding = Encoding::Identity;
    let (generation, memory) = (None, None);
    let answer = EncodedResponse { status, response_type, blocks, encoding, generation, memory };
    (answer, outcome)
}
