"""``kubetide convert``: autoscalers and time tables into ElasticWorkloads, and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kubetide.cli.common.exits import FAILED

if TYPE_CHECKING:
    from kubetide.objects.base import Json


@click.command("convert")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, allow_dash=True)
)
@click.option("--back", is_flag=True, help="Convert ElasticWorkloads into HPAs, VPAs and time tables.")
@click.option("--output", "-o", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def command(files: tuple[str, ...], back: bool, output: str) -> None:
    """Convert HPAs, VPAs and time tables into ElasticWorkloads, one for each target; with --back the other way.

    FILES are manifests, or what `kubectl get -o yaml` prints; `-` is the standard input. All of them are
    read together. Objects of other kinds are ignored. A part that the other form cannot express is
    reported by name: then nothing is printed for that target, and the exit status is 1.

    \b
    Examples:
      kubetide convert hpa.yaml vpa.yaml cron.yaml > shop.yaml
      kubectl get hpa,vpa -n web -o yaml | kubetide convert - | kubectl apply -f -
      kubetide convert --back shop.yaml
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.elastic.convert.backward import from_elastic
    from kubetide.elastic.convert.forward import KINDS, to_elastic
    from kubetide.objects.kinds import ELASTIC_WORKLOADS

    objects = [one for file in files for one in _read(file)]
    kinds = {ELASTIC_WORKLOADS.kind} if back else KINDS
    chosen = [one for one in objects if one["kind"] in kinds]
    if not chosen:
        what = ELASTIC_WORKLOADS.kind if back else "HPA, VPA or time table"
        raise click.ClickException(
            f"there is no {what} among the {len(objects)} objects of {', '.join(files)}"
        )
    found = from_elastic(chosen) if back else to_elastic(chosen)
    if found.objects:
        click.echo(_text(found.objects, output))
    for sentence in found.refused:
        click.echo(f"not converted: {sentence}", err=True)
    if found.refused:
        sys.exit(FAILED)


def _read(file: str) -> list[Json]:
    with click.open_file(file, "rb") as stream:
        text: bytes = stream.read()
    return objects_of(text, "standard input" if file == "-" else file)


def objects_of(text: bytes, name: str) -> list[Json]:
    """Return the objects of a file or a dump as a person would have written them. Raises ClickException."""
    from kubetide.embedded.apiserver.manifests.manifest import ManifestError, load_manifests

    try:
        found = load_manifests(text, name, skipped=[])
    except ManifestError as error:
        raise click.ClickException(str(error)) from error
    return [_as_written(kind, body) for kind, body in found]


def _as_written(kind: Any, body: Json) -> Json:
    """Return an object with its kind, without what a server gave it."""
    metadata = {name: value for name, value in body["metadata"].items() if name != "uid"}
    rest = {name: value for name, value in body.items() if name not in {"apiVersion", "kind", "status"}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, **rest, "metadata": metadata}


def _text(objects: list[Json], form: str) -> str:
    """Return objects as YAML documents, or as one JSON list."""
    import msgspec

    if form == "json":
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()
    import yaml

    from kubetide.objects.yaml_reading import reads_as_text

    class Dumper(yaml.SafeDumper):
        """Quotes what kubectl would read as something else than a text."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  PyYAML's signature
            return True

    def scalar(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = None if reads_as_text(value) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, scalar)
    return "---\n".join(
        yaml.dump(one, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110) for one in objects
    ).rstrip()
