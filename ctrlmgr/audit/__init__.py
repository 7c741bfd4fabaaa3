"""The audit log decides which requests are recorded at which level, and delivers audit events to backends.

`policy` decides whether a request is recorded, `request_record` collects the facts about the request, `audit_event`
encodes events, and `log_file` and `batches` deliver events. This package does not depend on HTTP;
`ctrlmgr.server.auditing` is the step of the server that audits every request.
"""
