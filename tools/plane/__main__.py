"""``python -m tools.plane build kubectl|clients|control-plane|helm|kwok|vpa|kube-state-metrics``: prints the path of each program."""

from __future__ import annotations

import argparse
import sys

from tools.plane.build import TARGETS, BuildError, build


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build what is not in the cache yet, and print the paths")
    building.add_argument("targets", nargs="+", choices=sorted(TARGETS), metavar="|".join(TARGETS))
    asked = parser.parse_args()
    try:
        for target in asked.targets:
            for path in build(target):
                print(path)
    except BuildError as error:
        print(f"tools.plane: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
