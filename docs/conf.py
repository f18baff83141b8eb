"""Settings of Sphinx."""

import divaug

project = "DivAug"
author = "The DivAug developers"
copyright = "The DivAug developers"
release = divaug.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "DivAug"
html_static_path = ["_static"]
html_css_files = ["tables.css"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
# Docstrings name code in single backquotes, as Markdown does.
default_role = "code"
nitpicky = False
