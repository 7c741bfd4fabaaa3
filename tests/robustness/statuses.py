"""Checks that errors have the required form."""

from __future__ import annotations

from tests.robustness.hostile.raw import Reply


def is_status(reply: Reply) -> bool:
    """Return whether an error is a Status with the code of the response, without internal details."""
    fields = reply.fields
    told = (fields["kind"], fields["apiVersion"], fields["status"], fields["code"])
    return told == ("Status", "v1", "Failure", reply.code) and "Traceback" not in fields["message"]
