// Checks of the arguments of public functions.
//
// A public function whose requirements are not met throws Error, before it writes anything. The
// message names the function, the argument, what was given and what was expected:
//   Quantize: 'in' has 100 elements, expected 200 (20 x 10)
// The checks take constant time per call. Requirements that would need a look at every element,
// such as "no NaN", are not checked. Functions that are noexcept cannot throw: they abort
// (base/error.h) or do not check.
#pragma once

#include <cstddef>

#include "numsim/base/error.h"
#include "numsim/base/matrix_shape.h"

// Throws an Error if `condition` is false. The other arguments are an fmt format string, which
// begins with the name of the function, and its values.
#define NUMSIM_REQUIRE(condition, ...)            \
  do {                                            \
    if (!(condition)) [[unlikely]]                \
      throw ::numsim::Error::Format(__VA_ARGS__); \
  } while (false)

namespace numsim {

// Throw the Error of a wrong number of elements or bytes; RequireSize and RequireWidth call them.
[[noreturn]] void ThrowWrongSize(const char* function,
                                 const char* argument,
                                 size_t given,
                                 size_t expected);
[[noreturn]] void ThrowWrongSize(const char* function,
                                 const char* argument,
                                 size_t given,
                                 MatrixShape expected);
[[noreturn]] void ThrowNarrowCodes(const char* function,
                                   const char* argument,
                                   size_t bytes,
                                   int format_bits);

// Throws Error unless `given`, the number of elements of `argument`, is the expected one.
inline void RequireSize(size_t given, size_t expected, const char* function, const char* argument) {
  if (given != expected) [[unlikely]]
    ThrowWrongSize(function, argument, given, expected);
}

// Throws Error unless `given` is the number of elements of a matrix of that shape. No array has the
// elements of a shape whose product overflows size_t.
inline void RequireSize(size_t given,
                        MatrixShape expected,
                        const char* function,
                        const char* argument) {
  size_t elements = 0;
  if (__builtin_mul_overflow(expected.rows, expected.cols, &elements) || given != elements)
      [[unlikely]] {
    ThrowWrongSize(function, argument, given, expected);
  }
}

// Throws Error unless codes of `bytes` bytes each hold the codes of a format of `format_bits` bits.
inline void RequireCodeBytes(size_t bytes,
                             int format_bits,
                             const char* function,
                             const char* argument) {
  if (8 * bytes < static_cast<size_t>(format_bits)) [[unlikely]] {
    ThrowNarrowCodes(function, argument, bytes, format_bits);
  }
}

}  // namespace numsim
