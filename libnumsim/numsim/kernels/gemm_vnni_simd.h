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

// The sums of the rows of an a panel. Requires HasVnniTile().
void SumVnniPanel(const uint8_t* a, size_t groups, int32_t* sums);

// acc(r, c) += sum over 4 * groups of a(k, r) b(k, c), modulo 2^32, where sums_a[r] is the sum of
// a(., r). `fresh`: from 0 on, whatever acc holds. Requires HasVnniTile().
void MultiplyVnniTile(const uint8_t* a,
                      const uint8_t* b,
                      size_t groups,
                      const int32_t* sums_a,
                      bool fresh,
                      int32_t* acc);

}  // namespace numsim
