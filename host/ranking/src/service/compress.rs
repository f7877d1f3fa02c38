//! Content coding: smaller answers for clients that can decode them (RFC 9110, 8.4).

use std::io::{self, Write};

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;

use crate::blocks::Blocks;

/// Below this an answer is sent as it is; compressing would save less than a packet.
const SMALLEST: usize = 1_024;
/// Level of zstd: 8 ms for 6 MB, and a sixth of the size.
const ZSTD_LEVEL: i32 = 1;
/// Level of gzip: 13 ms for 6 MB. Level 4 takes twice the time for a third less.
const GZIP_LEVEL: u32 = 1;
/// Level of brotli: 20 ms for 6 MB.
const BROTLI_LEVEL: u32 = 1;
/// Window of brotli, as a power of two.
const BROTLI_WINDOW: u32 = 20;

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Zstd,
    Gzip,
    Brotli,
}

impl Encoding {
    /// In the order of preference between equals: quickest first.
    const COMPRESSING: [Self; 3] = [Self::Zstd, Self::Gzip, Self::Brotli];

    /// Those for stored files, which are compressed while they are sent.
    pub(super) const FILES: [Self; 2] = [Self::Zstd, Self::Gzip];

    /// The name in HTTP's Content-Encoding; none for bytes as they are.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
            Self::Brotli => Some("br"),
        }
    }

    /// What suits an Accept-Encoding header best (RFC 9110, 12.5.3).
    pub(super) fn choose(accepted: &str) -> Self {
        Self::best(accepted, &Self::COMPRESSING)
    }

    /// The same for a stored file.
    pub(super) fn choose_for_file(accepted: &str) -> Self {
        Self::best(accepted, &Self::FILES)
    }

    fn best(accepted: &str, among: &[Self]) -> Self {
        let mut best = (Self::Identity, 0.0);
        for &encoding in among {
            let weight = encoding.name().map_or(0.0, |name| weight(accepted, name));
            if weight > best.1 {
                best = (encoding, weight);
            }
        }
        best.0
    }

    /// What is used for a body of this size.
    pub(super) fn for_size(self, bytes: usize) -> Self {
        if bytes < SMALLEST { Self::Identity } else { self }
    }

    /// An encoder that compresses chunk by chunk.
    ///
    /// # Errors
    /// Where there is none: for brotli, which is not among [`Self::FILES`].
    pub(super) fn encoder(self) -> io::Result<StreamEncoder> {
        match self {
            Self::Identity => Ok(StreamEncoder::Identity(Vec::new())),
            Self::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Ok(StreamEncoder::Zstd(encoder))
            }
            Self::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Ok(StreamEncoder::Gzip(flate2::write::GzEncoder::new(Vec::new(), level)))
            }
            Self::Brotli => Err(io::Error::other("files are not compressed with brotli")),
        }
    }

    /// Compresses an answer; what is compressed already is free again.
    pub(super) fn compress(self, plain: Blocks) -> io::Result<Blocks> {
        match self {
            Self::Identity => Ok(plain),
            Self::Zstd => {
                let mut encoder = zstd::Encoder::new(Blocks::default(), ZSTD_LEVEL)?;
                write(&mut encoder, plain)?;
                encoder.finish()
            }
            Self::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut encoder = flate2::write::GzEncoder::new(Blocks::default(), level);
                write(&mut encoder, plain)?;
                encoder.finish()
            }
            Self::Brotli => {
                let mut compressed = Blocks::default();
                let mut encoder = brotli::CompressorWriter::new(
                    &mut compressed,
                    65_536,
                    BROTLI_LEVEL,
                    BROTLI_WINDOW,
                );
                write(&mut encoder, plain)?;
                encoder.flush()?;
                drop(encoder);
                Ok(compressed)
            }
        }
    }
}

/// Compresses chunk by chunk; what is ready is taken out in between, so memory stays small.
pub(super) enum StreamEncoder {
    Identity(Vec<u8>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
}

impl StreamEncoder {
    /// Takes in one more chunk.
    pub(super) fn put(&mut self, chunk: Vec<u8>) -> io::Result<()> {
        match self {
            Self::Identity(ready) if ready.is_empty() => *ready = chunk,
            Self::Identity(ready) => ready.extend_from_slice(&chunk),
            Self::Zstd(encoder) => encoder.write_all(&chunk)?,
            Self::Gzip(encoder) => encoder.write_all(&chunk)?,
        }
        Ok(())
    }

