"""The pod garbage collector: deletes pods that have ended or lost their node."""
