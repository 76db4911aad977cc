// A report as one HTML file.
//
// The file is complete in itself: no network (it forbids itself any by its content security policy), no fonts to fetch.
// It is light or dark as the reader's system is, prints in black on white, and reads on a telephone. A short script
// adds what paper cannot have, the values under the pointer and a switch for the theme; without it nothing is missing.
//
// Every string is plain text and is escaped, except pictures, which are what to_svg, to_thumbnail and to_img returned.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace implicit_diffusion::report {

struct Figure {
  std::string picture;
  std::string caption;
  bool wide = false;  // a row of its own
};

// A key figure, shown large at the top.
struct Fact {
  std::string label;
  std::string value;
  std::string note;
};

// Columns in which every cell is a number (or empty) are aligned to the right. Short rows are filled with empty cells.
struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows = {};
  bool wrap = false;  // cells are sentences, which go over several lines
};

// Pictures in rows and columns, all in one table; where there is a script, a slider above it shows one column at a
// time, large.
struct PictureTable {
  std::string slider;                              // what the columns are, such as "step"
  std::vector<std::string> columns;                // their names
  std::vector<std::string> rows;                   // names of the rows
  std::vector<std::vector<std::string>> pictures;  // row by row
};

struct Section {
  std::string heading;
  std::string text = {};             // an empty line begins a new paragraph
  std::vector<Figure> figures = {};  // two in a row where there is room
  bool three_in_a_row = false;       //
  std::vector<PictureTable> picture_tables = {};
  std::vector<Table> tables = {};
  std::vector<std::pair<std::string, std::string>> code = {};  // caption, preformatted text
};

struct Page {
  std::string title;
  std::string subtitle;
  std::string notice = {};  // what the reader must know before anything else, such as that the run failed
  std::vector<std::string> warnings = {};  // why what follows may be wrong, each a paragraph of its own
  std::string opening = {};                // one paragraph: what was done, whether it worked, and how one can tell
  std::vector<Fact> facts = {};
  std::vector<Section> sections = {};
  std::string footer = {};
};

std::string to_html(const Page& page);

}  // namespace implicit_diffusion::report
