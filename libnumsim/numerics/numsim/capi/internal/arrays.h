// Arrays passed to the C interface: memory checks, elements of 1, 2 or 4 bytes, random bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numsim/base/parallel.h"
#include "numsim/capi/internal/arguments.h"
#include "numsim/cast/cast.h"

namespace numsim::capi {

// An array of n elements of `element` bytes (1, 2, 4 or 8), aligned to that size.
struct Memory {
  const void* data;
  size_t n;
  size_t element;

  // Returns NUMSIM_ERROR_BAD_ARGUMENT if no such array can exist: a null pointer with n > 0, a
  // misaligned pointer, or more bytes than the address space has.
  numsim_status_t Check() const noexcept;
  bool Overlaps(const Memory& other) const noexcept;
};

// Returns NUMSIM_ERROR_OVERLAP if the output overlaps one of the others.
numsim_status_t CheckDisjoint(const Memory& out, std::initializer_list<Memory> others) noexcept;

// Returns NUMSIM_ERROR_BAD_ARGUMENT unless code_bytes is 1, 2 or 4 and large enough for the format.
numsim_status_t CheckCodeBytes(int code_bytes, const FormatSpec& format) noexcept;

// Calls body(span of uint8_t, uint16_t or uint32_t), according to code_bytes. Requires checked
// memory.
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

// Random bits of an array call.
class Draws {
 public:
  // Prepares `bits` random bits per element. If bits is 0, `random` is ignored. Otherwise returns
  // NUMSIM_ERROR_BAD_ARGUMENT if it is null or does not suffice for n elements.
  numsim_status_t Read(const numsim_random_t* random, size_t n, int bits) noexcept;

  // True if the caller supplied the random words. The kernels support only streams.
  bool HasWords() const noexcept { return words_ != nullptr; }
  ArrayRandom Stream() const noexcept { return stream_; }
  // Returns the memory of the caller's words, which outputs must not overlap; empty without words.
  Memory Words() const noexcept { return {words_, HasWords() ? n_ : 0, sizeof(uint32_t)}; }
  // Returns the random bits R of element i. Higher bits are arbitrary.
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

// Returns the number of random bits per element in the plan's rounding mode.
inline int DrawBits(const EncodePlan& plan) {
  return plan.rounding.mode == RoundingMode::kStochastic ? plan.rounding.random_bits : 0;
}

// Calls body(i) for each element, on all threads. Used for operations without a kernel.
template <typename Body>
void ForEachElement(size_t n, const Body& body) {
  constexpr size_t kGrain = size_t{1} << 14;
  ParallelFor(n, kGrain, [&body](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace numsim::capi
