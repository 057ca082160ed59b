// Arrays given to the C interface: checks of memory, elements of 1, 2 or 4 bytes, random bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numsim/base/parallel.h"
#include "numsim/capi/internal/arguments.h"
#include "numsim/cast/cast.h"

namespace numsim::capi {

// n elements of `element` bytes (1, 2, 4 or 8), aligned to that.
struct Memory {
  const void* data;
  size_t n;
  size_t element;

  // NUMSIM_ERROR_BAD_ARGUMENT where no such array can exist: a null pointer unless n == 0, a
  // misaligned one, more bytes than memory has.
  numsim_status_t Check() const noexcept;
  bool Overlaps(const Memory& other) const noexcept;
};

// NUMSIM_ERROR_OVERLAP if the output overlaps one of the others.
numsim_status_t CheckDisjoint(const Memory& out, std::initializer_list<Memory> others) noexcept;

// NUMSIM_ERROR_BAD_ARGUMENT unless code_bytes is 1, 2 or 4 and holds a code of the format.
numsim_status_t CheckCodeBytes(int code_bytes, const FormatSpec& format) noexcept;

// body(span of uint8_t, uint16_t or uint32_t). Requires checked memory.
template <typename Body>
void WithCodes(void* codes, int code_bytes, size_t n, const Body& body) {
  if (code_bytes == 1) return body(std::span(static_cast<uint8_t*>(codes), n));
  if (code_bytes == 2) return body(std::span(static_cast<uint16_t*>(codes), n));
  body(std::span(static_cast<uint32_t*>(codes), n));
}
template <typename Body>
void WithCodes(const void* codes, int code_bytes, size_t n, const Body& body) {
  if (code_bytes == 1) return body(std::span(static_cast<const uint8_t*>(codes), n));
  if (code_bytes == 2) return body(std::span(static_cast<const uint16_t*>(codes), n));
  body(std::span(static_cast<const uint32_t*>(codes), n));
}

// The random bits of an array call.
class Draws {
 public:
  // Takes `bits` bits an element; 0: no draws, and `random` is not looked at. Otherwise
  // NUMSIM_ERROR_BAD_ARGUMENT if it is null or does not serve n elements.
  numsim_status_t Read(const numsim_random_t* random, size_t n, int bits) noexcept;

  // Whether the caller gave the words: the kernels know only streams.
  bool HasWords() const noexcept { return words_ != nullptr; }
  ArrayRandom Stream() const noexcept { return stream_; }
  // The caller's words as memory that outputs may not overlap; empty without.
  Memory Words() const noexcept { return {words_, HasWords() ? n_ : 0, sizeof(uint32_t)}; }
  // R of element i; bits above the number of random bits are arbitrary.
  uint32_t At(size_t i) const noexcept {
    if (bits_ == 0) return 0;
    if (HasWords()) return words_[i];
    return RandomBits(stream_.stream, stream_.first_index + i, bits_);
  }

 private:
  const uint32_t* words_ = nullptr;
  ArrayRandom stream_;
  size_t n_ = 0;
  int bits_ = 0;
};

// Random bits that an element takes under the plan's mode.
inline int DrawBits(const EncodePlan& plan) {
  return plan.rounding.mode == RoundingMode::kStochastic ? plan.rounding.random_bits : 0;
}

// body(i) for each element, on all threads: for what has no kernel.
template <typename Body>
void ForEachElement(size_t n, const Body& body) {
  constexpr size_t kGrain = size_t{1} << 14;
  ParallelFor(n, kGrain, [&body](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace numsim::capi
