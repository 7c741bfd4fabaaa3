"""A small controller and a small kind, each in one file, which show how much code is needed to add one."""
