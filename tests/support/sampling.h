// How densely tests sweep over values.
//
// Sanitizers make code 5 to 50 times slower and look for errors (of memory, of undefined behaviour,
// of threads) that a sample of a sweep shows as well as all of it. Sweeps that would take seconds
// there step by SampleEvery; every other build takes each value.
#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NUMSIM_TESTS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NUMSIM_TESTS_SANITIZED 1
#endif

namespace numsim {

// Whether this build has AddressSanitizer or ThreadSanitizer.
#if defined(NUMSIM_TESTS_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Returns the stride of a sweep: n with a sanitizer, 1 without. An odd n meets every value of each
// part of a code; a sweep over pairs of codes needs that.
constexpr unsigned SampleEvery(unsigned n) { return kSanitized ? n : 1; }

// Returns the cases of a suite with parameters: each fifth with a sanitizer, all without.
template <typename Cases>
auto SampledCases(const Cases& cases) {
  std::vector<std::decay_t<decltype(*std::begin(cases))>> sample;
  size_t i = 0;
  for (const auto& c : cases) {
    if (i++ % SampleEvery(5) == 0) sample.push_back(c);
  }
  return sample;
}

}  // namespace numsim
