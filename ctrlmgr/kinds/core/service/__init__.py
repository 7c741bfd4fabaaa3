"""Service: its defaults, validation and the addresses and ports that it is given."""
