"""How far groups grow: limits, balancing between similar groups, the calls to the cloud."""
