"""Tables for people: one module per question; urgent tables come first."""
