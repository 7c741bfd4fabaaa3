"""One benchmark for each claim: `python -m bench.NAME`, or `scripts/bench` for all of them."""
