"""Handles requests with large bodies in a separate worker process.

The server sends such a request as a job (`jobs`) to the worker process (`worker`). Server and worker create the same
kinds and the same admission from one `blueprint`, and run the same operation of the engine. The worker reads the
server's state and sends the operation's commands over a socket (`messages`, `server_state`).

Guarantees: a request has the same result in both processes. The worker can be killed at any moment, because only the
server appends to the log.
"""
