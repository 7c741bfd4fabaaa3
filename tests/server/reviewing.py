"""A server that responds to reviews, and a kubeconfig that leads to this server."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path
from typing import Any

import yaml

from tests.json_handler import JsonHandler


def kubeconfig(folder: Path, url: str) -> Path:
    """Write a kubeconfig whose current context leads to a server."""
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    file = folder / "reviews.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


class ReviewServer:
    """A server that responds to reviews with `status`, after `failures` responses with status code 500."""

    def __init__(self, kind: str, status: Any) -> None:
        self.asked: list[Any] = []
        self.status = status
        self.failures = 0
        review_server = self

        class Handler(JsonHandler):
            def respond(self) -> None:
                review_server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                fails, review_server.failures = review_server.failures > 0, review_server.failures - 1
                self.answer({"kind": kind, "status": review_server.status}, 500 if fails else 200)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/review"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
