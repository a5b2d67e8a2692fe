"""What the log cleaner does next: the part it would clean, whether it is due, and what it removes."""
