"""Plays `gh`: keeps issues in the file that FAKE_GH names, and is as strict as the real one."""

import argparse
import json
import os
import pathlib
import sys
from typing import Any

path = pathlib.Path(os.environ["FAKE_GH"])
state: dict[str, Any] = (
    json.loads(path.read_text()) if path.exists() else {"labels": [], "issues": []}
)
if os.environ.get("GH_TOKEN") != "of-this-job-alone":
    sys.exit("gh: To use GitHub CLI in a GitHub Actions workflow, set the GH_TOKEN variable.")
parser = argparse.ArgumentParser(prog="gh")
parser.add_argument("words", nargs="+")
for name in ("label", "state", "limit", "json", "title", "body-file", "description"):
    parser.add_argument(f"--{name}")
parser.add_argument("--force", action="store_true")
options = parser.parse_args()
if options.words[0] in ("issue", "label", "workflow") and not os.environ.get("GH_REPO"):
    sys.exit("gh: not a git repository, and GH_REPO is not set")


def issue(number: str) -> dict[str, Any]:
    """The issue of that number."""
    return next(one for one in state["issues"] if one["number"] == int(number))


match options.words:
    case ["label", "create", label]:
        state["labels"] = sorted({*state["labels"], label})
    case ["issue", "list"]:
        wanted = options.json.split(",")
        found = [one for one in state["issues"] if options.label in one["labels"]]
        print(json.dumps([{key: one[key] for key in wanted} for one in found]))
    case ["issue", "create"]:
        if options.label not in state["labels"]:
            sys.exit(f"could not add label: '{options.label}' not found")
        one: dict[str, Any] = {"number": len(state["issues"]) + 1, "state": "OPEN", "comments": []}
        one |= {"title": options.title, "labels": [options.label], "body": sys.stdin.read()}
        state["issues"].append(one)
        print(f"https://forge.example/issues/{one['number']}")
    case ["issue", "edit", number]:
        issue(number)["body"] = sys.stdin.read()
    case ["issue", "comment", number]:
        issue(number)["comments"].append(sys.stdin.read())
    case ["issue", "reopen", number]:
        issue(number)["state"] = "OPEN"
    case ["workflow", "enable", workflow]:
        state["enabled"] = state.get("enabled", 0) + 1
    case _:
        sys.exit(f"gh: unknown: {options.words}")
path.write_text(json.dumps(state))
