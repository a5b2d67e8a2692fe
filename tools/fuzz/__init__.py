"""Fuzzing: broken inputs for every reader and every command, seeded or guided by coverage."""
