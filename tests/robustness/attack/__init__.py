"""Hostile inputs: that none costs more than it is worth, none ends in an error of the server's, none opens a door."""
