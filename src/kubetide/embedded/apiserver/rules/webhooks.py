"""Rules of MutatingWebhookConfiguration and ValidatingWebhookConfiguration.

Source: Kubernetes v1.36, pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kubetide.objects.field_errors import (
    FieldError,
    check_choice,
    check_selector,
    duplicate,
    invalid,
    required,
    unsupported,
)
from kubetide.units.names import dns1035_label_errors, dns1123_subdomain_errors

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_OPERATIONS = ("*", "CREATE", "UPDATE", "DELETE", "CONNECT")
_SCOPES = ("*", "Cluster", "Namespaced")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_LONGEST_TIMEOUT_S = 30
_FORM = "; desired format: https://host[/path]"


def validate_webhooks(obj: Json) -> list[FieldError]:
    """Return every rule that a configuration of either kind breaks."""
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        at = f"webhooks[{index}]"
        errors += _webhook(at, webhook)
        name = webhook.get("name") or ""
        if name and name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
    return errors


def _webhook(at: str, webhook: Json) -> list[FieldError]:
    errors = _name(f"{at}.name", webhook.get("name") or "")
    for index, rule in enumerate(webhook.get("rules") or ()):
        errors += _rule(f"{at}.rules[{index}]", rule)
    errors += check_choice(f"{at}.failurePolicy", webhook.get("failurePolicy"), ("Fail", "Ignore"))
    errors += check_choice(f"{at}.matchPolicy", webhook.get("matchPolicy"), ("Exact", "Equivalent"))
    errors += check_choice(
        f"{at}.sideEffects",
        webhook.get("sideEffects"),
        _SIDE_EFFECTS,
        missing=f"must specify one of {', '.join(_SIDE_EFFECTS)}",
    )
    timeout = webhook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= _LONGEST_TIMEOUT_S:
        detail = f"the timeout value must be between 1 and {_LONGEST_TIMEOUT_S} seconds"
        errors.append(invalid(f"{at}.timeoutSeconds", timeout, detail))
    for field in ("namespaceSelector", "objectSelector"):
        errors += check_selector(f"{at}.{field}", webhook.get(field))
    errors += check_choice(
        f"{at}.reinvocationPolicy", webhook.get("reinvocationPolicy"), ("IfNeeded", "Never")
    )
    errors += _client(f"{at}.clientConfig", webhook.get("clientConfig") or {})
    conditions = webhook.get("matchConditions") or []
    if conditions:
        from kubetide.embedded.apiserver.rules.match_conditions import validate_match_conditions  # noqa: PLC0415  CEL is loaded when an expression is met

        errors += validate_match_conditions(f"{at}.matchConditions", conditions)
    return errors + _review_versions(
        f"{at}.admissionReviewVersions", webhook.get("admissionReviewVersions") or []
    )


def _name(at: str, name: str) -> list[FieldError]:
    if not name:
        return [required(at)]
    faults = dns1123_subdomain_errors(name)
    if faults:
        return [invalid(at, name, ",".join(faults))]
    if name.count(".") < 2:
        return [invalid(at, name, "should be a domain with at least three segments separated by dots")]
    return []


def _rule(at: str, rule: Json) -> list[FieldError]:
    operations = rule.get("operations") or []
    errors = _wildcard(f"{at}.operations", operations, "operations")
    errors += [
        unsupported(f"{at}.operations[{index}]", operation, _OPERATIONS)
        for index, operation in enumerate(operations)
        if operation not in _OPERATIONS
    ]
    errors += _wildcard(f"{at}.apiGroups", rule.get("apiGroups") or [], "API groups")
    versions = rule.get("apiVersions") or []
    errors += _wildcard(f"{at}.apiVersions", versions, "API versions")
    errors += [
        required(f"{at}.apiVersions[{index}]") for index, version in enumerate(versions) if not version
    ]
    errors += _resources(f"{at}.resources", rule.get("resources") or [])
    return errors + check_choice(f"{at}.scope", rule.get("scope"), _SCOPES)


def _wildcard(at: str, items: list[str], what: str) -> list[FieldError]:
    """Check that something is said, and that ``*`` stands alone."""
    if not items:
        return [required(at)]
    if len(items) > 1 and "*" in items:
        return [invalid(at, items, f"if '*' is present, must not specify other {what}")]
    return []


def _resources(at: str, items: list[str]) -> list[FieldError]:
    errors = [] if items else [required(at)]
    all_of: set[str] = set()  # resources before /*
    in_all: set[str] = set()  # subresources after */
    plain = False
    for index, item in enumerate(items):
        if not item:
            errors.append(required(f"{at}[{index}]"))
            continue
        resource, slash, subresource = item.partition("/")
        if not slash:
            plain = plain or item != "*"
            continue
        if resource in all_of:
            detail = f"if '{resource}/*' is present, must not specify {item}"
            errors.append(invalid(f"{at}[{index}]", item, detail))
        if subresource in in_all:
            detail = f"if '*/{subresource}' is present, must not specify {item}"
            errors.append(invalid(f"{at}[{index}]", item, detail))
        if subresource == "*":
            all_of.add(resource)
        if resource == "*":
            in_all.add(subresource)
    if len(items) > 1 and "*/*" in items:
        errors.append(invalid(at, items, "if '*/*' is present, must not specify other resources"))
    if "*" in items and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(at, items, detail))
    return errors


def _client(at: str, client: Json) -> list[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(at, "exactly one of url or service is required")]
    errors = _ca_bundle(f"{at}.caBundle", client.get("caBundle") or "")
    if url is not None:
        return errors + _url(f"{at}.url", url)
    reference: Json = service or {}
    return errors + [
        required(f"{at}.service.{name}") for name in ("name", "namespace") if not reference.get(name)
    ]


def _ca_bundle(at: str, text: str) -> list[FieldError]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        return [invalid(at, text, f"illegal base64 data: {error}")]
    return []


def _url(at: str, text: str) -> list[FieldError]:
    try:
        url = urlsplit(text)
        _ = url.port  # read only here, and refused when it is no number
    except ValueError as error:
        return [required(at, f"url must be a valid URL: {error}{_FORM}")]
    errors = []
    if url.scheme != "https":
        errors.append(invalid(at, url.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not url.hostname:
        errors.append(invalid(at, "", f"host must be specified{_FORM}"))
    if "@" in url.netloc:
        user = url.netloc.rpartition("@")[0]
        errors.append(invalid(at, user, "user information is not permitted in the URL"))
    if url.fragment:
        errors.append(invalid(at, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        errors.append(invalid(at, url.query, "query parameters are not permitted in the URL"))
    return errors


def _review_versions(at: str, versions: list[str]) -> list[FieldError]:
    if not versions:
        return [required(at, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")]
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{at}[{index}]", version, "duplicate version"))
            continue
        errors += [invalid(f"{at}[{index}]", version, text) for text in dns1035_label_errors(version)]
    if not set(versions) & set(_REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        errors.append(invalid(at, versions, detail))
    return errors
