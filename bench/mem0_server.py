"""mem0's library as a server that bench/peers.py can ask, on stdio, with three tools.

    PYTHON bench/mem0_server.py          # PYTHON of an environment with mem0ai

It is given what it must not spend time on here: no language model (`infer=False`), and vectors of
hashed words in place of an embedding model, so each of its figures is the least that mem0 takes. The
vectors are in Qdrant's local store, below MEM0_DIR. It speaks as much of MCP as the bench needs, and
nothing of ours is imported.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

_DIMENSIONS = 384
_USER = "bench"


class HashedWords:
    """Stands in for an embedding model: each word counts in one dimension."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector = [0.0] * _DIMENSIONS
        for word in text.lower().split():
            vector[crc32(word.encode()) % _DIMENSIONS] += 1.0
        return vector

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


def opened() -> Any:
    """mem0's memory below MEM0_DIR."""
    os.environ["MEM0_TELEMETRY"] = "False"
    # Its default language model wants a key when it is made. It is never asked.
    os.environ.setdefault("OPENAI_API_KEY", "none")
    from mem0 import Memory

    folder = Path(os.environ["MEM0_DIR"])
    store = {"path": str(folder / "qdrant"), "embedding_model_dims": _DIMENSIONS, "on_disk": True}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = HashedWords()
    return memory


def main() -> None:
    memory = opened()
    ids: dict[str, str] = {}

    def add(key: str, text: str) -> object:
        added = memory.add(text, user_id=_USER, infer=False)
        ids[key] = added["results"][0]["id"]
        return added

    tools = {
        "add": add,
        "search": lambda query: memory.search(query, filters={"user_id": _USER}),
        "get": lambda key: memory.get(ids[key]),
    }
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result: dict[str, Any] = {}
        if message["method"] == "tools/call":
            call = message["params"]
            tool = tools[call["name"]]
            answer = tool(**call["arguments"])
            text = json.dumps(answer, default=str)
            result = {"content": [{"type": "text", "text": text}]}
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
