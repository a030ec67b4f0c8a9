"""Running claimed jobs: attempts, batches, threads, processes."""
