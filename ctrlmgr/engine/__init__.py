"""The engine: one set of verbs for every kind of object, on top of the event log.

A write passes through these modules, in this order: `schema` decodes the body. `patch` or `managedfields` applies a
patch to the stored object. The kind's `strategy` defaults, prepares and validates the object. `engine` turns the object
into proposals and appends them. The `cacher`, which holds the log's current state, answers reads and watches.
"""
