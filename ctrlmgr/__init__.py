"""An event-sourced controller manager: a Kubernetes control plane whose only memory is an event log.

The packages in the order an event travels:

- `api`: what an object is: names, metadata, bodies.
- `eventlog`: the one totally ordered log of changes, on SQLite, PostgreSQL or in memory. Everything else reads it.
- `informer`: the watch cache, the one bounded history that all readers share, and the caches folded from it.
- `workqueue`: which keys need a look, each by one worker at a time.
- `manager`: controllers (watches, queue, workers), periodic work, and the phases things start and stop in.
- `controllers`: what is decided, as pure functions, and the reconcilers that act on it through `client`.
- `recording`: a real cluster's watch stream as a file, and its replay through all of the above.
- `server`: health and metrics over HTTP.
- `serve`, `cli`: settings in, a running process out.
"""

__version__ = "0.1.0"
