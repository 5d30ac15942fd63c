"""HPAs of a real API server, moved between kube-controller-manager and ``kubetide run``: never two, never none for long."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, asynccontextmanager, suppress
from types import SimpleNamespace

import pytest
from tests.plane.hpa_walk import TIMES
from tests.plane.running import Programs
from tests.plane.towns import ROOT, kubetide_run

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, LEASES, NAMESPACES
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.testing.cluster_cases.ground import eventually
from kubetide.units.time import seconds

pytestmark = pytest.mark.slow

UPSTREAM = "kube-controller-manager"
NAMES = ("cart", "search", "web")
ACT = (
    "--act",
    "--controllers=horizontal",
    *TIMES,
    "--leader-elect-retry-period=500ms",
    # Which HPAs are ours is up to the hand-over alone, however long each process takes to start.
    "--adopt-hpas-after=1h",
)
_PATIENCE_S = 180


@asynccontextmanager
async def upstream(place):
    """Kube-controller-manager with its HPA controller and no other."""
    with ExitStack() as stack:
        flags = (
            f"--kubeconfig={place.plane.kubeconfig}",
            "--controllers=horizontal-pod-autoscaler-controller",
            "--leader-elect=false",
            "--secure-port=0",
            *TIMES,
        )
        Programs(stack, place.folder).start(UPSTREAM, flags)
        yield
        await asyncio.to_thread(stack.close)


class Moving:
    """``kubetide handover`` as a person calls it."""

    def __init__(self, process):
        self._process = process
        self._said = ""

    async def says(self, text):
        """Wait until it has said this."""
        while text not in self._said:
            line = await asyncio.wait_for(self._process.stdout.readline(), _PATIENCE_S)
            assert line, f"ended without {text!r}: {self._said}"
            self._said += line.decode()

    async def ends(self):
        said, _ = await asyncio.wait_for(self._process.communicate(), _PATIENCE_S)
        return self._process.returncode, self._said + said.decode()


async def handover(place, *flags):
    return Moving(
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from kubetide.cli.main import main; main()",
            "handover",
            f"--kubeconfig={place.plane.kubeconfig}",
            # Upstream's is 1 s; who has not answered after two of these is taken to be gone.
            "--sync-period=5s",
            *flags,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    )


class Shop:
    """Deployments with HPAs whose minimum a test raises: whoever serves them scales to it, without any metric."""

    def __init__(self, client, clock, home, folder):
        self.client, self.clock, self.home, self.folder = client, clock, home, folder

    async def open(self, *names):
        """Make Deployments with HPAs that have no status."""
        for name in names:
            await self.client.create(DEPLOYMENTS, builders.deployment(name, replicas=2), namespace=self.home)
            await self.client.create(
                HPAS, builders.hpa(name, name, min_replicas=2, max_replicas=20), namespace=self.home
            )

    async def until(self, what, holds):
        """Wait until something holds. Raises AssertionError with what all runs have said when time is up."""
        try:
            await eventually(self.clock, what, holds)
        except AssertionError as error:
            for log in sorted(self.folder.glob("*.out")):
                error.add_note(f"── {log.name}\n{log.read_text()}")
            raise

    async def raise_minimum(self, least):
        for name in NAMES:
            await self.client.patch(HPAS, name, {"spec": {"minReplicas": least}}, namespace=self.home)

    async def scaled_by(self, least):
        """Wait until all have that many replicas; return who has written each scale last."""
        await self.until(f"{least} replicas of each", lambda: self._scaled(least))
        return {await self._scaler(name) for name in NAMES}

    async def _scaled(self, least):
        found = await self.client.list(DEPLOYMENTS, namespace=self.home)
        return all(one.spec.replicas == least for one in found.items if one.metadata.name in NAMES)

    async def _scaler(self, name):
        found = await self.client.get(DEPLOYMENTS.untyped, name, namespace=self.home)
        # The API server notes no time there; who has not changed the number last loses the entry.
        entries = [one for one in found["metadata"]["managedFields"] if one.get("subresource") == "scale"]
        return ",".join(one["manager"] for one in entries)

    async def status_writers(self):
        found = await self.client.list(HPAS.untyped, namespace=self.home)
        return {
            entry["manager"]
            for hpa in found.items
            for entry in hpa["metadata"]["managedFields"]
            if entry.get("subresource") == "status"
        }


def play(plane, folder, story):
    async def run(clock):
        async with HttpCluster(plane.connection, clock) as client:
            made = await client.create(NAMESPACES, {"metadata": {"generateName": "handover-"}})
            shop = Shop(client, clock, made.metadata.name, folder)
            place = SimpleNamespace(plane=plane, folder=folder, socket=str(folder / "none.sock"))
            for left in (await client.list(HPAS)).items:  # what an earlier test has left would be moved too
                with suppress(NotFound):
                    await client.delete(HPAS, left.metadata.name, namespace=left.metadata.namespace)
            try:
                await shop.open(*NAMES)
                await story(shop, place)
            finally:
                for hpa in (await client.list(HPAS, namespace=shop.home)).items:
                    await client.delete(HPAS, hpa.metadata.name, namespace=shop.home)
                for lease in (await client.list(LEASES, namespace="kube-system")).items:
                    await client.delete(LEASES, lease.metadata.name, namespace="kube-system")

    run_real(run)


def test_hpas_are_moved_to_us_and_back(quiet_plane, tmp_path):
    """A quiet upstream retains its HPAs; a hand-over waits until it has stopped; its first write takes all of them back."""

    async def story(shop, place):
        async with kubetide_run(place, "newcomer", *ACT) as run:

            async def said(text):
                return run.said(text)

            async with upstream(place):
                await shop.until("upstream serves", lambda: _is({UPSTREAM}, shop.status_writers))
                for name in NAMES:
                    text = f"HPA {shop.home}/{name} is left alone: {UPSTREAM} writes its status"
                    await shop.until(text, lambda text=text: said(text))
                await shop.raise_minimum(3)
                assert await shop.scaled_by(3) == {UPSTREAM}
                status, text = await (await handover(place, "--to=kubetide")).ends()
                assert status == 1, text
                assert f"{UPSTREAM} serves them" in text
                moving = await handover(place, "--to=kubetide", "--wait=2m")
                await moving.says("waiting for it to go")
                assert "kubetide" not in await shop.status_writers()
            status, text = await moving.ends()
            assert status == 0, text
            assert "3 HPAs are handed over to kubetide" in text
            await shop.raise_minimum(4)
            assert await shop.scaled_by(4) == {"kubetide"}
            status, text = await (await handover(place, "--probe")).ends()
            assert (status, text.count("   kubetide   ")) == (0, 3), text

            # And back: ours goes on until upstream has come, and not a write longer.
            moving = await handover(place, "--to=others", "--wait=2m")
            await moving.says("switch that on now")
            await shop.raise_minimum(5)
            assert await shop.scaled_by(5) == {"kubetide"}
            async with upstream(place):
                status, text = await moving.ends()
                assert status == 0, text
                await shop.raise_minimum(6)
                assert await shop.scaled_by(6) == {UPSTREAM}
                await shop.clock.sleep(seconds(3))
                assert await shop.scaled_by(6) == {UPSTREAM}

    play(quiet_plane, tmp_path, story)


def test_upstream_switched_on_beside_us_ends_ours(quiet_plane, tmp_path):
    """Without an announcement its first status writes are enough for all HPAs, and a restart of ours remembers it."""

    async def story(shop, place):
        async with kubetide_run(place, "newcomer", *ACT) as run:
            status, text = await (await handover(place, "--to=kubetide", "--force")).ends()
            assert status == 0, text
            await shop.raise_minimum(3)
            assert await shop.scaled_by(3) == {"kubetide"}
            await shop.clock.sleep(seconds(2))
            async with upstream(place):
                # Something to write: a quiet upstream goes unnoticed, and does no harm. It may come so late that ours
                # has done all there is to do, but for an HPA that has no status and is not ours.
                await shop.raise_minimum(4)
                await shop.open("new")
                for name in NAMES:

                    async def given_up(name=name):
                        return run.said(f"HPA {shop.home}/{name} is given up: {UPSTREAM} has written")

                    await shop.until(f"{name} is given up", given_up)
                await shop.raise_minimum(5)
                assert await shop.scaled_by(5) == {UPSTREAM}
                async with kubetide_run(place, "another", *ACT, name="restarted") as again:
                    await run.kill()

                    async def left_alone():
                        return again.said(f"HPA {shop.home}/web is given up: {UPSTREAM} has written")

                    await shop.until("the next one leaves them alone", left_alone)
                    await shop.raise_minimum(6)
                    assert await shop.scaled_by(6) == {UPSTREAM}

    play(quiet_plane, tmp_path, story)


async def _is(expected, ask):
    return await ask() == expected
