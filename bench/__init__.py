"""One benchmark for each performance claim: `python -m bench.NAME`, or `scripts/bench` for all of them."""
