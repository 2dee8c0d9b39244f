"""Sphinx builds these pages; warnings are errors (make docs)."""

import routecast

project = "routecast"
author = "the routecast contributors"
copyright = "the routecast contributors"  # noqa: A001 - Sphinx asks for this name
release = routecast.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_llm.txt"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
root_doc = "docs/index"
include_patterns = ["docs/**", "packages/routecast-*/routecast/*/docs/**"]
exclude_patterns = [".*", "build", "crates", "target"]

napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"

llms_txt_description = "Measure, predict and plan software routers: Linux, DPDK, VPP, virtual machines, clusters."
llms_txt_full_build = True
llms_txt_nested_enabled = False
llms_txt_suppress_unknown_node_warnings = ["abbreviation", "caption"]  # names of files in captions are left out

html_theme = "furo"
html_title = "routecast"
html_static_path: list[str] = []
