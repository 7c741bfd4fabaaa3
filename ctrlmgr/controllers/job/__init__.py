"""The Job controller: runs pods until enough of them have succeeded, and counts each of them once."""
