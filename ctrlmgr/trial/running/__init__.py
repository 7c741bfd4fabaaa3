"""The parts of one run: the operator's process, the administrator's client, and the end of the run."""
