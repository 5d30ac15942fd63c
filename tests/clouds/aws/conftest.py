"""One server of AWS's protocol for the tests of each module."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def server():
    """Serve AWS without a group, with credentials in the environment."""
    pytest.importorskip("moto", reason="moto is a development dependency")
    from tests.clouds.aws.moto_aws import CREDENTIALS, moto_server  # needs moto

    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        with moto_server() as found:
            yield found
