"""The chain of custody: roster, digests, copy, readback, load, metrics, approval, outcome, receipts."""
