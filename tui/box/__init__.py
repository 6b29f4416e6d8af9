"""One machine from inside, over SSH: connect, identity, probe, tail, transfer. Read-only until asked."""
