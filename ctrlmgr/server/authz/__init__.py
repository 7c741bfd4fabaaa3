"""Contains authorizers that a configuration file defines, and authorizers that call other processes."""
