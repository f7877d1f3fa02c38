//! Records in pieces of every size.

use proptest::prelude::*;

use super::*;

fn cut(bytes: &[u8], size: usize) -> Result<Vec<Vec<u8>>, RecordError> {
    let (mut records, mut found) = (Records::default(), Vec::new());
    for piece in bytes.chunks(size) {
        records.take(piece, |record| {
            found.push(record.to_vec());
            true
        })?;
    }
    Ok(found)
}

#[test]
fn braces_in_texts_and_second_bytes_end_nothing() {
    // The second bytes of these characters are a backslash, `{` and `}`.
    let first = b"{\"a\":\"\x95\x5c\x81\x7b\x81\x7d\"}".to_vec();
    let records = [first, br#"{"b":"}\"{","c":{}}"#.to_vec()];
    let stream = records.join(&b"\r\n,"[..]);
    for size in 1..stream.len() {
        assert_eq!(cut(&stream, size).unwrap(), records, "{size}");
    }
}

#[test]
fn what_is_no_record_is_refused() {
    assert_eq!(cut(b"<html>", 9), Err(RecordError::NoRecord));
    let long = [b"{\"".to_vec(), vec![b'x'; MASTER_RECORD_BYTES_MAX]].concat();
    assert_eq!(cut(&long, 100), Err(RecordError::TooLong));
    let (mut records, mut count) = (Records::default(), 0);
    let stopped = records.take(b"{}{}{}", |_| {
        count += 1;
        count < 2
    });
    assert_eq!((stopped, count), (Ok(false), 2));
}

proptest! {
    #[test]
    fn cutting_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80), size in 1_usize..9) {
        let _ = cut(&bytes, size);
    }
}
