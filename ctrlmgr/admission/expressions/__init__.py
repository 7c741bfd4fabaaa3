"""CEL expressions about writes: their variables, and the evaluation of match conditions and policies."""
