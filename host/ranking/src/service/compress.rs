//! Smaller answers for clients that can unpack them.

use std::io::{self, Write};

use axum::body::Bytes;

use super::body::Pieces;

/// Below this an answer is sent as it is; packing would save less than a packet.
const SMALLEST: usize = 1_024;
/// Level of zstd: 8 ms for 6 MB, and a sixth of the size.
const ZSTD_LEVEL: i32 = 1;
/// Level of gzip: 13 ms for 6 MB. Level 4 takes twice the time for a third less.
const GZIP_LEVEL: u32 = 1;
/// Level of brotli: 20 ms for 6 MB.
const BROTLI_LEVEL: u32 = 1;
/// Window of brotli, as a power of two.
const BROTLI_WINDOW: u32 = 20;

/// A way to pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Zstd,
    Gzip,
    Brotli,
}

impl Encoding {
    /// In the order of preference between equals: quickest first.
    const PACKING: [Self; 3] = [Self::Zstd, Self::Gzip, Self::Brotli];

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
        let mut best = (Self::Identity, 0.0);
        for encoding in Self::PACKING {
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

    /// Packs the pieces into one body.
    pub(super) fn pack(self, pieces: &Pieces) -> io::Result<Vec<u8>> {
        let size: usize = pieces.iter().map(Bytes::len).sum();
        let room = Vec::with_capacity(size / 4);
        match self {
            Self::Identity => Ok(pieces.concat()),
            Self::Zstd => {
                let mut packer = zstd::Encoder::new(room, ZSTD_LEVEL)?;
                write(&mut packer, pieces)?;
                packer.finish()
            }
            Self::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut packer = flate2::write::GzEncoder::new(room, level);
                write(&mut packer, pieces)?;
                packer.finish()
            }
            Self::Brotli => {
                let mut packed = room;
                let mut packer =
                    brotli::CompressorWriter::new(&mut packed, 65_536, BROTLI_LEVEL, BROTLI_WINDOW);
                write(&mut packer, pieces)?;
                packer.flush()?;
                drop(packer);
                Ok(packed)
            }
        }
    }
}

fn write(packer: &mut impl Write, pieces: &Pieces) -> io::Result<()> {
    pieces.iter().try_for_each(|piece| packer.write_all(piece))
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
        }
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let pieces: Pieces = ["{\"a\":[", &"1,2,3,".repeat(10_000), "4]}"]
            .map(|piece| piece.to_owned().into())
            .to_vec();
        let plain = pieces.concat();
        let mut found = Vec::new();
        let packed = |encoding: Encoding| encoding.pack(&pieces).unwrap();
        assert_eq!(packed(Encoding::Identity), plain);
        assert_eq!(zstd::decode_all(&packed(Encoding::Zstd)[..]).unwrap(), plain);
        flate2::read::GzDecoder::new(&packed(Encoding::Gzip)[..]).read_to_end(&mut found).unwrap();
        assert_eq!(found, plain);
        found.clear();
        brotli::Decompressor::new(&packed(Encoding::Brotli)[..], 4_096)
            .read_to_end(&mut found)
            .unwrap();
        assert_eq!(found, plain);
        assert!(packed(Encoding::Zstd).len() < plain.len() / 10);
    }

    #[test]
    fn small_answers_are_left_alone() {
        assert_eq!(Encoding::Gzip.for_size(SMALLEST - 1), Encoding::Identity);
        assert_eq!(Encoding::Gzip.for_size(SMALLEST), Encoding::Gzip);
    }
}
