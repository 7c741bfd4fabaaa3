"""Commands that show the contents of the log and the causes of changes in the log."""
