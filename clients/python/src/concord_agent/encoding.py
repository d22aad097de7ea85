"""Bodies of messages that travel compressed: the header `Content-Encoding`."""

from __future__ import annotations

import gzip
import importlib
import zlib
from collections.abc import Mapping
from typing import Any


def _zstd() -> Any:
    """The module that reads zstd: in the standard library from Python 3.14 on, before that with the extra `zstd`."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


_ZSTD = _zstd()

#: The header that says how a body is compressed.
CONTENT_ENCODING = "Content-Encoding"
#: What this library reads, for the agent's card.
READ = ("gzip", "zstd") if _ZSTD else ("gzip",)
#: The window of zstd that is read, as a power of two: 8 MiB, as its own specification recommends.
_WINDOW_LOG_MAX = 23
#: Most bytes of a message, counted before it is compressed.
EXPANDED_BYTES_MAX = 1_048_576
#: Most parts of a compressed body. Writers write one; a body of nothing but empty ones would be read for seconds.
PARTS_MAX = 1_024


def plain(body: bytes, headers: Mapping[str, str] | None) -> bytes:
    """A body as it was before it was compressed.

    Raises:
        ValueError: it is in an encoding that is not read here, cut short, or expands to more than a message may have.
    """
    encoding = ((headers or {}).get(CONTENT_ENCODING) or "identity").strip().lower()
    if encoding == "identity":
        return body
    if encoding not in READ:
        hint = "; install concord-agent[zstd]" if encoding == "zstd" else ""
        raise ValueError(f"its encoding {encoding!r} is not read here{hint}")
    parts, size = [], 0
    while body:
        member, wrong = _member(encoding)
        try:
            part = member.decompress(body, EXPANDED_BYTES_MAX - size + 1)
        except wrong as why:
            raise ValueError(f"it is not {encoding}: {why}") from why
        size += len(part)
        if size > EXPANDED_BYTES_MAX:
            raise ValueError(f"it has more than {EXPANDED_BYTES_MAX} bytes when it is expanded")
        if not member.eof:
            raise ValueError(f"it is not all of what {encoding} wrote")
        parts.append(part)
        if len(parts) > PARTS_MAX:
            raise ValueError(f"it has more than {PARTS_MAX} parts")
        body = member.unused_data
    return b"".join(parts)


def _member(encoding: str) -> tuple[Any, type[Exception]]:
    """What reads one part of a body, and how it says that it cannot."""
    if encoding == "zstd":
        window = {_ZSTD.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX}
        return _ZSTD.ZstdDecompressor(options=window), _ZSTD.ZstdError
    # With the header and the checksum of gzip.
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), zlib.error


def compressed(body: bytes) -> bytes:
    """A body as gzip: the same bytes whenever it is compressed."""
    return gzip.compress(body, compresslevel=1, mtime=0)
