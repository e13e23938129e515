"""Files that Windows programs saved as UTF-16: recognized, so that they are shown as text."""

from __future__ import annotations

import codecs

# Bytes looked at to recognise UTF-16.
_SAMPLE = 4_096


def utf16_coding(data: bytes) -> str | None:
    """The coding of these bytes when they are UTF-16, told by the byte order mark, or by a zero in
    most pairs of bytes; else None."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = data[:_SAMPLE]
    if len(data) % 2 or b"\0" not in sample:
        return None
    pairs = len(sample) // 2
    low = sample[::2].count(0)
    high = sample[1::2].count(0)
    if 2 * high > pairs and not low:
        return "utf-16-le"
    if 2 * low > pairs and not high:
        return "utf-16-be"
    return None


def utf16_text(data: bytes) -> str | None:
    """The text of these bytes when they are UTF-16, without its byte order mark; else None."""
    coding = utf16_coding(data)
    if coding is None:
        return None
    try:
        return data.decode(coding)
    except UnicodeDecodeError:
        return None
