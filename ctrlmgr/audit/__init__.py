"""The audit log: which requests are written down, how much of each, and where to.

`policy` decides, `record` notes what a request does, `event` says what is written, `log_file` and `batches` keep it.
Nothing here knows of HTTP; the step that every request passes is `ctrlmgr.server.auditing`.
"""
