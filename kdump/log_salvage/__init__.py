"""Valid batches of damaged replicas, written as new segments."""
