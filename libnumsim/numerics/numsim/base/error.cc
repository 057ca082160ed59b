#include "numsim/base/error.h"

#include <cstdio>
#include <cstdlib>

#include "numsim/base/printable.h"

namespace numsim {

Error::Error(const std::string& message) : std::runtime_error(PrintableMessage(message)) {}

void AbortOnBrokenContract(const char* file,
                           int line,
                           const char* condition,
                           const std::string& values) {
  std::fprintf(stderr, "%s:%d: broken contract: %s (%s)\n", file, line, condition, values.c_str());
  std::abort();
}

}  // namespace numsim
