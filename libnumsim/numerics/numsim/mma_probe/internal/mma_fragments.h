// Layout of the elements of a tile in the registers of a warp and in shared memory, for mma.sync
// m16n8 and wgmma m64n8. The operands have rows of 32 bytes: 16 elements of 16 bits, 32 of 8 bits,
// or 8 of 32 bits. Source: [PTX], sections "Matrix Fragments for mma" and "Shared Memory Matrix
// Layout".
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/base/host_device.h"

namespace numsim {

inline constexpr int kMmaRowBytes = 32;

// A position in a matrix; operand rows consist of 32-bit words.
struct MmaPlace {
  int row, column;
};

// Returns the position of the word of A (16 rows) in register i, 0..3, of a lane.
NUMSIM_HOST_DEVICE constexpr MmaPlace MmaWordOfA(int lane, int i) {
  return {lane / 4 + 8 * (i % 2), lane % 4 + 4 * (i / 2)};
}

// Returns the position of the word of B (8 rows, called columns by PTX) in register i, 0..1, of a
// lane.
NUMSIM_HOST_DEVICE constexpr MmaPlace MmaWordOfB(int lane, int i) {
  return {lane / 4, lane % 4 + 4 * i};
}

// Returns the position of the element of the result (16 x 8) in register i, 0..3, of a lane. Also
// holds for wgmma, for the 16 rows of a warp.
NUMSIM_HOST_DEVICE constexpr MmaPlace MmaElementOfC(int lane, int i) {
  return {lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2};
}

// Shared memory layout of wgmma without swizzle, K-major: core matrices of 8 rows x 16 bytes, 128
// bytes each. The two core matrices of the same 8 rows are adjacent.
inline constexpr int kCoreBytes = 128;
inline constexpr int kCoreAlongK = kCoreBytes;         // "leading dimension byte offset"
inline constexpr int kCoreAlongRows = 2 * kCoreBytes;  // "stride dimension byte offset"

// Returns the offset of byte `byte` of row `row` in bytes.
NUMSIM_HOST_DEVICE constexpr int CoreOffset(int row, int byte) {
  return row / 8 * kCoreAlongRows + byte / 16 * kCoreAlongK + row % 8 * 16 + byte % 16;
}

// Returns the descriptor of a matrix in this layout. `address` is its address in shared memory, a
// multiple of 16.
NUMSIM_HOST_DEVICE constexpr uint64_t CoreDescriptor(uint32_t address) {
  return uint64_t{(address & 0x3FFFF) >> 4} | uint64_t{kCoreAlongK >> 4} << 16 |
         uint64_t{kCoreAlongRows >> 4} << 32;
}

}  // namespace numsim
