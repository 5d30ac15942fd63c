"""ElasticWorkloads: for the other loops of the process each is an HPA, a VPA and a time table of one target."""
