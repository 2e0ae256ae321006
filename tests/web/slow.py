"""A server whose storyteller takes their time, as models do: takes the options of `talekeeper serve`."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator

import uvicorn

import talekeeper as tk
from talekeeper.server.app import create_app
from talekeeper.server.run import address_of, listen
from talekeeper.table.brain import Ask
from talekeeper.table.storyteller import Storyteller


class Slow(Storyteller):
    async def speak(self, ask: Ask) -> AsyncIterator[str]:
        async for piece in super().speak(ask):
            await asyncio.sleep(0.2)
            yield piece


async def main(file: str, port: int) -> None:
    async with tk.open(file) as keeper:
        made = listen("127.0.0.1", port, guarded=False)
        made.listen()
        print(json.dumps({"url": address_of(made)}), flush=True)
        config = uvicorn.Config(create_app(keeper, brains=Slow), lifespan="off", log_level="warning", timeout_graceful_shutdown=1)
        await uvicorn.Server(config).serve(sockets=[made])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("serve")
    parser.add_argument("--file")
    parser.add_argument("--port", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asyncio.run(main(options.file, options.port))
