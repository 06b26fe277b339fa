"""The documentation site: `make docs` writes it into build/docs."""

from __future__ import annotations

import sys
from pathlib import Path

import mahalo

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "mahalo"
author = "The mahalo developers"
copyright = author
version = release = mahalo.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_ext", "gallery/*.ipynb", "gallery/*.py", "gallery/*.json", "gallery/*.md5", "gallery/*.zip"]
templates_path = ["_templates"]
default_role = "literal"

# Pages: Markdown that reads well on a code host too.
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3

# Reference: what the docstrings say.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "pages.FromSimpleToSpecial",
    "reference_url": {"mahalo": None},
    "doc_module": ("mahalo",),
    "backreferences_dir": "generated/used_in",
    "prefer_full_module": [r"mahalo\."],
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "thumbnail_size": (400, 280),
    "image_scrapers": ("matplotlib",),
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "mahalo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "mahalo"},
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "pygments_light_style": "tango",
}
html_sidebars = {"index": [], "tutorial": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
