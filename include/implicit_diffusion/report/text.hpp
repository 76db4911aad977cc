// Text as it may stand in SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace implicit_diffusion::report {

// The text with & < > " ' escaped, fit for element content and for quoted attributes of XML and HTML. What neither may
// contain at all is replaced by U+FFFD: control characters (except tab, newline, carriage return) and bytes that are
// not UTF-8. A damaged label then costs one sign and not the whole figure.
std::string escape(std::string_view text);

}  // namespace implicit_diffusion::report
