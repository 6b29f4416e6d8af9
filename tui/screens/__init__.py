"""What the operator sees, one view a file; they draw snapshots and send commands, and touch nothing."""
