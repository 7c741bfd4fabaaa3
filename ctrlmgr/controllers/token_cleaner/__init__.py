"""Removes bootstrap tokens whose time is over."""
