"""One read-only look at a box after another, through one long-lived shell there."""
