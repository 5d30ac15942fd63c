"""What a scenario says: reading and checking it, and the parts of the world that it asks for."""
