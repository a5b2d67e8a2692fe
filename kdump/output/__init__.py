"""What kdump writes: files and standard output."""
