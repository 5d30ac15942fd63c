"""Why an HPA has its number of replicas: every intermediate number, and the result without each rule."""
