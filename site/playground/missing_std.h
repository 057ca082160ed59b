// Adds the parts of C++20 that the library of emscripten 3.1.6 (Debian 12) lacks. Newer ones have them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#ifndef __cpp_lib_bit_cast
namespace std {
template <typename To, typename From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif

#ifndef __cpp_lib_ranges
namespace std::ranges {
template <typename Range, typename Test>
constexpr bool any_of(const Range& range, Test test) {
  for (const auto& x : range) {
    if (test(x)) return true;
  }
  return false;
}
template <typename Range, typename Test>
constexpr ptrdiff_t count_if(const Range& range, Test test) {
  ptrdiff_t count = 0;
  for (const auto& x : range) count += test(x) ? 1 : 0;
  return count;
}
}  // namespace std::ranges
#endif
