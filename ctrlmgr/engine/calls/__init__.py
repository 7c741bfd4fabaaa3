"""Calls to other processes: what is sent and what comes back, where a hook is, what a refusal of it means.

Code that has something to ask yields a `CallOut`; a driver of the engine makes the calls (`engine.operations`).
"""
