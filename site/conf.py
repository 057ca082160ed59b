"""The settings of Sphinx. site/build lays out the pages and calls it."""

import os
import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.domains.cpp import CPPDomain

ROOT = os.environ["NUMSIM_SOURCE_DIR"]
project = "numsim"
author = "the numsim authors"
copyright = "the numsim authors"
with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
    version = release = re.search(r"project\(numsim\s+VERSION ([0-9.]+)", file.read())[1]

extensions = ["myst_nb", "sphinx_copybutton", "sphinx_design"]
nb_execution_mode = "off"  # notebooks have their output
myst_enable_extensions = ["deflist", "dollarmath", "colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
exclude_patterns = []
highlight_language = "text"
smartquotes = False  # --option stays what it is
templates_path = []

python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
cpp_maximum_signature_line_length = 90
c_maximum_signature_line_length = 90
add_module_names = False
cpp_index_common_prefix = ["numsim::"]
toc_object_entries = False  # the trees of contents would have ten thousand entries

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "numsim"
html_static_path = [os.path.join(ROOT, "site/static"), "generated"]
html_css_files = ["site.css", "playground.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#7ab7ff", "color-brand-content": "#7ab7ff"},
}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = "$ "


class CppDomain(CPPDomain):
    """C++ without the parameters of functions and templates among the names that the search finds."""

    def get_objects(self):
        return (found for found in super().get_objects() if not found[2].endswith("Param"))


def show_math(translator, node):
    """Writes a formula as MathML, which browsers show without a script from elsewhere."""
    translator.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app):
    app.add_domain(CppDomain, override=True)
    app.add_html_math_renderer("mathml", (show_math, None), (show_math, None))
