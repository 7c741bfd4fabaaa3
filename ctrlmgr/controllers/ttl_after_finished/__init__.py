"""Deletes finished Jobs when their time to live is over."""
