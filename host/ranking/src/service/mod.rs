//! The ranking service: GraphQL, the ranking page, health and metrics on one port.
//!
//! [`Service`] answers over HTTP what a [`Backend`] computes. GraphQL text is parsed and validated
//! by the library; the rows of a ranking, which are most of every answer, are written straight from
//! the result. Spec: "POST /graphql".
//!
//! - `context`, `limits`: what all requests share, and what each may cost and hold.
//! - `schema`, `item`, `resolve`, `stated`: the GraphQL types with the limits that they state, and what
//!   they are answered with.
//! - `analysis`: what a request would cost, before anything of it runs.
//! - `memory`: what its answer may take, reserved before and held until its client has it.
//! - `body`: from a result to bytes; the rows are written by `crate::rows`. `packing`: its coding, by a library.
//! - `request`, `graphql`, `http`, `response`, `server`: from sockets to a request, and back.
//! - `files`: the stored files, at the same port. Spec: "GET /jp/`<path>`".
//! - `prices`: one issue's daily prices. `page`: the ranking page, with all that it loads.
//! - `metrics`, `token`, `host_check`: numbers for operators, who may ask, and by which name.

mod analysis;
mod backend;
mod body;
mod context;
mod failure;
mod files;
mod graphql;
mod host_check;
mod http;
mod item;
mod limits;
mod memory;
mod metrics;
mod packing;
mod page;
mod prices;
mod request;
mod resolve;
mod response;
mod schema;
mod server;
mod stated;
mod token;

pub use backend::Backend;
pub use limits::{FILES_RESERVED, ServiceLimits};
pub use schema::{SCHEMA_VERSION, sdl};
pub use server::{Service, ServiceError, ServiceOptions, ServiceStop};
pub use token::{BearerToken, TOKEN_BYTES_MAX, TOKEN_BYTES_MIN, TokenError};
