"""The controllers.

Each controller has a pure function that decides the desired objects, and a reconciler that writes the difference
between the desired and the current objects.
"""
