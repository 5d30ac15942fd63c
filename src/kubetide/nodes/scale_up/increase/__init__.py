"""How far groups grow: limits, balance between similar groups, the calls to the cloud."""
