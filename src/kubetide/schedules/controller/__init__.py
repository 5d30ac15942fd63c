"""The time-table loop's reads and writes."""
