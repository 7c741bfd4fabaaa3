"""A controller and a kind that nobody needs, each in one file: what it takes to add one."""
