"""The engine: one set of verbs for every kind of object, over the event log.

In the order a write travels: `schema` decodes a body; a patch from `patch` or `managedfields` changes what is stored;
the kind's `strategy` defaults, prepares and validates it; the `engine` turns it into proposals and appends them. Reads
and watches are answered by `cacher`, the log's current state.
"""
