"""The certificates and keys of a serving process, which processes with one identity directory share."""
