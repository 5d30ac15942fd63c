"""What the shell offers at TAB: objects of the records folder, shipped scenarios, settings of a run."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import CompletionItem

FOLDER = Path("kubetide-out")


def complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Offer kinds that can be explained, and the workloads that stand for their HPA."""
    from kubetide.cli.common.kinds import WORKLOADS
    from kubetide.simulate.answers.why import kinds_of

    names = [*kinds_of(_folder(ctx)), *dict.fromkeys(kind.lower() for kind in WORKLOADS.values())]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def names_known(folder: Path | None, kind: str) -> list[str]:
    """Return the names of a kind's objects at the end of the records, sorted; none where there are no records of it."""
    from kubetide.cli.common.kinds import kind_of
    from kubetide.ports.errors import KubetideError
    from kubetide.simulate.answers.why import kinds_of, objects_of, targets_of

    if folder is None:
        return []
    try:
        kinds = kinds_of(folder)
        kind = kind_of(kind, kinds)
        return sorted(objects_of(folder, None, (kind,))[kind] if kind in kinds else targets_of(folder, kind))
    except (KubetideError, click.BadParameter, KeyError):
        return []


def complete_object(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Offer the names of the objects of that kind at the end of the records; those of --namespace without it."""
    names = names_known(_folder(ctx), ctx.params.get("kind") or "")
    own = f"{ctx.params.get('namespace') or 'default'}/"
    offered = [name.removeprefix(own) if "/" not in incomplete else name for name in names]
    return [CompletionItem(name) for name in sorted(offered) if name.startswith(incomplete)]


def complete_scenario(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Offer the shipped scenarios, and the shell's own files."""
    from kubetide.simulate.scenarios.shipped import shipped

    found = [CompletionItem(name) for name in shipped() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


class WithSettings(click.Command):
    """A command that takes the settings of `kubetide run` as flags, and so completes them too."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the command's own flags, then those of the settings."""
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            from kubetide.runtime.configuration.run_settings import setting_names

            own = {item.value for item in found}
            flags = [f"--{name}=" for name in setting_names() if f"--{name}" not in own]
            found += [CompletionItem(flag) for flag in flags if flag.startswith(incomplete)]
        return found


def _folder(ctx: click.Context) -> Path | None:
    folder = ctx.params.get("out") or FOLDER
    if not isinstance(folder, str | Path):
        return None  # a dashboard, which is not asked at each TAB
    folder = Path(folder)
    return folder if os.access(folder / "records", os.R_OK) else None
