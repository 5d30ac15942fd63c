"""What a verdict makes of the HPA's status, conditions and events once the write's outcome is known."""
