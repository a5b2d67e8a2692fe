"""Writes records (classic text, JSON, CSV, tables, format strings), findings, answers and definitions as text."""
