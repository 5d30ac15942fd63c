"""AWS: Auto Scaling groups as node groups. Only ``client`` and ``factory`` import boto3."""
