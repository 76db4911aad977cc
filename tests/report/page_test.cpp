#include "implicit_diffusion/report/page.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "implicit_diffusion/report/chart.hpp"
#include "implicit_diffusion/report/density_plot.hpp"
#include "implicit_diffusion/report/text.hpp"
#include "report/xml.hpp"

namespace implicit_diffusion::report {
namespace {

TEST(Escape, KeepsUtf8AndReplacesWhatCannotStand) {
  EXPECT_EQ(escape("<script>\"'&"), "&lt;script&gt;&quot;&#39;&amp;");
  EXPECT_EQ(escape("θ₁ → 東京 🎲\t\n"), "θ₁ → 東京 🎲\t\n");
  EXPECT_EQ(escape(std::string_view("a\0b\x1b", 4)),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
  EXPECT_EQ(escape("\xc3"), "\xef\xbf\xbd");                          // cut short
  EXPECT_EQ(escape("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");          // longer than needed
  EXPECT_EQ(escape("\xed\xa0\x80").find('\xed'), std::string::npos);  // a surrogate
  EXPECT_EQ(escape(""), "");
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + what.size())) ++n;
  return n;
}

// The part between the tags as XML: what we write is well formed except for the void elements of the head.
std::string body_without_script(const std::string& html) {
  const std::size_t begin = html.find("<div class=\"sheet\">");
  const std::size_t end = html.rfind("<script>");
  return html.substr(begin, end - begin);
}

TEST(Page, EscapesEveryText) {
  const std::string bad = "<script>alert(\"x\")</script>&'θ";
  Page page{bad,
            bad,
            bad,
            {bad},
            bad,
            {{bad, bad, bad}},
            {{bad, bad, {{"", bad}}, false, {{bad, {bad}, {bad}, {{""}}}}, {{{bad}, {{bad}}}}, {{bad, bad}}}},
            bad};
  const std::string html = to_html(page);
  EXPECT_EQ(count(html, "<script>"), 2U) << "ours alone";
  EXPECT_EQ(count(html, "alert(\"x\")"), 0U);
  EXPECT_EQ(count(html, escape(bad)), 22U);
  EXPECT_EQ(parse_xml(body_without_script(html)).error, "");
}

TEST(Page, TablesOfPicturesHaveASliderForTheirColumns) {
  const PictureTable table{"step", {"1", "10"}, {"one", "two"}, {{"<svg/>", "<svg/>"}, {"<svg/>", "<svg/>"}}};
  Page page{"t", "s"};
  page.sections.push_back({.heading = "h", .picture_tables = {table}});
  const std::string html = to_html(page);
  EXPECT_EQ(count(html, "<svg/>"), 4U) << "the script copies, the file does not";
  EXPECT_NE(html.find("max=\"1\" value=\"1\""), std::string::npos);
  EXPECT_NE(html.find("<div class=\"slides\" hidden=\"\">"), std::string::npos) << "without a script there is none";
}

TEST(Page, IsCompleteInItself) {
  const std::string html = to_html({"t", "s"});
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(count(html, "src="), 0U);
  EXPECT_EQ(count(html, "href="), 0U);
  EXPECT_EQ(count(html, "@import"), 0U);
  EXPECT_EQ(count(html, "url("), 0U);
  EXPECT_EQ(parse_xml(body_without_script(html)).error, "");
}

TEST(Page, NoticeStandsBeforeTheFiguresAndOnlyWhereThereIsOne) {
  Page page{"t", "s"};
  page.facts = {{"label", "value", ""}};
  EXPECT_EQ(count(to_html(page), "class=\"notice\""), 0U);
  page.notice = "it failed";
  const std::string html = to_html(page);
  EXPECT_LT(html.find("it failed"), html.find("class=\"facts\""));
  EXPECT_EQ(parse_xml(body_without_script(html)).error, "");
}

TEST(Page, AlignsNumbersAndFillsShortRows) {
  Page page{"t", "s"};
  page.sections = {{"h", "one\n\ntwo\nstill two\n\n\n"}};
  page.sections[0].tables = {{{"name", "value", "mixed"}, {{"a", "−1.5e-3", "1"}, {"b", "0.29 ± 0.01", "x"}, {"c"}}}};
  page.sections[0].code = {{"config", "a = 1\n  b < 2\n"}};
  const std::string html = to_html(page);
  EXPECT_EQ(count(html, "<td class=\"number\">"), 3U);
  EXPECT_EQ(count(html, "<td>"), 6U);
  EXPECT_EQ(count(html, "<p>"), 2U);
  EXPECT_NE(html.find("a = 1\n  b &lt; 2\n</pre>"), std::string::npos);
}

// Five charts of 500 points and two noisy curves with bands, four densities of some eight hills with 1000 samples.
TEST(Page, StaysSmall) {
  Page page{"t", "s"};
  page.sections.push_back({"h"});
  for (int c = 0; c < 5; ++c) {
    LineChart chart{"c", "x", "y", {}};
    for (int k = 0; k < 2; ++k) {
      Series s{"s", {}, {}};
      for (int i = 0; i < 500; ++i) {
        s.x.push_back(i);
        s.y.push_back(std::sin(17.0 * i * (k + 1)));
        s.low.push_back(s.y.back() - 1);
        s.high.push_back(s.y.back() + 1);
      }
      chart.series.push_back(s);
    }
    page.sections[0].figures.push_back({to_svg(chart), ""});
  }
  for (int c = 0; c < 4; ++c) {
    DensityPlot plot{.title = "d", .x_min = -7, .x_max = 7, .y_min = -7, .y_max = 7, .columns = 200, .rows = 200};
    for (int row = 0; row < 200; ++row)
      for (int column = 0; column < 200; ++column)
        plot.density.push_back(1.1 + std::sin(0.1 * column) * std::cos(0.08 * row));
    for (int i = 0; i < 1000; ++i) {
      plot.point_x.push_back(7 * std::sin(i * 1.7));
      plot.point_y.push_back(7 * std::cos(i * 2.3));
    }
    page.sections[0].figures.push_back({to_svg(plot), ""});
  }
  const std::string html = to_html(page);
  EXPECT_LT(html.size(), 600'000U);
  EXPECT_EQ(parse_xml(body_without_script(html)).error, "");
  RecordProperty("bytes", static_cast<int>(html.size()));
}

}  // namespace
}  // namespace implicit_diffusion::report
