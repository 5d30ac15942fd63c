"""Cost over a stretch of time against a bound: real arrivals and departures, played through the node loop."""
