"""Checksums, without the time it takes to load OpenSSL."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

# Bytes from which OpenSSL is worth being loaded.
_LARGE_BYTES = 500_000
# The modules behind `hashlib`, of Python 3.12 and later, and of 3.11.
_OWN_MODULES = ("_sha2", "_sha256")


def sha256(data: bytes) -> str:
    """The SHA-256 of `data`, 64 hex digits."""
    return _hashing(len(data)).sha256(data).hexdigest()


def blake2b(data: bytes, digest_size: int) -> bytes:
    """The BLAKE2b digest of `data`, of `digest_size` bytes."""
    return _blake2().blake2b(data, digest_size=digest_size).digest()


@cache
def _blake2() -> Any:
    """The module that is behind `hashlib`: it needs no OpenSSL, which takes 3 ms to load."""
    try:
        return import_module("_blake2")
    except ImportError:
        return import_module("hashlib")


def _hashing(size: int) -> Any:
    """The module to hash `size` bytes with.

    `hashlib` is faster, but takes 3 ms to load OpenSSL. The interpreter's own module is better for
    a command that reads a few notes.
    """
    if size < _LARGE_BYTES and "hashlib" not in sys.modules:
        return _own_module()
    return import_module("hashlib")


@cache
def _own_module() -> Any:
    """The interpreter's own module, or `hashlib` if it has none."""
    for name in _OWN_MODULES:
        with suppress(ImportError):
            return import_module(name)
    return import_module("hashlib")
