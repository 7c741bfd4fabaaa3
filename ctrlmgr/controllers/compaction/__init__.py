"""Controllers that compact the log as the retention settings require."""
