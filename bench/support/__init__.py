"""Parts of benchmarks: servers, loads and limits that run in their own processes."""
