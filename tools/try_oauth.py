"""A connector's way in: the MCP SDK's own OAuth client, and a person who says yes on the consent
page in a browser.

    pip install playwright      # with a Chromium; by hand, never in CI
    python tools/try_oauth.py [CHROMIUM]

Everything happens in a home made for it, on this machine. First a wrong token is pasted, then the
right one.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from playwright.async_api import Request, async_playwright

BACK = "https://claude.ai/api/mcp/auth_callback"
COMMAND = [sys.executable, "-m", "memoranda"]


class Storage:
    """What the client remembers."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def connect(address: str, secret: str, chromium: str) -> None:
    landed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def browser(url: str) -> None:
        async with async_playwright() as play:
            engine = await play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = await engine.new_page()
            problems: list[str] = []
            page.on("console", lambda message: problems.append(message.text))

            def seen(request: Request) -> None:
                if request.url.startswith(BACK) and not landed.done():
                    landed.set_result(request.url)

            page.on("request", seen)
            await page.route(
                BACK + "*", lambda route: route.fulfill(status=200, body="back at the client")
            )
            await page.goto(url)
            print("consent page:", " ".join((await page.inner_text("p >> nth=0")).split()))
            await page.fill("input[name=token]", "cpl_wrong")
            await page.click("button[value=allow]")
            print("wrong token: ", " ".join((await page.inner_text("body")).split())[:400])
            await page.fill("input[name=token]", secret)
            await page.click("button[value=allow]")
            await asyncio.wait_for(asyncio.shield(landed), 30)
            print("console:     ", problems or "silent")
            await engine.close()

    async def back() -> AuthorizationCodeResult:
        parameters = httpx2.URL(await landed).params
        return AuthorizationCodeResult(
            code=parameters["code"], state=parameters.get("state"), iss=parameters.get("iss")
        )

    about = OAuthClientMetadata(redirect_uris=[BACK], client_name="Claude", scope="write")
    auth = OAuthClientProvider(address + "/mcp", about, Storage(), browser, back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        Client(streamable_http_client(address + "/mcp", http_client=http)) as client,
    ):
        print("tools:       ", len((await client.list_tools()).tools))
        result = await client.call_tool(
            "write_note", {"title": "Ferry", "content": "At noon.", "directory": "facts"}
        )
        print("written:     ", not result.is_error)


def main() -> None:
    if len(sys.argv) > 1:
        chromium = sys.argv[1]
    else:
        chromium = "/usr/bin/chromium"
    with tempfile.TemporaryDirectory() as folder:
        home_options = ["--home", str(Path(folder) / "home")]
        token = subprocess.check_output(
            [*COMMAND, *home_options, "token", "add", "web", "--as-agent", "claude", "--json"]
        )
        with subprocess.Popen(
            [
                *COMMAND,
                *home_options,
                "serve",
                "--http",
                "127.0.0.1:18401",
                "--public-url",
                "http://127.0.0.1:18401",
            ],
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            try:
                assert server.stdout is not None
                line = next(
                    output_line for output_line in server.stdout if "http://" in output_line
                )
                match = re.search(r"http://[^/\s]+", line)
                assert match is not None
                asyncio.run(connect(match[0], json.loads(token)["secret"], chromium))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
