"""Commands for authors of operators."""
