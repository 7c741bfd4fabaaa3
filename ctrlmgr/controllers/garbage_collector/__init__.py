"""The garbage collector: deletes objects whose owners are gone; foreground deletion; orphaning."""
