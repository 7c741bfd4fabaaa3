"""The decisions of the NodeRestriction plugin about writes of nodes."""
