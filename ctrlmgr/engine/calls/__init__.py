"""Calls of other processes: requests and replies, the addresses of webhooks, and the interpretation of failures.

Code that needs an answer from another process yields a `CallOut`. A driver of the engine then makes the calls of the
`CallOut` (`engine.operations`).
"""
