"""Controllers that compact the log according to the retention settings."""
