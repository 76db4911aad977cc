// A reader of XML just strict enough to tell whether a figure is well formed, and to look into it.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion::report {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // directly inside, entities as they stand
};

struct Xml {
  std::vector<XmlElement> elements;  // in the order of their start tags
  std::string error;                 // empty: well formed

  std::vector<XmlElement> with_class(std::string_view wanted) const {
    std::vector<XmlElement> found;
    for (const XmlElement& element : elements) {
      const auto attribute = element.attributes.find("class");
      if (attribute != element.attributes.end() &&
          (" " + attribute->second + " ").find(" " + std::string(wanted) + " ") != std::string::npos)
        found.push_back(element);
    }
    return found;
  }
};

inline bool entities_are_fine(std::string_view text) {
  for (std::size_t i = text.find('&'); i != std::string_view::npos; i = text.find('&', i + 1)) {
    bool known = false;
    for (const std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
      known = known || text.substr(i).starts_with(entity);
    if (!known) return false;
  }
  return true;
}

inline Xml parse_xml(std::string_view s) {
  Xml xml;
  std::vector<std::size_t> open;
  std::size_t i = 0;
  const auto fail = [&](const std::string& what) {
    xml.error = what + " at byte " + std::to_string(i);
    return xml;
  };
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == ':' || c == '_';
  };
  const auto skip_space = [&] {
    while (i < s.size() && std::isspace(static_cast<unsigned char>(s[i])) != 0) ++i;
  };
  const auto name = [&] {
    const std::size_t begin = i;
    while (i < s.size() && is_name(s[i])) ++i;
    return std::string(s.substr(begin, i - begin));
  };
  while (i < s.size()) {
    if (s[i] != '<') {
      const std::size_t end = std::min(s.find('<', i), s.size());
      const std::string_view text = s.substr(i, end - i);
      if (!entities_are_fine(text)) return fail("bare ampersand");
      if (open.empty() && text.find_first_not_of(" \n") != std::string_view::npos) return fail("text outside the root");
      if (!open.empty()) xml.elements[open.back()].text += text;
      i = end;
      continue;
    }
    ++i;
    if (i < s.size() && s[i] == '/') {
      ++i;
      const std::string closed = name();
      if (open.empty() || xml.elements[open.back()].name != closed || i >= s.size() || s[i] != '>')
        return fail("wrong end tag " + closed);
      open.pop_back();
      ++i;
      continue;
    }
    XmlElement element{name(), {}, {}};
    if (element.name.empty()) return fail("bare <");
    if (open.empty() && !xml.elements.empty()) return fail("second root");
    for (skip_space(); i < s.size() && is_name(s[i]); skip_space()) {
      const std::string attribute = name();
      if (s.substr(i, 2) != "=\"") return fail("attribute without a quoted value");
      const std::size_t end = s.find('"', i + 2);
      if (end == std::string_view::npos) return fail("unended value");
      const std::string value(s.substr(i + 2, end - i - 2));
      if (!entities_are_fine(value) || value.find('<') != std::string::npos) return fail("unescaped value");
      if (!element.attributes.emplace(attribute, value).second) return fail("attribute twice: " + attribute);
      i = end + 1;
      if (i < s.size() && is_name(s[i])) return fail("no space between attributes");
    }
    const bool empty = s.substr(i, 2) == "/>";
    if (!empty && (i >= s.size() || s[i] != '>')) return fail("unended tag");
    xml.elements.push_back(element);
    if (!empty) open.push_back(xml.elements.size() - 1);
    i += empty ? 2 : 1;
  }
  if (!open.empty()) return fail("unended element " + xml.elements[open.back()].name);
  if (xml.elements.empty()) return fail("no root");
  return xml;
}

struct PathPoint {
  double x;
  double y;
  bool starts_piece;
};

// The points of the paths that figures are made of: M absolute, l relative, h0 and z.
inline std::vector<PathPoint> path_points(std::string_view d) {
  std::vector<PathPoint> points;
  double x = 0, y = 0;
  char command = 0;
  std::vector<double> pair;
  for (std::size_t i = 0; i < d.size();) {
    const char c = d[i];
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      command = c;
      ++i;
    } else if (c == ' ') {
      ++i;
    } else {
      std::size_t end = i + 1;
      bool dot = c == '.';
      for (; end < d.size() && (std::isdigit(static_cast<unsigned char>(d[end])) != 0 || (d[end] == '.' && !dot));
           ++end)
        dot = dot || d[end] == '.';
      pair.push_back(std::stod(std::string(d.substr(i, end - i))));
      i = end;
      if (command == 'h') pair.clear();
      if (pair.size() == 2) {
        x = pair[0] + (command == 'l' ? x : 0);
        y = pair[1] + (command == 'l' ? y : 0);
        points.push_back({x, y, command == 'M'});
        pair.clear();
      }
    }
  }
  return points;
}

// Whether a number that is none has slipped into a picture. Text is not looked at: a label may well say "inf".
inline bool has_bad_number(const Xml& xml) {
  for (const XmlElement& element : xml.elements)
    for (const auto& [key, value] : element.attributes) {
      if (key == "aria-label" || key == "class" || key == "data-label" || key == "data-x-label") continue;
      if (value.find("nan") != std::string::npos || value.find("inf") != std::string::npos) return true;
    }
  return false;
}

}  // namespace implicit_diffusion::report
