"""Files that Windows programs saved as UTF-16: recognized, so that they are shown as text."""

from __future__ import annotations

import codecs

# This many bytes are looked at to recognize UTF-16.
_SAMPLE_BYTES = 4_096


def utf16_coding(data: bytes) -> str | None:
    """Return the coding of UTF-16 bytes: `utf-16`, `utf-16-le` or `utf-16-be`. None for others.

    The coding is recognized by the byte order mark, or by a zero in most pairs of bytes.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = data[:_SAMPLE_BYTES]
    if len(data) % 2 or b"\0" not in sample:
        return None
    # In most languages, the high byte of nearly every character is zero
    pairs = len(sample) // 2
    zeros_first = sample[::2].count(0)
    zeros_second = sample[1::2].count(0)
    if 2 * zeros_second > pairs and not zeros_first:
        return "utf-16-le"
    if 2 * zeros_first > pairs and not zeros_second:
        return "utf-16-be"
    return None


def utf16_text(data: bytes) -> str | None:
    """Return the text of UTF-16 bytes, without the byte order mark. None for any other bytes."""
    coding = utf16_coding(data)
    if coding is None:
        return None
    try:
        return data.decode(coding)
    except UnicodeDecodeError:
        return None
