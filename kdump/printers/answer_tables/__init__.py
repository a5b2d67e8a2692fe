"""Tables of answers for people, one module per command. Urgent tables come first."""
