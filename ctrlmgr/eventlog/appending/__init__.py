"""Appends on their way into a log: from what was asked, through a line, to a group that one thread commits."""
