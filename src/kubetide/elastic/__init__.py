"""ElasticWorkloads: the other loops of the process see each as an HPA, a VPA and a time table of one target."""
