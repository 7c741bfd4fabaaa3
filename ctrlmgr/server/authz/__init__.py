"""Authorizers that the configuration file defines, and authorizers that call other processes."""
