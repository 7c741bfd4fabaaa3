"""Simulates pods on nodes without containers, with pure functions of a pod, its behaviour, and the time.

Guarantees: nothing is executed, no clock is read, and random numbers depend only on the seed. The same arguments always
yield the same lifecycle, status and logs of a pod.
"""
