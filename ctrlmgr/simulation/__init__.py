"""Simulates pods on nodes without containers, with pure functions of a pod, its behaviour, and the time.

Guarantees: nothing is executed, no clock is read, and random numbers depend only on the seed. A pod's lifecycle, status
and logs depend only on the arguments of the simulation.
"""
