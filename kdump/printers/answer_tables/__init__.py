"""Answers as tables for people: one module per question, urgent tables first."""
