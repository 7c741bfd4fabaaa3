"""The audit log: which requests are recorded, at which level, and by which backends.

`policy` decides on a request, `request_record` collects its facts, `audit_event` encodes them, and `log_file` and
`batches` deliver them. This package does not know HTTP; `ctrlmgr.server.auditing` is the step that every request passes
through.
"""
