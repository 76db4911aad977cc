// The look that all figures share.
//
// Figures carry classes, not colours: the style sheet gives each class its colour through custom properties (--ink,
// --paper, --series-0, ...), so that a figure on a page follows the page into the dark and onto paper. Six colours,
// each with at least 3:1 contrast to the background, stay apart with any common colour vision deficiency (Oklab
// distance 0.11 or more for simulated protan-, deuter- and tritanopia); every further six curves change the dash.
#pragma once

#include <string>
#include <string_view>

namespace implicit_diffusion::report {

// Colours for light, dark and print, and the rules for the classes of the figures. A page contains it once.
std::string figure_style();

// A figure as a file of its own: the SVG of a to_svg with the style sheet inside.
std::string standalone_svg(std::string_view figure);

}  // namespace implicit_diffusion::report
