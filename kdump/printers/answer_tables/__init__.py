"""Answers as tables for people: one module per question, what needs action first."""
