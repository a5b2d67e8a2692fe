"""What can be wrong: pieces in, findings out."""
