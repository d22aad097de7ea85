use concord_wire::ErrorCode;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

fn zstd_of(body: &[u8]) -> Vec<u8> {
    compress_to_vec(body, CompressionLevel::Fastest)
}

fn refused(body: &[u8], encoding: &str, says: &str) {
    let fault = plain(body, Some(encoding)).unwrap_err();
    assert_eq!(fault.code, ErrorCode::InvalidRequest);
    assert!(fault.message.contains(says), "{fault}");
}

#[test]
fn a_body_is_read_as_it_was_written() {
    let body = br#"{"payload":{}}"#;
    for (written, encoding) in [
        (body.to_vec(), None),
        (body.to_vec(), Some("")),
        (body.to_vec(), Some("identity")),
        (gzip(body).unwrap(), Some("gzip")),
        (gzip(body).unwrap(), Some(" GZIP ")),
        (zstd_of(body), Some("zstd")),
    ] {
        assert_eq!(
            plain(&written, encoding).unwrap(),
            body.as_slice(),
            "{encoding:?}"
        );
    }
    let (one, other) = body.split_at(5);
    assert_eq!(
        plain(
            &[gzip(one).unwrap(), gzip(other).unwrap()].concat(),
            Some("gzip")
        )
        .unwrap(),
        body.as_slice()
    );
    assert_eq!(
        plain(&[zstd_of(one), zstd_of(other)].concat(), Some("zstd")).unwrap(),
        body.as_slice()
    );
}

#[test]
fn the_same_body_is_the_same_when_it_is_compressed() {
    assert_eq!(gzip(b"abc").unwrap(), gzip(b"abc").unwrap());
}

#[test]
fn a_body_that_expands_beyond_an_envelope_is_refused_and_one_as_large_is_not() {
    let most = vec![b' '; ENVELOPE_BYTES_MAX];
    for compressed in [(gzip(&most).unwrap(), "gzip"), (zstd_of(&most), "zstd")] {
        assert_eq!(
            plain(&compressed.0, Some(compressed.1)).unwrap().len(),
            ENVELOPE_BYTES_MAX
        );
    }
    let bomb = vec![b' '; 200 * ENVELOPE_BYTES_MAX];
    for (compressed, encoding) in [(gzip(&bomb).unwrap(), "gzip"), (zstd_of(&bomb), "zstd")] {
        assert!(
            compressed.len() < ENVELOPE_BYTES_MAX,
            "it would reach us: {}",
            compressed.len()
        );
        refused(&compressed, encoding, "more than 1048576 bytes");
    }
    let noise: Vec<u8> = (0..COMPRESSED_BYTES_MAX)
        .map(|place| (place * place) as u8)
        .collect();
    refused(
        &[&noise, b"!".as_slice()].concat(),
        "gzip",
        "more than 1048576 bytes",
    );
    // In parts that are each small enough.
    let parts = gzip(&most).unwrap().repeat(50);
    refused(&parts, "gzip", "more than 1048576 bytes");
    refused(
        &zstd_of(&most).repeat(50),
        "zstd",
        "more than 1048576 bytes",
    );
}

/// A frame of zstd with a window of 1 KiB times two to the power of `exponent`, and blocks of one byte 131,072 times.
fn repeated(exponent: u8, blocks: usize) -> Vec<u8> {
    let block = |last: u32| (131_072 << 3 | 1 << 1 | last).to_le_bytes();
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3];
    for left in (0..blocks).rev() {
        frame.extend(&block(u32::from(left == 0))[..3]);
        frame.push(b' ');
    }
    frame
}

#[test]
fn a_frame_that_asks_for_a_large_window_is_refused_before_it_is_expanded() {
    assert_eq!(
        plain(&repeated(13, 8), Some("zstd")).unwrap().len(),
        ENVELOPE_BYTES_MAX
    );
    refused(&repeated(13, 1_000), "zstd", "more than 1048576 bytes");
    refused(&repeated(14, 8), "zstd", "a window of 16777216 bytes");
    refused(&repeated(16, 10_000), "zstd", "a window of 67108864 bytes");
    // All the content in one segment: 2^40 bytes, as it says.
    let single = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0];
    refused(&single, "zstd", "a window of 1099511627776 bytes");
}

/// Each part of a body costs something, also where nothing is in it.
#[test]
fn a_body_of_more_parts_than_one_needs_is_refused_before_they_are_expanded() {
    let empty = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0];
    assert_eq!(
        plain(&empty.repeat(FRAMES_MAX), Some("zstd")).unwrap(),
        b"".as_slice()
    );
    refused(&empty.repeat(60_000), "zstd", "more than 64 frames");
    let none = gzip(b"").unwrap();
    assert_eq!(
        plain(&none.repeat(FRAMES_MAX), Some("gzip")).unwrap(),
        b"".as_slice()
    );
    refused(&none.repeat(50_000), "gzip", "more than 64 members");
    let frame = |blocks: usize| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0];
        frame.extend([0, 0, 0].repeat(blocks - 1));
        frame.extend([1, 0, 0]);
        frame
    };
    assert_eq!(
        plain(&frame(BLOCKS_MAX), Some("zstd")).unwrap(),
        b"".as_slice()
    );
    refused(&frame(300_000), "zstd", "more than 1024 blocks");
    let half = frame(BLOCKS_MAX / 2);
    refused(&half.repeat(3), "zstd", "more than 1024 blocks");
}

#[test]
fn what_is_unknown_cut_short_or_no_such_thing_is_refused() {
    for encoding in ["br", "gzip, gzip", "deflate"] {
        refused(b"{}", encoding, "names no encoding");
    }
    let body = "a long enough body ".repeat(100);
    for (whole, encoding) in [
        (gzip(body.as_bytes()).unwrap(), "gzip"),
        (zstd_of(body.as_bytes()), "zstd"),
    ] {
        for length in [1, 5, whole.len() / 2, whole.len() - 1] {
            refused(&whole[..length], encoding, "cannot be expanded");
        }
        refused(b"{\"no\":\"archive\"}", encoding, "cannot be expanded");
        let trailing = [whole.as_slice(), b"rest"].concat();
        refused(&trailing, encoding, "cannot be expanded");
    }
}

proptest! {
    #[test]
    fn nothing_that_is_sent_does_worse_than_being_refused(
        body in proptest::collection::vec(any::<u8>(), 0..400), start in 0_usize..3, encoding in 0_usize..2,
    ) {
        let magic: [&[u8]; 3] = [&[], &[0x1f, 0x8b, 8, 0], &[0x28, 0xb5, 0x2f, 0xfd]];
        let written = [magic[start], &body].concat();
        let _ = plain(&written, Some(["gzip", "zstd"][encoding]));
    }

    #[test]
    fn whatever_is_compressed_is_read_again_or_refused_where_a_byte_is_changed(
        body in proptest::collection::vec(any::<u8>(), 0..4_000), place in any::<prop::sample::Index>(), to in any::<u8>(),
    ) {
        for (whole, encoding) in [(gzip(&body).unwrap(), "gzip"), (zstd_of(&body), "zstd")] {
            prop_assert_eq!(&*plain(&whole, Some(encoding)).unwrap(), body.as_slice());
            let mut changed = whole;
            let place = place.index(changed.len());
            changed[place] = to;
            let _ = plain(&changed, Some(encoding));
        }
    }
}
