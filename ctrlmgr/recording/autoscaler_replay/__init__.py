"""Repeats decisions of recorded controllers with ours, if the recording contains the inputs of the decision."""
