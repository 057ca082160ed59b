#include "apps/figure_options.h"

#include <cctype>
#include <charconv>
#include <sstream>

#include "numsim/base/error.h"

namespace numsim::apps {
namespace {

// Returns the number of a panel, from 1, given as a number or as a letter: A is 1. Returns 0 for
// anything else.
size_t PanelNumber(const std::string& text) {
  if (text.size() == 1 && std::isalpha(static_cast<unsigned char>(text[0])) != 0) {
    return static_cast<size_t>(std::toupper(static_cast<unsigned char>(text[0])) - 'A') + 1;
  }
  size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  return status == std::errc() && stop == end ? number : 0;
}

}  // namespace

void AddFigureOptions(CLI::App* sub, FigureArguments& arguments) {
  sub->add_option("--width",
                  arguments.width,
                  "Width of figures in inches, from 1 to 40, such as 3.3 for a column of a paper; "
                  "panels stand below each other where they would be too narrow (default: 3.4 per "
                  "column of panels)")
      ->check(CLI::Range(1.0, 40.0));
  sub->add_option("--font", arguments.font, "Size of the text of figures in points, from 4 to 40")
      ->check(CLI::Range(4.0, 40.0))
      ->capture_default_str();
  sub->add_option("--panels",
                  arguments.panels,
                  "Draw only these panels of each figure, in this order: numbers or letters, as in "
                  "1,3 or A,C, in reading order (default: all)");
}

FigureStyle StyleOf(const FigureArguments& arguments) {
  FigureStyle style{.width = arguments.width, .font = arguments.font, .panels = {}};
  std::istringstream pieces(arguments.panels);
  for (std::string piece; std::getline(pieces, piece, ',');) {
    const size_t number = PanelNumber(piece);
    if (number == 0) {
      throw Error::Format(
          "--panels '{}': expected numbers from 1 or letters, separated by commas, e.g. 1,3 or A,C",
          arguments.panels);
    }
    style.panels.push_back(number);
  }
  return style;
}

}  // namespace numsim::apps
