"""What validation says of an object, as the API server would."""

from __future__ import annotations

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.rules.validation import validate
from kubetide.objects.kinds import KINDS

DNS_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def problems(obj, old=None):
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    before = None if old is None else defaults(kind, old)
    return [str(error) for error in validate(kind, defaults(kind, obj), before)]
