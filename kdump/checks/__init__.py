"""What can be wrong: regions in, findings out."""
