"""``python -m tools.release FOLDER``: builds what a release publishes: wheel, source, SBOM, and their checksums.

With ``--tag vX.Y.Z`` it first holds the version in pyproject.toml, the chart and the changelog against the tag. The bytes
depend on the sources and on ``SOURCE_DATE_EPOCH`` alone. Needs flit_core, which the groups ``dev`` and ``build`` have.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "run.txt"
_PIN = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\\n]*?))? *(?:\\\n|$)", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_BUILD = "import sys; from flit_core import buildapi; print(buildapi.build_wheel(sys.argv[1]), buildapi.build_sdist(sys.argv[1]))"


def version() -> str:
    """Return the version of pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def problems_of(tag: str, texts: dict[str, str]) -> Iterator[str]:
    """Yield what does not fit a tag: texts are those of pyproject.toml, Chart.yaml and CHANGELOG.md, by name."""
    version_of_tag = tag.removeprefix("v")
    for name, form in (
        ("pyproject.toml", 'version = "{}"'),
        ("Chart.yaml", "version: {}"),
        ("Chart.yaml", "appVersion: {}"),
        ("CHANGELOG.md", "## [{}]"),
    ):
        line = form.format(version_of_tag)
        if not re.search(rf"^{re.escape(line)}", texts[name], re.MULTILINE):
            yield f"{name} has no line `{line}`, as the tag {tag} requires"


def sbom(lock: str, of: str, wheel: bytes) -> dict[str, Any]:
    """Return a CycloneDX 1.6 document: the wheel, and each package that a lock pins for it.

    Args:
        lock: Requirements with hashes, as uv writes them.
        of: The version.
        wheel: The bytes; the document's serial number is drawn from them.
    """
    digest = hashlib.sha256(wheel).hexdigest()
    this = f"pkg:pypi/kubetide@{of}"
    components = [_component(found, lock) for found in _PIN.finditer(lock)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": this,
                "name": "kubetide",
                "version": of,
                "purl": this,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        },
        "components": components,
        "dependencies": [{"ref": this, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _component(found: re.Match[str], lock: str) -> dict[str, Any]:
    following = _PIN.search(lock, found.end())
    hashes = _HASH.findall(lock, found.end(), following.start() if following else len(lock))
    purl = f"pkg:pypi/{found['name']}@{found['version']}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": found["name"],
        "version": found["version"],
        "purl": purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{found['name']}/{found['version']}/",
                "comment": "one of these files",
                "hashes": [{"alg": "SHA-256", "content": one} for one in hashes],
            }
        ],
    }
    if found["marker"]:
        component["properties"] = [{"name": "python:marker", "value": found["marker"]}]
    return component


def build(folder: Path) -> list[Path]:
    """Write wheel, source, SBOM and SHA256SUMS into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    built = subprocess.run(
        [sys.executable, "-c", _BUILD, folder.resolve()], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    made = [folder / name for name in built]
    document = folder / f"kubetide-{version()}.cdx.json"
    reported = sbom(LOCK.read_text(encoding="utf-8"), version(), made[0].read_bytes())
    document.write_text(json.dumps(reported, indent=1) + "\n", encoding="utf-8")
    made.append(document)
    sums = folder / "SHA256SUMS"
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made]
    sums.write_text("".join(lines), encoding="utf-8")
    return [*made, sums]


def main() -> int:
    """Build, or say what does not fit the tag."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", help="hold the versions against it first")
    chosen = parser.parse_args()
    if chosen.tag:
        files = (ROOT / "pyproject.toml", ROOT / "deploy" / "chart" / "Chart.yaml", ROOT / "CHANGELOG.md")
        problems = list(
            problems_of(chosen.tag, {path.name: path.read_text(encoding="utf-8") for path in files})
        )
        if problems:
            print("\n".join(problems), file=sys.stderr)
            return 1
    for path in build(chosen.folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
