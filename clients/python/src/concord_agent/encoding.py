"""Bodies of messages that travel compressed: the header `Content-Encoding`."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping

#: The header that says how a body is compressed.
CONTENT_ENCODING = "Content-Encoding"
#: What this library reads, for the agent's card.
READ = ("gzip",)
#: Most bytes of a message, counted before it is compressed.
EXPANDED_BYTES_MAX = 1_048_576


def plain(body: bytes, headers: Mapping[str, str] | None) -> bytes:
    """A body as it was before it was compressed.

    Raises:
        ValueError: it is in an encoding that is not read here, cut short, or expands to more than a message may have.
    """
    encoding = ((headers or {}).get(CONTENT_ENCODING) or "identity").strip().lower()
    if encoding == "identity":
        return body
    if encoding not in READ:
        raise ValueError(f"its encoding {encoding!r} is not read here")
    parts, size = [], 0
    while body:
        # With the header and the checksum of gzip.
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            part = member.decompress(body, EXPANDED_BYTES_MAX - size + 1)
        except zlib.error as why:
            raise ValueError(f"it is not {encoding}: {why}") from why
        size += len(part)
        if size > EXPANDED_BYTES_MAX:
            raise ValueError(f"it has more than {EXPANDED_BYTES_MAX} bytes when it is expanded")
        if not member.eof:
            raise ValueError(f"it is not all of what {encoding} wrote")
        parts.append(part)
        body = member.unused_data
    return b"".join(parts)


def compressed(body: bytes) -> bytes:
    """A body as gzip: the same bytes whenever it is compressed."""
    return gzip.compress(body, compresslevel=1, mtime=0)
