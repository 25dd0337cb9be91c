"""Validates SBOMs against the schema of CycloneDX 1.6: `cargo xtask supply-chain` calls it with their paths."""

import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)


def findings(text):
    """Returns what is wrong with a document: the schema, licences, references and duplicates."""
    error = VALIDATOR.validate_str(text)
    if error is not None:
        return [f"the schema refuses it: {str(error).splitlines()[0]}"]
    document = json.loads(text)
    root, components = document["metadata"]["component"], document["components"]
    references = [root["bom-ref"], *(each["bom-ref"] for each in components)]
    found = [f"{each['name']} has no licence" for each in components if not each.get("licenses")]
    found += [f"{each['name']} has no checksum" for each in components if each.get("purl") and not each.get("hashes")]
    if len(set(references)) != len(references):
        found.append("a reference is not unique")
    for dependency in document["dependencies"]:
        for reference in (dependency["ref"], *dependency.get("dependsOn", [])):
            if reference not in references:
                found.append(f"a dependency refers to {reference}, which is no component")
    reached, next_ones = set(), {root["bom-ref"]}
    edges = {each["ref"]: each.get("dependsOn", []) for each in document["dependencies"]}
    while next_ones:
        reached |= next_ones
        next_ones = {to for each in next_ones for to in edges.get(each, [])} - reached
    found += [f"nothing depends on {reference}" for reference in references if reference not in reached]
    return found


def main(paths):
    wrong = False
    for path in paths:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        found = findings(text)
        wrong |= bool(found)
        for finding in found:
            print(f"{path}: {finding}", file=sys.stderr)
        print(f"{path}: {len(json.loads(text)['components'])} components", file=sys.stderr)
        wrong |= not damage_is_found(text)
    return int(wrong)


def damage_is_found(text):
    """Whether each kind of mistake in this document would be found, so that a validator without effect is noticed."""
    damages = {
        "a component without a name": lambda document: document["components"][0].pop("name"),
        "a component without a licence": lambda document: document["components"][0].pop("licenses"),
        "a wrong checksum": lambda document: document["components"][0].update(hashes=[{"alg": "SHA-256", "content": "0"}]),
        "a component twice": lambda document: document["components"].append({**document["components"][0], "version": "0"}),
        "a component that nothing needs": lambda document: document["dependencies"].clear(),
        "an unknown reference": lambda document: document["dependencies"][0]["dependsOn"].append("nothing"),
    }
    missed = []
    for name, damage in damages.items():
        document = json.loads(text)
        damage(document)
        if not findings(json.dumps(document)):
            missed.append(name)
    for name in missed:
        print(f"{name} is not found", file=sys.stderr)
    return not missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
