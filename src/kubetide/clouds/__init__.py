"""Cloud providers: one package each, loaded when it is named."""
