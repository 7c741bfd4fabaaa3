"""The parts of a serving process that simulate nodes: their runtime, and the metrics of their pods."""
