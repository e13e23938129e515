"""Compute checksums of small data without loading OpenSSL, which takes 3 ms."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

# From this many bytes on, OpenSSL saves more time than loading it takes.
_LARGE_BYTES = 500_000
# The interpreter's own module for SHA-256, in Python 3.12 and later, and in 3.11.
_OWN_MODULES = ("_sha2", "_sha256")


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 hexadecimal digits."""
    return _hashing(len(data)).sha256(data).hexdigest()


def blake2b(data: bytes, digest_size: int) -> bytes:
    """Return the BLAKE2b digest of `data`, which has `digest_size` bytes."""
    return _blake2().blake2b(data, digest_size=digest_size).digest()


@cache
def _blake2() -> Any:
    """Return the interpreter's own module for BLAKE2, which `hashlib` also uses.

    Importing `hashlib` would load OpenSSL, which takes 3 ms.
    """
    try:
        return import_module("_blake2")
    except ImportError:
        return import_module("hashlib")


def _hashing(size: int) -> Any:
    """Return the module that hashes `size` bytes in the least time.

    `hashlib` is faster, but loading its OpenSSL takes 3 ms. For a command that reads a few notes,
    the interpreter's own module takes less time in all.
    """
    if size < _LARGE_BYTES and "hashlib" not in sys.modules:
        return _own_module()
    return import_module("hashlib")


@cache
def _own_module() -> Any:
    """Return the interpreter's own module for SHA-256. If it has no such module, `hashlib`."""
    for name in _OWN_MODULES:
        with suppress(ImportError):
            return import_module(name)
    return import_module("hashlib")
