"""Calls of AWS through boto3, which finds region and credentials as every AWS program does.

Credentials come from the SDK's default chain: environment, shared files, web identity (IRSA), pod identity, instance
role. Retries are botocore's standard ones: with jitter, and with a budget that ends a storm of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.parsers import ResponseParserError

from kubetide.clouds.aws.api import SERVICES
from kubetide.clouds.aws.config import AwsConfig
from kubetide.clouds.aws.errors import NO_CREDENTIALS, api_error
from kubetide.clouds.common.ini import CloudConfigError
from kubetide.objects.base import Json
from kubetide.ports.errors import CloudError, CloudWithheld

_CONNECT_S: Final = 5
_READ_S: Final = 30
_CONNECTIONS: Final = 16
_READS: Final = ("Describe", "Get", "List")


class BotoClient:
    """Makes calls with boto3, each in a thread; ``calls`` counts them by operation."""

    def __init__(self, config: AwsConfig, *, withheld: Callable[[], str] = lambda: "") -> None:
        """Prepare the client.

        ``withheld`` returns why nothing may be changed now; empty if it may.

        Raises: CloudConfigError for a profile that there is not.
        """
        self._config, self._withheld = config, withheld
        try:
            self._session = boto3.session.Session(region_name=config.region or None)
        except ProfileNotFound as error:
            raise CloudConfigError(f"aws: {error}; correct AWS_PROFILE, or unset it") from error
        self._clients: dict[str, Any] = {}
        self._making = threading.Lock()
        self.calls: Counter[str] = Counter()

    @property
    def region(self) -> str:
        """The region, from the environment, shared files or the instance's metadata. Raises CloudConfigError."""
        found = self._config.region or self._session.region_name or _metadata_region()
        if not found:
            raise CloudConfigError("aws: no region; set AWS_REGION to the region of the Auto Scaling groups")
        return str(found)

    async def __call__(self, operation: str, parameters: Json) -> Json:
        """Make a call. Raises CloudError, CloudWithheld."""
        if not operation.startswith(_READS) and (why := self._withheld()):
            raise CloudWithheld(why)
        self.calls[operation] += 1
        return await asyncio.to_thread(self._call, operation, parameters)

    def _call(self, operation: str, parameters: Json) -> Json:
        try:
            client = self._client(SERVICES[operation])
            answer: Json = getattr(client, xform_name(operation))(**parameters)
        except ClientError as error:
            said = error.response.get("Error") or {}
            # Credentials are fetched within the call, and that may be what was refused.
            operation = error.operation_name or operation
            refusal = api_error(operation, said.get("Code") or "Unknown", said.get("Message") or "")
            status = (error.response.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0
            refusal.may_be_done = status >= 500
            raise refusal from error
        except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, OSError) as error:
            # An OSError is that of a token file: those of sockets come as errors of botocore.
            raise api_error(operation, NO_CREDENTIALS, str(error)) from error
        except (BotoCoreError, ResponseParserError) as error:
            code = type(error).__name__
            raise CloudError(f"{operation}: {error}", error_code=code, may_be_done=True) from error
        return answer

    def _client(self, service: str) -> Any:
        with self._making:
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]

    def _make(self, service: str) -> Any:
        region = self.region
        endpoint = self._config.endpoint(service, region)
        options = Config(
            retries={"mode": "standard", "total_max_attempts": max(self._config.attempts, 1)},
            connect_timeout=_CONNECT_S,
            read_timeout=_READ_S,
            max_pool_connections=_CONNECTIONS,
            user_agent_extra="cluster-autoscaler",
        )
        return self._session.client(
            service,
            region_name=endpoint.signing_region if endpoint else region,
            endpoint_url=endpoint.url if endpoint else None,
            config=options,
        )

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()


def _metadata_region() -> str:
    """Return the region that the instance's metadata service names; empty where there is none."""
    from botocore.utils import InstanceMetadataRegionFetcher  # noqa: PLC0415  # needed on EC2 without settings only

    return InstanceMetadataRegionFetcher(timeout=1, num_attempts=2).retrieve_region() or ""
