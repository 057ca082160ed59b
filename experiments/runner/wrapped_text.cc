#include "experiments/runner/wrapped_text.h"

#include <algorithm>

namespace numsim::experiments {

std::vector<std::string> WrappedLines(size_t indent, const std::string& text) {
  constexpr size_t kWidth = 88;
  const std::string blanks(indent, ' ');
  std::vector<std::string> lines;
  std::string line = blanks;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (line.size() > indent && line.size() + 1 + end - begin > kWidth) {
      lines.push_back(line);
      line = blanks;
    }
    line += (line.size() > indent ? " " : "") + text.substr(begin, end - begin);
    begin = end + 1;
  }
  lines.push_back(line);
  return lines;
}

}  // namespace numsim::experiments
