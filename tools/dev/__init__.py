"""Commands for developers: they compile the kernel, check the English, and write tables from the code."""
