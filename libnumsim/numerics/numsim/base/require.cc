#include "numsim/base/require.h"

#include <cstddef>

#include "numsim/base/error.h"
#include "numsim/base/matrix_shape.h"

namespace numsim {

void ThrowWrongSize(const char* function, const char* argument, size_t given, size_t expected) {
  throw Error::Format("{}: '{}' has {} elements, expected {}", function, argument, given, expected);
}

void ThrowWrongSize(const char* function,
                    const char* argument,
                    size_t given,
                    MatrixShape expected) {
  size_t elements = 0;
  if (__builtin_mul_overflow(expected.rows, expected.cols, &elements)) {
    throw Error::Format("{}: '{}' has {} elements, and {} x {} are more than an array can have",
                        function,
                        argument,
                        given,
                        expected.rows,
                        expected.cols);
  }
  throw Error::Format("{}: '{}' has {} elements, expected {} ({} x {})",
                      function,
                      argument,
                      given,
                      elements,
                      expected.rows,
                      expected.cols);
}

void ThrowNarrowCodes(const char* function, const char* argument, size_t bytes, int format_bits) {
  throw Error::Format("{}: '{}' has codes of {} bits, and the format has {}",
                      function,
                      argument,
                      8 * bytes,
                      format_bits);
}

}  // namespace numsim
