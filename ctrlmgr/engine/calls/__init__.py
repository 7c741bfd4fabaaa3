"""Calls to other processes: requests and replies, the addresses of webhooks, and the meaning of failures.

Code that needs an answer from another process yields a `CallOut`; a driver of the engine makes the calls
(`engine.operations`).
"""
