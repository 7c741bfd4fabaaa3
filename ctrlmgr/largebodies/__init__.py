"""Handles requests with large bodies in a separate worker process, so that they do not delay the server.

The server sends a request with a large body as a job (`jobs`) to the worker process (`worker`). Server and worker
create equal kinds and admission from one `blueprint`, and run the same operation of the engine. The worker reads the
server's state and sends the operation's commands over a socket (`messages`, `server_state`).

Guarantees: a request has the same result in the worker process as in the server process. The worker can be killed at
any time, because only the server appends to the log.
"""
