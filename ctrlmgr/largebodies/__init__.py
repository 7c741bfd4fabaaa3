"""Handles requests with large bodies in a separate worker process.

The server sends such a request as a job (`jobs`) to a process (`worker`). The process has the same kinds and the same
admission, created from the same `blueprint`, and runs the same operation of the engine. The server answers its reads of
the state and its commands over a socket (`messages`, `server_state`).

Guarantees: a request has the same result in both processes. The worker can be killed at any moment: only what the
server has appended is in the log.
"""
