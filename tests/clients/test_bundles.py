"""The plugin, the extension, the bundle and the registry's file say what the program is."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from commonplace import __version__
from commonplace.clients.table import agents_md, clients

pytestmark = pytest.mark.promise("install-5")

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugin"
MANIFESTS = {
    "marketplace": ROOT / ".claude-plugin" / "marketplace.json",
    "plugin": PLUGIN / ".claude-plugin" / "plugin.json",
    "gemini": PLUGIN / "gemini" / "gemini-extension.json",
    "mcpb": PLUGIN / "mcpb" / "manifest.json",
    "registry": ROOT / "server.json",
}


def load(name: str) -> Any:
    return json.loads(MANIFESTS[name].read_text("utf-8"))


def test_all_have_the_programs_version() -> None:
    (listed,) = load("marketplace")["plugins"]
    (package,) = load("registry")["packages"]
    bundle = tomllib.loads((PLUGIN / "mcpb" / "pyproject.toml").read_text("utf-8"))["project"]
    found = [load(name)["version"] for name in ("plugin", "gemini", "mcpb", "registry")]
    assert {*found, listed["version"], package["version"], bundle["version"]} == {__version__}
    assert bundle["dependencies"] == [f"commonplace>={__version__}"]


def test_the_marketplace_leads_to_the_plugin() -> None:
    (listed,) = load("marketplace")["plugins"]
    assert (ROOT / listed["source"]).resolve() == PLUGIN
    assert (listed["name"], load("marketplace")["name"]) == (load("plugin")["name"], "commonplace")
    assert clients()["claude-code"].plugin["key"][-1] == "commonplace@commonplace"


@pytest.mark.parametrize(("name", "client"), [("plugin", "claude-code"), ("gemini", "gemini-cli")])
def test_a_bundle_brings_the_server_and_hooks_that_install_writes(name: str, client: str) -> None:
    known = clients()[client]
    wanted = {key: value for key, value in known.stdio.items() if key not in ("command", "args")}
    assert load(name)["mcpServers"] == {"memory": {**wanted, "command": "memory", "args": ["mcp"]}}
    place = PLUGIN / ("hooks" if name == "plugin" else "gemini/hooks") / "hooks.json"
    hooks = json.loads(place.read_text("utf-8"))["hooks"]
    assert list(hooks) == known.hooks["events"]
    commands = {each["command"] for groups in hooks.values() for group in groups for each in group["hooks"]}
    assert commands == {f"memory hook {client} 2>/dev/null || true"}


def test_the_registrys_file_fits_its_limits_and_the_readme_claims_it() -> None:
    server = load("registry")
    assert len(server["description"]) <= 100
    assert f"mcp-name: {server['name']} " in (ROOT / "README.md").read_text("utf-8")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    (package,) = server["packages"]
    assert package["identifier"] in scripts  # which is what its runner starts
    assert package["packageArguments"] == [{"type": "positional", "value": "mcp"}]


def test_the_skill_says_when_it_is_for() -> None:
    head, _, body = (
        (PLUGIN / "skills" / "memory" / "SKILL.md").read_text("utf-8").removeprefix("---\n").partition("---\n")
    )
    about = yaml.safe_load(head)
    assert about["name"] == "memory"
    assert "Use when" in about["description"]
    assert len(about["description"]) <= 1024
    assert len(body.split()) < 400


def test_the_context_file_of_gemini_is_the_paragraph_for_agents_that_install_writes() -> None:
    name = load("gemini")["contextFileName"]
    assert (PLUGIN / "gemini" / name).read_bytes() == (PLUGIN / "AGENTS.md").read_bytes()
    assert agents_md(ROOT).stdio["text"] == (PLUGIN / "AGENTS.md").read_text("utf-8").strip()
