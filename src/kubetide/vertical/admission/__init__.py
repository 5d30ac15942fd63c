"""The VPA admission controller: new pods get their recommendation, VPA objects are checked and completed."""
