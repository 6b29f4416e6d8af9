"""The pictures of `screenshots/`: drawn from fixtures under a frozen clock, and held to by a test."""
