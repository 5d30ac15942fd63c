"""The HPA's status, conditions and events of a verdict, once the write's outcome is known."""
