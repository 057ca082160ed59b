#include "numsim/formats/split_list.h"

#include <algorithm>

namespace numsim {

std::vector<std::string> SplitFormatList(std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string piece(text.substr(begin, end - begin));
    // Without a '=' the first comparison is with npos, which nothing exceeds.
    if (!pieces.empty() && piece.find('=') < piece.find(':')) {
      pieces.back() += "," + piece;
    } else {
      pieces.push_back(piece);
    }
    begin = end + 1;
  }
  return pieces;
}

}  // namespace numsim
