//! Errors of the service: a stable code, a message for people, sometimes a position in the formula.

use std::error::Error;

use async_graphql::{ErrorExtensionValues, Pos, Response, ServerError, Value};

use super::limits::{ERRORS, MESSAGE_CHARACTERS};
use crate::text::redacted;
use crate::{FormulaError, RankError};

/// What the library says of fields that are nested too deeply.
const TOO_DEEP: &str = "Query is nested too deep.";

/// An error of a request. Its message holds no path of a file and no text of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// `extensions.code`; programs decide by it, so it never changes.
    pub(super) code: &'static str,
    /// What was asked, what was found, what to do.
    pub(super) message: String,
    /// Character of the formula, from 1.
    pub(super) position: Option<usize>,
    /// More members of `extensions`: a module's name, a day.
    pub(super) details: Vec<(&'static str, String)>,
}

impl Failure {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), position: None, details: Vec::new() }
    }

    /// The error for the client; its cause is an event for the operator.
    pub(super) fn report(error: RankError) -> Self {
        match &error {
            RankError::FormulaFault { source, .. } => {
                let fault = source.to_string();
                let cause = fault.lines().map(str::trim).collect::<Vec<_>>().join("; ");
                tracing::warn!(code = error.code(), cause, "{error}");
            }
            other => {
                if let Some(cause) = other.source() {
                    let cause = redacted(&cause.to_string());
                    tracing::error!(code = error.code(), cause, "{error}");
                }
            }
        }
        error.into()
    }

    /// As an error of a resolver, which the library gives its path in the answer.
    pub(super) fn into_error(self) -> async_graphql::Error {
        let mut error = async_graphql::Error::new(self.message);
        error.extensions = Some(extensions(self.code, self.position, self.details));
        error
    }

    /// As the whole answer, where nothing was run.
    pub(super) fn into_response(self) -> Response {
        let mut error = ServerError::new(self.message, None::<Pos>);
        error.extensions = Some(extensions(self.code, self.position, self.details));
        Response::from_errors(vec![error])
    }
}

impl From<FormulaError> for Failure {
    fn from(error: FormulaError) -> Self {
        Self { position: Some(error.position), ..Self::new("FORMULA_INVALID", error.message) }
    }
}

impl From<RankError> for Failure {
    fn from(error: RankError) -> Self {
        let mut failure = Self::new(error.code(), error.to_string());
        if let RankError::FormulaFault { name, date, .. } = error {
            failure.details.push(("formula", name));
            failure.details.extend(date.map(|date| ("date", date.to_string())));
        }
        failure
    }
}

fn extensions(
    code: &str,
    position: Option<usize>,
    details: Vec<(&'static str, String)>,
) -> ErrorExtensionValues {
    let mut values = ErrorExtensionValues::default();
    values.set("code", code);
    if let Some(position) = position {
        values.set("position", position as u64);
    }
    for (name, value) in details {
        values.set(name, value);
    }
    values
}

/// Gives the library's own errors a code, and cuts what is too long.
pub(super) fn finish(response: &mut Response) {
    response.errors.truncate(ERRORS);
    for error in &mut response.errors {
        if error.message.chars().nth(MESSAGE_CHARACTERS).is_some() {
            error.message = error.message.chars().take(MESSAGE_CHARACTERS).chain(['…']).collect();
        }
        let extensions = error.extensions.get_or_insert_default();
        if extensions.get("code").is_none() {
            let is_deep = error.message == TOO_DEEP;
            extensions.set("code", if is_deep { "QUERY_TOO_DEEP" } else { "GRAPHQL_INVALID" });
        }
    }
    // Every field of the root is non-null, so one error takes the data away (GraphQL 6.4.4).
    if !response.errors.is_empty() {
        response.data = Value::Null;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_and_get_a_code() {
        let mut response =
            Response::from_errors(vec![ServerError::new("x".repeat(1_000), None); ERRORS + 5]);
        finish(&mut response);
        assert_eq!(response.errors.len(), ERRORS);
        let error = &response.errors[0];
        assert_eq!(error.message.chars().count(), MESSAGE_CHARACTERS + 1);
        let code = error.extensions.as_ref().and_then(|values| values.get("code")).cloned();
        assert_eq!(code, Some(Value::from("GRAPHQL_INVALID")));
    }

    #[test]
    fn a_failure_keeps_its_code() {
        let mut response = Failure::new("BUSY", "later").into_response();
        finish(&mut response);
        let text = serde_json::to_string(&response).unwrap();
        assert_eq!(
            text,
            r#"{"data":null,"errors":[{"message":"later","extensions":{"code":"BUSY"}}]}"#
        );
    }
}
