"""Is this file what its name says: structure, checksums, and numbers read in a jailed process."""
