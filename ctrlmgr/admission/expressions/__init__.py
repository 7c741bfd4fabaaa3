"""CEL expressions in admission: their variables, and the evaluation of match conditions and policies."""
