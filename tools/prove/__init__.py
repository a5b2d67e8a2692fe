"""Proofs that compare kdump with real brokers, real consumers and the real tool."""
