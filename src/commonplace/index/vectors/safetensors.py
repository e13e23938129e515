"""The weights of a model: a file of named arrays behind a JSON header (the safetensors format)."""

from __future__ import annotations

import json
from pathlib import Path

from commonplace.index.vectors.arrays import np

_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
_MOST_HEADER = 1 << 24


def read(path: Path) -> dict[str, np.ndarray]:
    """The arrays of the file by name, float32 where they are of another floating type.

    float32 arrays stay on disk and are mapped. Raises OSError, and ValueError for a file of another format.
    """
    if path.stat().st_size < 8:
        raise ValueError("it is no safetensors file")
    raw = np.memmap(path, np.uint8, "r")
    size = int(raw[:8].view("<u8")[0])
    if not 2 <= size <= min(_MOST_HEADER, raw.size - 8):
        raise ValueError("it is no safetensors file")
    try:
        header = json.loads(bytes(raw[8 : 8 + size]))
        return {name: _array(raw[8 + size :], each) for name, each in header.items() if name != "__metadata__"}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its header is damaged ({error})") from None


def _array(data: np.ndarray, about: dict) -> np.ndarray:
    start, stop = about["data_offsets"]
    array = data[start:stop].view(_TYPES[about["dtype"]]).reshape(about["shape"])
    if about["dtype"] == "BF16":
        return (array.astype("<u4") << 16).view("<f4")
    return array.astype("<f4") if about["dtype"] in ("F16", "F64") else array
