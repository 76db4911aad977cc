#include "implicit_diffusion/report/theme.hpp"

namespace implicit_diffusion::report {
namespace {

constexpr const char* light_colours =
    "--paper:#fffefb;--raised:#f7f5ef;--ink:#1d1f24;--muted:#5b6069;--rule:#e4e1d9;--axis:#8b8f97;"
    "--region:#2458d6;--dot:#a8300a;"
    "--series-0:#2458d6;--series-1:#bf360c;--series-2:#0a9aa8;--series-3:#741a7d;--series-4:#bb8d0a;--series-5:#241f2e";

constexpr const char* dark_colours =
    "--paper:#15171b;--raised:#1e2126;--ink:#e9eaec;--muted:#a2a8b2;--rule:#31353c;--axis:#747b86;"
    "--region:#5aa2f5;--dot:#ffb27a;"
    "--series-0:#3d95f5;--series-1:#fb7c42;--series-2:#25d6c6;--series-3:#b469ab;--series-4:#f5cf3c;--series-5:#f4f5f8";

// Sizes are in units of the figure, see src/report/svg.hpp.
constexpr const char* rules = R"css(
.figure{display:block;width:100%;height:auto;overflow:visible;font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:12.5px;font-variant-numeric:tabular-nums}
.figure text{fill:var(--ink)}
.figure .title{font-size:14.5px;font-weight:600}
.figure .label,.figure .note,.figure .tick{fill:var(--muted)}
.figure .halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.figure path{fill:none;stroke-linejoin:round;stroke-linecap:round}
.figure .grid{stroke:var(--rule);stroke-width:1}
.figure .axis{stroke:var(--axis);stroke-width:1}
.figure .level{stroke:var(--muted);stroke-width:1.2;stroke-dasharray:1 4}
.figure .s0{--c:var(--series-0)}.figure .s1{--c:var(--series-1)}.figure .s2{--c:var(--series-2)}
.figure .s3{--c:var(--series-3)}.figure .s4{--c:var(--series-4)}.figure .s5{--c:var(--series-5)}
.figure .line,.figure .swatch{stroke:var(--c);stroke-width:1.8}
.figure .swatch{stroke-width:2.4}
.figure .d1{stroke-dasharray:7 4}.figure .d2{stroke-dasharray:1.5 4}
.figure .band{fill:var(--c);fill-opacity:.16}
.figure .lead{stroke:var(--c);stroke-width:1.4;stroke-dasharray:none}
.figure .region{fill:var(--region);fill-opacity:.1;fill-rule:evenodd}
.figure .contour{stroke:var(--region);stroke-width:.9;stroke-opacity:.75}
.figure .dots{stroke:var(--dot);stroke-width:3.2;stroke-opacity:.42}
.figure .bars,.figure .bar-key{fill:var(--dot);fill-opacity:.22;stroke:var(--dot);stroke-width:.7;stroke-opacity:.6}
.figure .crosses{stroke:var(--ink);stroke-width:.8;stroke-opacity:.42}
.figure .stairs,.figure .stairs-key{stroke:var(--ink);stroke-width:1.3;stroke-opacity:.75;stroke-linejoin:miter}
.figure .dot-key{stroke:var(--dot);stroke-width:4.5}
.figure .cross-key{stroke:var(--ink);stroke-width:1.4}
.figure .marker{stroke:var(--ink);stroke-width:2}
.figure .marker-halo{stroke:var(--paper);stroke-width:5.5}
)css";

}  // namespace

std::string figure_style() {
  return std::string(":root{color-scheme:light;") + light_colours +
         "}\n@media screen and (prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;" +
         dark_colours + "}}\n@media screen{:root[data-theme=dark]{color-scheme:dark;" + dark_colours + "}}" + rules;
}

std::string standalone_svg(std::string_view figure) {
  const std::size_t end_of_tag = figure.find('>');
  if (end_of_tag == std::string_view::npos) return std::string(figure);
  return std::string(figure.substr(0, end_of_tag + 1)) + "\n<style>" + figure_style() +
         ".figure{background:var(--paper)}</style>" + std::string(figure.substr(end_of_tag + 1));
}

}  // namespace implicit_diffusion::report
