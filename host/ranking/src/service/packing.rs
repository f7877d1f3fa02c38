//! Content coding of answers (RFC 9110, 8.4).

use std::convert::Infallible;
use std::future::ready;
use std::io::Write;

use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{Extensions, HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use futures_util::{TryStreamExt, stream};
use tokio::runtime::Handle;
use tower::{Layer, ServiceExt, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

use crate::blocks::Blocks;
use crate::error::Cause;

/// Level of zstd, gzip and brotli: 8 to 20 ms for 6 MB, and a sixth of the size.
const LEVEL: i32 = 1;
/// Below this an answer is sent as it is; packing would save less than a packet.
const PACKED_BYTES_MIN: u16 = 1_024;

/// Packs what is sent.
pub(super) fn layer() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new()
        .quality(CompressionLevel::Precise(LEVEL))
        .compress_when(SizeAbove::new(PACKED_BYTES_MIN).and(is_whole))
}

/// Whether this answer has all of something; others have no body, or a short one, or a part.
fn is_whole(status: StatusCode, _: Version, _: &HeaderMap, _: &Extensions) -> bool {
    status == StatusCode::OK
}

/// An answer in the coding that its client likes best, and the name of that; for a thread that may block.
///
/// Large answers are packed before they are sent: while they are, no thread of the sockets is busy with them,
/// and a slow client holds the memory of the packed answer only.
pub(super) fn packed(
    plain: Blocks,
    codings: Vec<HeaderValue>,
) -> Result<(Blocks, Option<HeaderValue>), Cause> {
    let mut request = Request::new(());
    for coding in codings {
        request.headers_mut().append(ACCEPT_ENCODING, coding);
    }
    let length = HeaderValue::from(plain.len());
    let blocks = plain.finish().into_iter().map(Ok::<_, Infallible>);
    let mut answer = Response::new(Body::from_stream(stream::iter(blocks)));
    answer.headers_mut().insert(CONTENT_LENGTH, length);
    let mut answer = Some(answer);
    let service = layer().layer(service_fn(move |_| ready(answer.take().ok_or("asked twice"))));
    Handle::current().block_on(async {
        let mut answer = service.oneshot(request).await?;
        let coding = answer.headers_mut().remove(CONTENT_ENCODING);
        let mut blocks = Blocks::default();
        let mut body = Body::new(answer.into_body()).into_data_stream();
        while let Some(bytes) = body.try_next().await? {
            blocks.write_all(&bytes)?;
        }
        Ok((blocks, coding))
    })
}
