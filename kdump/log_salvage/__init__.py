"""Sound batches of damaged copies as fresh segments."""
