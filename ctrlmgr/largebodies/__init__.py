"""Requests with large bodies, carried out in a process of their own.

The server passes such a request on as a job (`jobs`). The process (`worker`) has the same kinds and the same admission,
made from the same `blueprint`, and runs the same operation of the engine. What that reads of the state, and the
commands that it yields, are answered by the server over a socket (`messages`, `remote`).

Guarantees: a request has the same answer here and there. The process can be killed at any moment: what it has not had
the server append is not in the log.
"""
