"""What the providers share: flags, options, tags, templates, configuration files."""
