"""The conformance runner: recorded cases of upstream's behaviour, played through the production code."""
