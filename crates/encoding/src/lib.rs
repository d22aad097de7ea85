//! Compression of message bodies, as the header `Content-Encoding` names it.
//!
//! Services, libraries and tools read each message through [`plain`], so that everything after it sees JSON. Bodies are written
//! in gzip, which every language has, and read in gzip and zstd. `docs/adr/0029` gives the reasons.

pub mod parts;
mod reference;

use std::borrow::Cow;
use std::io::{Read, Write};

use concord_wire::envelope::ENVELOPE_BYTES_MAX;
use concord_wire::{Encoding, Fault, header};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

pub use reference::{PAYLOAD_BYTES_MAX, PayloadReference, REFERENCE, check_values};

/// Most bytes of a compressed body. What cannot be made smaller grows by a little.
const COMPRESSED_BYTES_MAX: usize = ENVELOPE_BYTES_MAX + (64 << 10);
/// Most frames of zstd or members of gzip in a body. One may hold nothing, and costs its tables all the same.
const FRAMES_MAX: usize = 64;
/// Most blocks of zstd in a body, over all its frames: a compressor that is flushed after each kilobyte writes as many.
const BLOCKS_MAX: usize = 1_024;

/// The body before it was compressed. A body that expands to more bytes than an envelope may have, or that is cut into more
/// parts than one needs, is refused without expanding it further.
pub fn plain<'a>(body: &'a [u8], encoding: Option<&str>) -> Result<Cow<'a, [u8]>, Fault> {
    let Some(name) = encoding.map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(Cow::Borrowed(body));
    };
    let expand = match Encoding::parse(name).ok_or_else(|| unknown(name))? {
        Encoding::Identity => return Ok(Cow::Borrowed(body)),
        Encoding::Gzip => gunzip,
        Encoding::Zstd => zstd,
    };
    if body.len() > COMPRESSED_BYTES_MAX {
        return Err(too_large(name));
    }
    let expanded = expand(body).map_err(|why| broken(name, &why))?;
    if expanded.len() > ENVELOPE_BYTES_MAX {
        Err(too_large(name))
    } else {
        Ok(Cow::Owned(expanded))
    }
}

/// Compresses a body with gzip. The same body always gives the same bytes.
pub fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

/// One byte more than is allowed, so that a longer body is noticed.
const READ_MAX: u64 = ENVELOPE_BYTES_MAX as u64 + 1;

/// Expands a body member by member.
fn gunzip(mut body: &[u8]) -> Result<Vec<u8>, String> {
    let mut expanded = Vec::new();
    let mut members = 0;
    while !body.is_empty() && expanded.len() <= ENVELOPE_BYTES_MAX {
        members = one_more(members, FRAMES_MAX, "members")?;
        let room = READ_MAX.saturating_sub(expanded.len() as u64);
        GzDecoder::new(&mut body)
            .take(room)
            .read_to_end(&mut expanded)
            .map_err(|error| error.to_string())?;
    }
    Ok(expanded)
}

/// Counts a part of a body, of which it may have `most`.
fn one_more(parts: usize, most: usize, name: &str) -> Result<usize, String> {
    if parts < most {
        Ok(parts + 1)
    } else {
        Err(format!("it has more than {most} {name}"))
    }
}

/// The largest window of zstd that is kept: what every decoder must be able to (RFC 8878, 3.1.1.1.2). Nothing comes out of the
/// decoder before a window is full, so this bounds what a frame takes in memory whatever it expands to.
const WINDOW_BYTES_MAX: u64 = 8 << 20;

/// Expands a body frame by frame, because a body may have several frames, and each block by block.
fn zstd(mut body: &[u8]) -> Result<Vec<u8>, String> {
    let mut expanded = Vec::new();
    let (mut frames, mut blocks) = (0, 0);
    // One for all frames: its tables are as large as a frame of nothing is small.
    let mut decoder = FrameDecoder::new();
    while !body.is_empty() && expanded.len() <= ENVELOPE_BYTES_MAX {
        frames = one_more(frames, FRAMES_MAX, "frames")?;
        if let Some(bytes) = window(body).filter(|bytes| *bytes > WINDOW_BYTES_MAX) {
            return Err(format!(
                "it asks for a window of {bytes} bytes, and {WINDOW_BYTES_MAX} are kept at most"
            ));
        }
        decoder
            .reset(&mut body)
            .map_err(|error| error.to_string())?;
        while !decoder.is_finished() && expanded.len() <= ENVELOPE_BYTES_MAX {
            blocks = one_more(blocks, BLOCKS_MAX, "blocks")?;
            decoder
                .decode_blocks(&mut body, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|error| error.to_string())?;
            decoder
                .collect_to_writer(&mut expanded)
                .map_err(|error| error.to_string())?;
        }
    }
    Ok(expanded)
}

/// The window that a frame of zstd asks for (RFC 8878, 3.1.1.1); none where the frame ends before it says so.
fn window(frame: &[u8]) -> Option<u64> {
    const SINGLE_SEGMENT: u8 = 0x20;
    let descriptor = *frame.get(4)?;
    if descriptor & SINGLE_SEGMENT == 0 {
        let window = *frame.get(5)?;
        let base = 1_u64 << (10 + u32::from(window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // Then all the content is the window, and its size is stated behind the id of a dictionary.
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3))?;
    let length = 1_usize << (descriptor >> 6);
    let size = frame.get(5 + dictionary..)?.get(..length)?;
    let size = size
        .iter()
        .rev()
        .fold(0, |size, byte| size << 8 | u64::from(*byte));
    Some(if length == 2 { size + 256 } else { size })
}

fn unknown(name: &str) -> Fault {
    let beginning: String = name.chars().take(64).collect();
    Fault::invalid(
        "",
        format!(
            "The header {} names no encoding that is read here: {beginning:?}.",
            header::CONTENT_ENCODING
        ),
        format!(
            "Name one of {}, or leave the header out.",
            Encoding::ALL.map(Encoding::as_str).join(", ")
        ),
    )
}

fn broken(name: &str, why: &str) -> Fault {
    let why: String = why.chars().take(200).collect();
    Fault::invalid(
        "",
        format!("The body cannot be expanded as {name}: {why}."),
        format!(
            "Send the whole of what the compressor wrote, or leave the header {} out.",
            header::CONTENT_ENCODING
        ),
    )
}

fn too_large(name: &str) -> Fault {
    Fault::invalid(
        "",
        format!(
            "The body, which is {name}, has more than {ENVELOPE_BYTES_MAX} bytes when it is expanded."
        ),
        format!("Send at most {ENVELOPE_BYTES_MAX} bytes, counted before they are compressed."),
    )
}

#[cfg(test)]
mod tests;
