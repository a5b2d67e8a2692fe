"""Writers of files and standard output."""
