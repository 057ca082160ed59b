#include "apps/wrapped_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace numsim::apps {

void PrintWrapped(size_t indent, const std::string& text) {
  constexpr size_t kWidth = 88;
  const std::string blanks(indent, ' ');
  std::string line = blanks;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (line.size() > indent && line.size() + 1 + end - begin > kWidth) {
      fmt::print("{}\n", line);
      line = blanks;
    }
    line += (line.size() > indent ? " " : "") + text.substr(begin, end - begin);
    begin = end + 1;
  }
  fmt::print("{}\n", line);
}

}  // namespace numsim::apps