    /// Makes ready what was taken in so far.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Identity(_) => Ok(()),
            Self::Zstd(encoder) => encoder.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }

    /// Makes ready all that is left. Nothing may be put in afterwards.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Identity(_) => Ok(()),
            Self::Zstd(encoder) => encoder.do_finish(),
            Self::Gzip(encoder) => encoder.try_finish(),
        }
    }

    /// What is ready.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Self::Identity(ready) => ready,
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Gzip(encoder) => encoder.get_mut(),
        })
    }
}

fn write(encoder: &mut impl Write, plain: Blocks) -> io::Result<()> {
    plain.finish().into_iter().try_for_each(|block| encoder.write_all(&block))
}

/// The Accept-Encoding headers of a request as one.
pub(super) fn accepted(headers: &HeaderMap) -> String {
    let lines = headers.get_all(ACCEPT_ENCODING).iter();
    lines.filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",")
}

/// The weight of a name in an Accept-Encoding header; 0 where it is not accepted.
fn weight(accepted: &str, name: &str) -> f64 {
    let mut star = 0.0;
    for part in accepted.split(',') {
        let mut words = part.split(';').map(str::trim);
        let coding = words.next().unwrap_or_default();
        let weight = words
            .find_map(|word| word.strip_prefix("q=").or_else(|| word.strip_prefix("Q=")))
            .map_or(1.0, |text| text.trim().parse().unwrap_or(0.0));
        if coding.eq_ignore_ascii_case(name) {
            return weight;
        }
        if coding == "*" {
            star = weight;
        }
    }
    star
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_client_chooses() {
        for (accepted, expected) in [
            ("", Encoding::Identity),
            ("identity", Encoding::Identity),
            ("gzip, deflate, br, zstd", Encoding::Zstd),
            ("gzip, deflate, br", Encoding::Gzip),
            ("br", Encoding::Brotli),
            ("GZIP;q=0.5, br;q=0.8", Encoding::Brotli),
            ("zstd;q=0, *", Encoding::Gzip),
            ("gzip;q=0", Encoding::Identity),
            ("gzip;q=much", Encoding::Identity),
        ] {
            assert_eq!(Encoding::choose(accepted), expected, "{accepted}");
            let for_file = Encoding::choose_for_file(accepted);
            assert!(for_file == expected || expected == Encoding::Brotli, "{accepted}");
        }
        assert_eq!(Encoding::choose_for_file("br, gzip;q=0.1"), Encoding::Gzip);
        assert!(Encoding::Brotli.encoder().is_err());
    }

    #[test]
    fn what_is_compressed_comes_out_again() {
        let plain = format!("{{\"a\":[{}4]}}", "1,2,3,".repeat(100_000)).into_bytes();
        let mut found = Vec::new();
        let compressed = |encoding: Encoding| -> Vec<u8> {
            let blocks = encoding.compress(plain.clone().into()).unwrap().finish();
            blocks.iter().flatten().copied().collect()
        };
        assert!(compressed(Encoding::Identity) == plain);
        assert_eq!(zstd::decode_all(&compressed(Encoding::Zstd)[..]).unwrap(), plain);
        flate2::read::GzDecoder::new(&compressed(Encoding::Gzip)[..])
            .read_to_end(&mut found)
            .unwrap();
        assert_eq!(found, plain);
        found.clear();
        brotli::Decompressor::new(&compressed(Encoding::Brotli)[..], 4_096)
            .read_to_end(&mut found)
            .unwrap();
        assert_eq!(found, plain);
        assert!(compressed(Encoding::Zstd).len() < plain.len() / 10);
    }

    #[test]
    fn small_answers_are_left_alone() {
        assert_eq!(Encoding::Gzip.for_size(SMALLEST - 1), Encoding::Identity);
        assert_eq!(Encoding::Gzip.for_size(SMALLEST), Encoding::Gzip);
    }
}
