"""The controllers.

Each has a pure function that decides the desired objects, and a reconciler that writes the difference.
"""
