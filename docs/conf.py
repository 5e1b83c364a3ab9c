"""Sphinx configuration of the documentation: built offline, with strict links and references.

`make docs` builds docs/_build/html. A line `<!-- generated: NAME -->` of a page is replaced with what
`generators/NAME.py` returns, read off the code of this checkout, so a reference is never stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from fedprivacy import __version__  # noqa: E402

project = "fedprivacy"
author = "fedprivacy"
release = version = __version__
language = "en"
smartquotes = False  # options begin with two dashes
default_role = "literal"  # `code` in docstrings

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "generators.sphinx_hooks",
]
exclude_patterns = ["_build", "schemas", "generators"]
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 4  # a link to a heading that does not exist is an error

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
add_module_names = False
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
nitpicky = True
# Types of Python and of libraries: no inventory of theirs is fetched, so nothing resolves them.
nitpick_ignore_regex = [
    ("py:.*", r"(str|int|float|bool|None(Type)?|dict|list|tuple|object|type|bytes|Path|Any)"),
    ("py:.*", r"(collections|typing|pathlib|Mapping|Sequence|Iterator|Callable)\b.*"),
    ("py:.*", r"(numpy|np|NDArray|pandas|pd|DataFrame|matplotlib|Figure|torch|pydantic)\b.*"),
]

html_theme = "furo"  # system fonts, no request to another host
html_title = "fedprivacy"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
copybutton_exclude = ".linenos, .gp, .go"
