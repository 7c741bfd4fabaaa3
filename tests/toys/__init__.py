"""A small controller and a kind, each in one file, as an example of the effort to add one."""
