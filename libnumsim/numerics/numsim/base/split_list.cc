#include "numsim/base/split_list.h"

#include <algorithm>

namespace numsim {

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

std::vector<std::string> SplitFormatList(std::string_view text) {
  std::vector<std::string> formats;
  for (const std::string& piece : SplitList(text)) {
    // Without '=' the left side is npos, which is not less than anything.
    if (!formats.empty() && piece.find('=') < piece.find(':')) {
      formats.back() += "," + piece;
    } else {
      formats.push_back(piece);
    }
  }
  return formats;
}

}  // namespace numsim
