"""Sends generated requests for every operation in a server's OpenAPI documents: `python -m
tests.robustness.hostile.fuzz`.

The options are `--seconds 300 --seed N`. The script prints the status codes and the memory of the server after each
round. The exit code is 1 after an internal error, a missing response, or a growth of memory by more than `GROWTH`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.robustness.exchange import RequestAndResponse
from tests.robustness.faults import new_seed
from tests.robustness.histories.run import server_of
from tests.robustness.operations import Operation, operations
from tests.robustness.places import on_sqlite
from tests.robustness.questions import Question, Questions
from tests.robustness.serving import ConfiguredServer
from tests.robustness.verdicts import say

GROWTH = 48 << 20
"""Maximum number of bytes by which the server's resident memory may grow in the second half of the rounds."""

SETTINGS = "[watch_cache]\ncapacity = 500\n"
"""Settings that limit the number of past changes which the server keeps."""

_TIMES: Mapping[str, int] = {"POST": 4, "PUT": 3, "PATCH": 4, "GET": 1, "DELETE": 1}
"""The number of requests for each operation in one round."""

_WATCHES = 3
"""The number of tested watch operations in one round; each takes a second."""

_TRACEBACK = 6000
"""The number of characters of a traceback that are printed."""

UNEXPECTED = "Internal error occurred: something unexpected went wrong"


class Fuzzer:
    """A client that sends requests to a server, and checks the responses."""

    def __init__(self, server: ConfiguredServer, seed: int) -> None:
        """Read the operations of `server` from its OpenAPI documents."""
        self._server = server
        self._exchange = RequestAndResponse(server, "fuzz")
        self._choice = random.Random(seed)
        self.operations: list[tuple[Operation, Questions]] = []
        self.answers: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        """The responses with a status code of 500 or more that Kubernetes would also send."""
        self.wrong: list[str] = []
        for document in documents(server):
            questions = Questions(document.get("components", {}).get("schemas", {}), self._choice)
            self.operations += [(each, questions) for each in operations(document)]

    def round(self, only: int = 0) -> int:
        """Send requests for every operation, or for this number of operations; return the number of requests."""
        asked = [each for each in self.operations for _ in range(_TIMES[each[0].method]) if not each[0].is_watch]
        self._choice.shuffle(asked)
        watches = [each for each in self.operations if each[0].is_watch]
        some = asked[:only] if only else asked + self._choice.sample(watches, min(_WATCHES, len(watches)))
        for operation, questions in some:
            self.ask(operation, questions)
        return len(some)

    def ask(self, operation: Operation, questions: Questions) -> None:
        """Send one request, and check the response."""
        question = questions.about(operation)
        try:
            code, body = self._exchange.ask(question.method, question.path, question.body, question.headers)
        except (OSError, http.client.HTTPException) as error:
            self._complain(question, f"no answer: {error!r}")
            return
        self.answers[f"{question.method} {code}"] += 1
        fields = _fields(body)
        if code >= 400:
            self._judge(question, code, fields, body)
        elif isinstance(fields, dict) and fields.get("metadata", {}).get("name") and question.method != "DELETE":
            questions.remember(question.collection, fields)

    def _judge(self, question: Question, code: int, fields: Any, body: bytes) -> None:
        is_status = isinstance(fields, dict) and fields.get("kind") == "Status" and fields.get("code") == code
        if not is_status and not (code == 404 and body == b"404 page not found\n"):
            self._complain(question, f"{code} without a Status: {body[:300]!r}")
        elif code == 500 and fields["message"].startswith(UNEXPECTED):
            self._complain(question, f"500 {fields['message']}")
        elif code >= 500:
            told = re.sub(r'"[^"]*"|\d+', "…", fields["message"])
            self.faults[f"{question.method} {code} {told[:150]}"] += 1

    def _complain(self, question: Question, words: str) -> None:
        self.wrong.append(
            f"{words}\n  {question.method} {question.path}\n  {question.headers} {question.body[:2000]!r}"
        )

    def close(self) -> None:
        """Hang up."""
        self._exchange.close()


def documents(server: ConfiguredServer) -> list[Any]:
    """Return the OpenAPI v3 documents of a server."""
    code, index = server.request("GET", "/openapi/v3")
    assert code == 200, index
    return [server.request("GET", each["serverRelativeURL"])[1] for each in index["paths"].values()]


def _fields(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def main() -> int:
    """Run the test with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="for how long there are requests")
    parser.add_argument("--seed", type=int, help="for repeating a run")
    arguments = parser.parse_args()
    seed = new_seed() if arguments.seed is None else arguments.seed
    say(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-fuzz-") as folder:
        server = server_of(on_sqlite(Path(folder), settings=SETTINGS))
        try:
            server.start()
            for name in ("fuzz-a", "fuzz-b"):
                server.create("/api/v1/namespaces", {"metadata": {"name": name}})
            return _run(server, seed, arguments.seconds)
        finally:
            server.close()


def _run(server: ConfiguredServer, seed: int, seconds: float) -> int:
    fuzzer = Fuzzer(server, seed)
    say(f"{len(fuzzer.operations)} operations, {server.resident() >> 20} MiB")
    began, sizes, told = time.monotonic(), list[int](), 0
    while (elapsed := time.monotonic() - began) < seconds:
        count = fuzzer.round()
        sizes.append(server.resident())
        say(f"{elapsed:5.0f} s: {count} requests, {sizes[-1] >> 20} MiB, {len(fuzzer.wrong)} complaints")
        for each in fuzzer.wrong[told:]:
            say(f"WRONG {each}")
        told = len(fuzzer.wrong)
    fuzzer.close()
    server.stop()
    grown = max(sizes) - sizes[len(sizes) // 2]
    say(", ".join(f"{count} {answer}" for answer, count in sorted(fuzzer.answers.items())))
    for fault, count in fuzzer.faults.most_common():
        say(f"{count} times {fault}")
    say(f"grown by {grown >> 10} KiB since half of the rounds, the bound is {GROWTH >> 10}")
    _, *tracebacks = server.log.split("Traceback")
    for each in tracebacks:
        say(f"WRONG Traceback{each[:_TRACEBACK]}")
    say(f"{len(tracebacks)} tracebacks in the log, {len(fuzzer.wrong)} complaints")
    return 1 if fuzzer.wrong or tracebacks or grown > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
