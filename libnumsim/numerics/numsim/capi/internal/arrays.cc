#include "numsim/capi/internal/arrays.h"

namespace numsim::capi {

numsim_status_t Memory::Check() const noexcept {
  if (n == 0) return NUMSIM_OK;
  const auto address = reinterpret_cast<uintptr_t>(data);
  const auto limit = static_cast<size_t>(PTRDIFF_MAX);
  return Require(data != nullptr && address % element == 0 && n <= limit / element &&
                 n * element <= UINTPTR_MAX - address);
}

bool Memory::Overlaps(const Memory& other) const noexcept {
  if (n == 0 || other.n == 0) return false;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto other_begin = reinterpret_cast<uintptr_t>(other.data);
  return begin < other_begin + other.n * other.element && other_begin < begin + n * element;
}

numsim_status_t CheckDisjoint(const Memory& out, std::initializer_list<Memory> others) noexcept {
  const bool overlap = std::any_of(
      others.begin(), others.end(), [&out](const Memory& other) { return out.Overlaps(other); });
  return Require(!overlap, NUMSIM_ERROR_OVERLAP);
}

numsim_status_t CheckCodeBytes(int code_bytes, const FormatSpec& format) noexcept {
  const bool is_type = code_bytes == 1 || code_bytes == 2 || code_bytes == 4;
  return Require(is_type && code_bytes >= format.StorageBytes());
}

numsim_status_t Draws::Read(const numsim_random_t* random, size_t n, int bits) noexcept {
  if (bits == 0) return NUMSIM_OK;
  if (random == nullptr || random->first_index > UINT64_MAX - n) return NUMSIM_ERROR_BAD_ARGUMENT;
  if (random->words != nullptr) {
    const numsim_status_t status = Memory{random->words, n, sizeof(uint32_t)}.Check();
    if (status != NUMSIM_OK) return status;
  }
  words_ = random->words;
  stream_ = {{random->seed, random->stream}, random->first_index};
  n_ = n;
  bits_ = bits;
  return NUMSIM_OK;
}

}  // namespace numsim::capi
