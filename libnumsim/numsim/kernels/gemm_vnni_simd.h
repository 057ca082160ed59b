// The inner loop of int8 products on x86 processors with AVX-512 VNNI. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/kernels/gemm_simd.h"

namespace numsim {

// A tile of kVnniTile; panels hold groups of 4 consecutive k: for each group and each row (column)
// 4 bytes. The b side is stored with its sign bit flipped, as b + 128.
inline constexpr TileShape kVnniTile{12, 32};

// Whether the active backend is AVX-512 and this processor has VNNI.
bool HasVnniTile();

// acc(r, c) += sum over 4 * groups of a(k, r) (b(k, c) + 128), modulo 2^32: the caller takes
// 128 times the sum of a(., r) off. Requires HasVnniTile().
void MultiplyVnniTile(const uint8_t* a, const uint8_t* b, size_t groups, int32_t* acc);

}  // namespace numsim
