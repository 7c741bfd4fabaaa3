"""Controllers as a process of their own against any Kubernetes API server, ours among them.

The same controllers run here as inside `serve`; what is different is what they are built from. `api` is the server over
HTTP, `stream` one resource of it listed and watched, `informers` the caches that follow from the streams, `client` and
`log` what controllers write through and look things up in, `process` all of it put together.
"""
