"""What the time-table loop reads and writes."""
