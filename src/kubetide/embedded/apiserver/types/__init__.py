"""What the types of the Kubernetes API say of bodies: OpenAPI, and their protobuf form."""
