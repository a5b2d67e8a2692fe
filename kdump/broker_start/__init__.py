"""What a broker does with its log dirs when it starts: a dry run that touches nothing, release by release."""
