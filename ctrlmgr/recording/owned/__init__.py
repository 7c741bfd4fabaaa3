"""How a replay tells which objects of a recording a controller owns, and compares them."""
