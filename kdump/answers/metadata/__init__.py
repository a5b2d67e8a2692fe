"""Answers from the KRaft metadata log: images, events, and differences of two images (KIP-500, 630, 631)."""
