"""One runnable benchmark a claim: `python -m bench.NAME`, or `scripts/bench` for all of them."""
