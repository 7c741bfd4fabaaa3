"""What is served beside resources: health, metrics, debugging."""
