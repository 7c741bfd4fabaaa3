"""The parts that benchmarks share: servers, loads and limits that run in their own processes."""
