"""Events (the API objects): how controllers record them, merge repeated ones, and when they expire."""
