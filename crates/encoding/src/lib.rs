//! Compression of message bodies, as the header `Content-Encoding` names it.
//!
//! Services, libraries and tools read each message through [`plain`], so that everything after it sees JSON. Bodies are written
//! in gzip, which every language has, and read in gzip and zstd. `docs/adr/0029` gives the reasons.

mod reference;

use std::borrow::Cow;
use std::io::{Read, Write};

use concord_wire::envelope::ENVELOPE_BYTES_MAX;
use concord_wire::{Encoding, Fault, header};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::StreamingDecoder;

pub use reference::{PAYLOAD_BYTES_MAX, PayloadReference, REFERENCE};

/// The body before it was compressed. A body that expands to more bytes than an envelope may have is refused without expanding
/// it further.
pub fn plain<'a>(body: &'a [u8], encoding: Option<&str>) -> Result<Cow<'a, [u8]>, Fault> {
    let Some(name) = encoding.map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(Cow::Borrowed(body));
    };
    let expanded = match Encoding::parse(name).ok_or_else(|| unknown(name))? {
        Encoding::Identity => return Ok(Cow::Borrowed(body)),
        Encoding::Gzip => bounded(MultiGzDecoder::new(body)),
        Encoding::Zstd => zstd(body),
    };
    let expanded = expanded.map_err(|why| broken(name, &why))?;
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

fn bounded(reader: impl Read) -> Result<Vec<u8>, String> {
    let mut expanded = Vec::new();
    reader
        .take(READ_MAX)
        .read_to_end(&mut expanded)
        .map_err(|error| error.to_string())?;
    Ok(expanded)
}

/// The largest window of zstd that is kept: what every decoder must be able to (RFC 8878, 3.1.1.1.2). Nothing comes out of the
/// decoder before a window is full, so this bounds what a frame takes in memory whatever it expands to.
const WINDOW_BYTES_MAX: u64 = 8 << 20;

/// Expands a body frame by frame, because a body may have several frames.
fn zstd(mut body: &[u8]) -> Result<Vec<u8>, String> {
    let mut expanded = Vec::new();
    while !body.is_empty() && expanded.len() <= ENVELOPE_BYTES_MAX {
        if let Some(bytes) = window(body).filter(|bytes| *bytes > WINDOW_BYTES_MAX) {
            return Err(format!(
                "it asks for a window of {bytes} bytes, and {WINDOW_BYTES_MAX} are kept at most"
            ));
        }
        let frame = StreamingDecoder::new(&mut body).map_err(|error| error.to_string())?;
        let room = READ_MAX.saturating_sub(expanded.len() as u64);
        frame
            .take(room)
            .read_to_end(&mut expanded)
            .map_err(|error| error.to_string())?;
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
