#include "apps/wrapped_text.h"

#include <fmt/format.h>

#include "experiments/runner/wrapped_text.h"

namespace numsim::apps {

void PrintWrapped(size_t indent, const std::string& text) {
  for (const std::string& line : experiments::WrappedLines(indent, text)) fmt::print("{}\n", line);
}

}  // namespace numsim::apps
