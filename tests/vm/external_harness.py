"""An agent of its own: MCP servers from a file like any client's, a task in words, no cua_gym.

It does the task ``slowest-request`` by both bridges, as a model's client would.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main(config: Path, instruction: str) -> None:
    """Find the slowest request with the shell, write the report in the editor, submit."""
    async with AsyncExitStack() as stack:
        clients = {}
        for name, server in json.loads(config.read_text())["mcpServers"].items():
            http = httpx2.AsyncClient(headers=server["headers"], timeout=300, trust_env=False)
            transport = streamable_http_client(server["url"], http_client=http)
            await stack.enter_async_context(http)
            clients[name] = await stack.enter_async_context(Client(transport))
        desktop, shell = clients["cua-gym-desktop"], clients["cua-gym-shell"]
        match = re.search(r"/\S+\.log", instruction)
        assert match
        folder = Path(match[0]).parent
        sort = f"awk '$4 == 200 {{print $6 + 0, $5}}' {match[0]} | sort -n | tail -n 1"
        found = await shell.call_tool("run", {"command": sort})
        duration, request = found.structured_content["stdout"].split()
        report = await shell.call_tool("read_file", {"path": f"{folder}/report.txt"})
        text = report.structured_content["text"].replace("ID", request).replace("MS", duration)
        await desktop.call_tool("key", {"combo": "ctrl+a"})
        await desktop.call_tool("type", {"text": text})
        await desktop.call_tool("key", {"combo": "ctrl+s"})
        saved = f"until grep -q {request} {folder}/report.txt; do sleep 0.3; done"
        await shell.call_tool("run", {"command": saved})
        print((await desktop.call_tool("submit")).content[0].text)


anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]).read_text())
