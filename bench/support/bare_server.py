"""The limit for the rate of the API server: the same server library, event loop and certificate, without any work.

`python -m bench.support.bare_server PORT FOLDER` responds to every request with the bytes of FOLDER/body.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import uvicorn
import uvloop


def answering(body: bytes) -> Any:
    """Return an ASGI application that responds with `body`."""
    start = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))],
    }
    answer = {"type": "http.response.body", "body": body}

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send(start)
        await send(answer)

    return application


def main(port: int, folder: Path) -> None:
    """Serve until terminated."""
    config = uvicorn.Config(
        answering((folder / "body").read_bytes()),
        host="127.0.0.1",
        port=port,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=folder / "pki" / "server.crt",
        ssl_keyfile=folder / "pki" / "server.key",
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(uvicorn.Server(config).serve())


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
