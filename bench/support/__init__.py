"""What benchmarks measure with: servers, loads and limits that run in processes of their own."""
