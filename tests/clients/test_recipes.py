"""The programs of samples/frameworks with fake models: each model asks for `write_note`, is told
that it is done, and says so. Run by `make check-frameworks`; what is not installed is skipped.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memoranda.engine import open_session

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SAMPLES = Path(__file__).parents[2] / "samples" / "frameworks"
NOTE = {
    "title": "Kiln",
    "content": "The kiln needs cone 6 and a slow cooling.",
    "directory": "facts",
}
PACKAGES = os.environ.get("MEMORANDA_NPM", "")
"""The folder npm installed `ai` and `@ai-sdk/mcp` into."""


def load(path: Path) -> ModuleType:
    """A program of this repository that is no module of a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_written(home: Path, answer: str) -> None:
    """The model got its tool's reply, and the note is there."""
    assert answer.strip() == "Done."
    with open_session(home, watch=False) as memory:
        assert NOTE["content"] in memory.read("facts/kiln").text


def test_openai_agents_use_the_memory_over_mcp(tmp_path: Path) -> None:
    pytest.importorskip("agents", reason="openai-agents is not installed: make check-frameworks")
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class FakeModel(Model):
        async def get_response(self, *_: Any, input: Any, tools: Any, **__: Any) -> ModelResponse:
            if any("Kiln" in str(item.get("output", "")) for item in input):
                text = ResponseOutputText(text="Done.", type="output_text", annotations=[])
                message = {"id": "m", "role": "assistant", "status": "completed", "type": "message"}
                return ModelResponse(
                    [ResponseOutputMessage(content=[text], **message)], Usage(), None
                )
            assert "write_note" in [tool.name for tool in tools]
            call = {
                "name": "write_note",
                "arguments": json.dumps(NOTE),
                "call_id": "c",
                "type": "function_call",
            }
            return ModelResponse([ResponseFunctionToolCall(**call)], Usage(), None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    recipe = load(SAMPLES / "openai_agents_mcp.py")
    check_written(tmp_path, asyncio.run(recipe.main("Keep this.", str(tmp_path), FakeModel())))


def test_pydantic_ai_uses_the_memory_over_mcp(tmp_path: Path) -> None:
    pytest.importorskip(
        "pydantic_ai.mcp", reason="pydantic-ai is not installed: make check-frameworks"
    )
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: Any, info: Any) -> Any:
        if any(
            "Kiln" in str(part.content)
            for part in messages[-1].parts
            if part.part_kind == "tool-return"
        ):
            return ModelResponse(parts=[TextPart("Done.")])
        assert "write_note" in [tool.name for tool in info.function_tools]
        return ModelResponse(parts=[ToolCallPart("write_note", NOTE)])

    recipe = load(SAMPLES / "pydantic_ai_mcp.py")
    check_written(
        tmp_path, asyncio.run(recipe.main("Keep this.", str(tmp_path), FunctionModel(answer)))
    )


def test_the_claude_agent_sdk_uses_the_memory_over_mcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(
        "claude_agent_sdk", reason="claude-agent-sdk is not installed: make check-frameworks"
    )
    import try_clients as fake

    monkeypatch.setattr(fake.Model, "writer", "claude")
    monkeypatch.setattr(fake, "_note", lambda _: NOTE)
    server = ThreadingHTTPServer(("127.0.0.1", 0), fake.Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    quiet = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for name, value in {
        "HOME": str(tmp_path),
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "sk-fake",
        **dict.fromkeys(quiet, "1"),
    }.items():
        monkeypatch.setenv(name, value)
    try:
        recipe = load(SAMPLES / "claude_agent_sdk.py")
        output = asyncio.run(
            asyncio.wait_for(recipe.main("Keep this.", str(tmp_path / "memory")), 120)
        )
        check_written(tmp_path / "memory", output)
    finally:
        server.shutdown()
    assert NOTE["content"] in fake.Model.bodies[-1][1]


ASK = """
import { ask } from "./vercel_ai.mjs";
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const model = {
  specificationVersion: "v3", provider: "fake", modelId: "fake", supportedUrls: {},
  async doGenerate({ prompt, tools }) {
    const told = prompt.some((each) => each.role === "tool" && JSON.stringify(each.content).includes("Kiln"));
    const done = { content: [{ type: "text", text: "Done." }], finishReason: { unified: "stop" }, usage, warnings: [] };
    if (told) return done;
    if (!tools.some((tool) => tool.name === "write_note")) throw new Error("no write_note");
    const call = { type: "tool-call", toolCallId: "c", toolName: "write_note", input: NOTE };
    return { content: [call], finishReason: { unified: "tool-calls" }, usage, warnings: [] };
  },
};
console.log(await ask(model, "Keep this.", ...JSON.parse(process.argv[2])));
"""


def test_the_vercel_ai_sdk_uses_the_memory_over_mcp(tmp_path: Path) -> None:
    if not (Path(PACKAGES) / "node_modules" / "ai").exists() or shutil.which("node") is None:
        pytest.skip("the Vercel AI SDK is not installed: make check-frameworks")
    folder = Path(PACKAGES) / "recipe"
    folder.mkdir(exist_ok=True)
    shutil.copy(SAMPLES / "vercel_ai.mjs", folder)
    note = json.dumps(json.dumps(NOTE))
    (folder / "ask.mjs").write_text(ASK.replace("NOTE", note), "utf-8")
    server = [sys.executable, ["-m", "memoranda", "--home", str(tmp_path), "mcp"]]
    process = subprocess.run(
        ["node", "ask.mjs", json.dumps(server)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 0, process.stderr
    check_written(tmp_path, process.stdout)
