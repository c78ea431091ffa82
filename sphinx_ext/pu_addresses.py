"""Removed pages lead to the pages that replace them.

The build writes a small page at each old address. Its script opens the new place of the anchor in
the address, or else the page that replaces the old one. It works without a server, and is not in
the search index. ``old_addresses.json`` lists the removed pages:

- ``split``: pages of the book; for each the page that replaces it, and the new places of anchors.
- ``pages``: pages of the reference, ``book/api/<old>.html``; for each the page that replaces it,
  and the modules that have the names of ``pu_lib.<old>`` now. The anchor of a name leads to the
  entry of the name, else to that of its class, else to the module or the page.
- ``renamed``: names of the reference that have changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

TABLE = Path(__file__).with_name("old_addresses.json")
FOLDER = "book/api"

STUB = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Moved: {title}</title>
<script>
const page = {page}, places = {places};
let name = decodeURIComponent(location.hash.slice(1));
while (name && !Object.hasOwn(places, name))
  name = name.slice(0, Math.max(name.lastIndexOf("."), 0));
const [there, anchor] = (name ? places[name] : page).split("#");
location.replace(there + (location.search ?? "") + (anchor ? "#" + anchor : ""));
</script>
<noscript><meta http-equiv="refresh" content="0; url={address}"></noscript>
</head>
<body><p>This page has moved: <a href="{address}">{title}</a></p></body>
</html>
"""


def places_of(
    env: BuildEnvironment, old: str, modules: list[str], renamed: dict[str, str]
) -> dict[str, str]:
    """Return the addresses of the names that a removed page had, by their old anchors."""
    domain, places = env.get_domain("py").data, {}
    for new in modules:
        if new in domain["modules"]:
            found = domain["modules"][new]
            places.setdefault(f"module-pu_lib.{old}", _address(found.docname, found.node_id))
        for name, found in domain["objects"].items():
            if name.startswith(f"{new}.") and found.objtype != "module":
                places[f"pu_lib.{old}{name.removeprefix(new)}"] = _address(
                    found.docname, found.node_id
                )
    for name, new in renamed.items():
        if name.startswith(f"pu_lib.{old}.") and new in domain["objects"]:
            found = domain["objects"][new]
            places[name] = _address(found.docname, found.node_id)
    return places


def _address(docname: str, anchor: str) -> str:
    """Return an address relative to the folder of the old pages."""
    inside = docname.startswith(f"{FOLDER}/")
    page = docname.removeprefix(f"{FOLDER}/") if inside else f"../{docname.removeprefix('book/')}"
    return f"{page}.html#{anchor}" if anchor else f"{page}.html"


def redirect(app: Sphinx, exception: Exception | None) -> None:
    """Write a page at each old address."""
    if exception is not None or app.builder.name != "html":
        return
    table = json.loads(TABLE.read_text("utf-8"))
    for old, (page, places) in table["split"].items():
        if f"book/{page}" in app.env.titles:
            _write(app, f"book/{old}", f"book/{page}", f"{page}.html", places)
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for old, (page, *modules) in table["pages"].items():
        if f"book/{page}" not in app.env.titles:  # a build of some pages only
            continue
        places = places_of(app.env, old, modules, table["renamed"])
        address = _address(f"book/{page}", "")
        module = places.get(f"module-pu_lib.{old}", "")
        if module.startswith(f"{address}#"):
            address = module
        _write(app, f"{FOLDER}/{old}", f"book/{page}", address, places)


def _write(app: Sphinx, old: str, new: str, address: str, places: dict[str, str]) -> None:
    """Write the page at an old address; `address` and `places` are relative to its folder."""
    text = STUB.format(
        title=app.env.titles[new].astext(),
        address=address,
        page=json.dumps(address),
        places=json.dumps(places, indent=0),
    )
    (Path(app.outdir) / f"{old}.html").write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages at the end of the build."""
    app.connect("build-finished", redirect)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
