"""Tries the real clients: `python tools/check_clients.py bundles|clients [FOLDER]`. By hand; `make
check-bundles`.

FOLDER (default: one in the system's temporary folder) keeps what npm installs. A home
below it is used, so that the person's own files stay untouched. `bundles`: the plugin, the extension and
the bundle of this checkout are checked by the programs they are for. `clients`: `memory install`,
then each client is asked what it reads, then `memory uninstall`, which must leave every file as it
was. Where npm or a package is missing, a line says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "gemini": "@google/gemini-cli",
    "mcpb": "@anthropic-ai/mcpb",
    "codex": "@openai/codex",
    "opencode": "opencode-ai",
    "copilot": "@github/copilot",
}
SCRIPTS = {"claude": "install.cjs", "opencode": "postinstall.mjs"}
"""What npm runs after installing, unless it is told not to."""
CHECKS = [
    ("claude", ["plugin", "validate", str(ROOT)]),
    ("claude", ["plugin", "validate", str(ROOT / "plugin")]),
    ("gemini", ["extensions", "validate", str(ROOT / "plugin" / "gemini")]),
    ("mcpb", ["validate", str(ROOT / "plugin" / "mcpb" / "manifest.json")]),
]
PLUGIN = [
    ("claude", ["plugin", "marketplace", "add", str(ROOT)], ""),
    ("claude", ["plugin", "install", "memoranda@memoranda"], ""),
    ("claude", ["mcp", "list"], "plugin:memoranda:memory"),
    ("codex", ["plugin", "marketplace", "add", str(ROOT)], ""),
    ("codex", ["plugin", "add", "memoranda@memoranda"], ""),
    ("codex", ["mcp", "list"], "memory"),
    ("copilot", ["plugin", "marketplace", "add", str(ROOT)], ""),
    ("copilot", ["plugin", "install", "memoranda@memoranda"], "1 skill"),
    ("gemini", ["extensions", "install", str(ROOT / "plugin" / "gemini"), "--consent"], ""),
]
READS = [
    ("claude", ["mcp", "list"], "Connected"),
    ("codex", ["mcp", "get", "memory", "--json"], '"enabled": true'),
    ("opencode", ["mcp", "list"], "connected"),
    ("gemini", ["mcp", "list"], "memory: "),
    ("copilot", ["mcp", "list"], "memory (local)"),
]
FILES = {
    ".codex/config.toml": '# mine\nmodel = "gpt-5" # fast\n\n[mcp_servers.other] # kept\ncommand = "true"',
    ".gemini/settings.json": '{\r\n\t// mine\r\n\t"ui": {"theme": "GitHub"}\r\n}',
    ".config/opencode/opencode.jsonc": '{\n  "$schema": "https://opencode.ai/config.json",\n  // me\n  "mcp": {},\n}\n',
    ".config/zed/settings.json": '// Zed\n{\n  "theme": "One Dark", // dark\n  "context_servers": {\n  },\n}\n',
    ".cursor/mcp.json": '{"mcpServers": {"other": {"command": "true"} /* kept */}}',
    ".config/goose/config.yaml": "# mine\nextensions:\n  developer:   # built in\n    enabled: true\nGOOSE_MODEL: x\n",
    ".continue/config.yaml": "name: mine\nmcpServers:\n- name: other\n  command: 'true'\n# end",
}


class Scratch:
    """The folder of the programs, and a home in it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.home = folder / "home"
        self.failed = 0
        shutil.rmtree(self.home, ignore_errors=True)
        (self.home / "work").mkdir(parents=True)

    def has(self, program: str) -> bool:
        """Whether the program is there, installed from npm if need be."""
        if (self.folder / "node_modules" / ".bin" / program).exists():
            return True
        if shutil.which("npm") is None:
            print(f"skipped: {program} (there is no npm here)")
            return False
        package = PACKAGES[program]
        install = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(self.folder), package],
            capture_output=True,
            text=True,
        )
        if install.returncode:
            print(
                f"skipped: {program} (npm could not install {package}: {install.stderr.strip().splitlines()[-1:]})"
            )
            return False
        place = self.folder / "node_modules" / package
        if program in SCRIPTS and (place / SCRIPTS[program]).exists():
            subprocess.run(["node", SCRIPTS[program]], cwd=place, capture_output=True, check=False)
        return True

    def run(self, program: str, arguments: Sequence[str], expected: str = "") -> str:
        """Run a program in the home; a line says whether it ended well and printed what was
        expected.
        """
        path = [
            str(self.folder / "node_modules" / ".bin"),
            str(Path(sys.executable).parent),
            os.environ["PATH"],
        ]
        environ = {
            "PATH": os.pathsep.join(path),
            "HOME": str(self.home),
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
        process = subprocess.run(
            [program, *arguments],
            cwd=self.home / "work",
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        output = process.stdout + process.stderr
        well = process.returncode == 0 and expected in output
        self.failed += not well
        print(f"{'ok     ' if well else 'FAILED '} {program} {' '.join(arguments)}")
        if not well:
            print(output)
        return output


def bundles(scratch: Scratch) -> None:
    for program, arguments in CHECKS:
        if scratch.has(program):
            scratch.run(program, arguments)
    manifest = json.loads((ROOT / "server.json").read_text("utf-8"))
    print(
        f"skipped: server.json {manifest['version']} (its checker, mcp-publisher, is in no package registry)"
    )


def clients(scratch: Scratch) -> None:
    programs = list(filter(scratch.has, ("claude", "codex", "gemini", "opencode", "copilot")))
    for name, text in FILES.items():
        path = scratch.home / name
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
    if "claude" in programs:
        # Which makes its file
        scratch.run("claude", ["mcp", "list"])
    print(scratch.run("memory", ["install", "--all", "--no-hooks"], "13 tools"))
    for program, arguments, expected in READS:
        if program in programs:
            scratch.run(program, arguments, expected)
    scratch.run("memory", ["install", "--all"], "13 tools")
    print(scratch.run("memory", ["install"]))
    scratch.run("memory", ["uninstall", "--all"])
    for name, text in FILES.items():
        data = (scratch.home / name).read_bytes()
        is_same = data == text.encode()
        scratch.failed += not is_same
        outcome = "ok     " if is_same else "FAILED "
        print(f"{outcome} {name} is byte for byte as it was")
    for program, arguments, expected in PLUGIN:
        if program in programs:
            scratch.run(program, arguments, expected)


def main() -> int:
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    if part not in ("bundles", "clients"):
        print(__doc__)
        return 2
    folder = Path(tempfile.gettempdir()) / "memoranda-clients"
    if len(sys.argv) > 2:
        folder = Path(sys.argv[2])
    scratch = Scratch(folder.resolve())
    if part == "bundles":
        bundles(scratch)
    else:
        clients(scratch)
    return int(scratch.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
