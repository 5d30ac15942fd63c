"""Shows ElasticWorkloads to the other loops, writes their conditions."""
