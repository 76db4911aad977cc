#include "implicit_diffusion/report/pixels.hpp"

#include <gtest/gtest.h>

#include "implicit_diffusion/report/page.hpp"
#include "io/expect_error.hpp"
#include "report/xml.hpp"

namespace implicit_diffusion::report {
namespace {

// The examples of RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xfb\xff\xbe"), "+/++");
}

// The head of a PNG of 3 x 2 pixels.
const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\3\0\0\0\2\x08", 25);

TEST(Pixels, AreAnElementWithTheirSize) {
  const Xml xml = parse_xml(to_img(png, "<two> & \"three\"", 4));
  ASSERT_EQ(xml.error, "");
  ASSERT_EQ(xml.elements.size(), 1U);
  auto attributes = xml.elements[0].attributes;
  EXPECT_EQ(attributes["width"], "12");
  EXPECT_EQ(attributes["height"], "8");
  EXPECT_EQ(attributes["alt"], "&lt;two&gt; &amp; &quot;three&quot;");
  EXPECT_EQ(attributes["src"], "data:image/png;base64," + base64(png));
  EXPECT_ERROR(to_img("GIF89a", "x"), usage, "6 bytes that are not PNG");
  EXPECT_ERROR(to_img(png, "x", 0), usage, "an enlargement of 0");
}

TEST(Pixels, StandOnAPage) {
  Page page{"t", "s"};
  page.sections.push_back({.heading = "h", .figures = {{to_img(png, "x"), "caption", true}, {to_img(png, "y"), ""}}});
  const std::string html = to_html(page);
  EXPECT_NE(html.find("<figure class=\"wide\">\n<img class=\"pixels\""), std::string::npos);
  EXPECT_NE(html.find("image-rendering:pixelated"), std::string::npos);
  EXPECT_NE(html.find("img-src data:"), std::string::npos) << "else the page forbids them";
}

}  // namespace
}  // namespace implicit_diffusion::report
