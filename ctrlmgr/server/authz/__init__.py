"""Authorizers of the configuration file, and those that ask other processes."""
