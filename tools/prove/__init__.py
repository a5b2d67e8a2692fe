"""Proofs against real brokers, real consumers and the real tool."""
