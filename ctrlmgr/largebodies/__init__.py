"""Handles requests with large bodies in a separate worker process, so that the requests do not delay the server.

The server sends a request with a large body as a job (`jobs`) to the worker process (`worker`). Server and worker
create equal kinds and equal admission from one `blueprint`. For a given request, both would run the same operation of
the engine. The worker reads the server's state and sends the operation's commands over a socket (`messages`,
`server_state`).

Guarantees: a request that the worker process handles has the result that it would have in the server process. The
worker can be killed at any time, because only the server appends to the log.
"""
