// GEMM by cuBLASLt with every option set by the caller: for gemm_tensor_cores_device.cc, and for studies of
// what cuBLASLt computes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/internal/gemm_inner_parts.h"

namespace numsim::cuda {

// The element type of a result.
enum class LibraryResult : uint8_t { kInt32, kFloat32, kBfloat16, kFloat16 };
inline size_t BytesOf(LibraryResult result) {
  return result == LibraryResult::kInt32 || result == LibraryResult::kFloat32 ? 4 : 2;
}

// How the parts of a split inner dimension are added together, in cuBLASLt's terms.
enum class LibraryReduction : uint8_t { kNone, kInPlace, kComputeType, kOutputType };

struct LibraryOptions {
  LibraryResult result = LibraryResult::kFloat32;
  bool fast_accumulation = false;  // fp8: the accumulator is not promoted
  bool scales = false;             // cuBLASLt applies the operands' scales; else they are ignored
  bool ordered = true;             // no split: every sum runs from its first product to its last
  // If not ordered: the number of parts and how they are joined. 0: cuBLASLt's own choice.
  int split = 0;
  LibraryReduction reduction = LibraryReduction::kNone;
  // If its length is not 0: only these parts of the inner dimension are multiplied, each to a result of
  // its own. The results lie one after another.
  InnerParts parts = {};
};

// cuBLASLt's handle, its workspace, and the algorithm that it chose for each problem. Everything is
// created at first use. Use one object per stream.
class DeviceLibrary {
 public:
  explicit DeviceLibrary(Place place);
  ~DeviceLibrary();

  // Enqueues the GEMM on the stream: a.rows x b.rows elements of type options.result, row-major.
  // Returns false, and does nothing, if cuBLASLt has no algorithm for it.
  // Requires formats that MultipliesOnDevice accepts, with 0, 1 or `rows` float32 scales per
  // operand (ScalesOfRows); result kInt32 only for int8; rows, inner, and first and length of parts positive multiples
  // of 16 (`first` may be 0); 8-bit operands that are not transposed; all pointers aligned to 16 bytes.
  [[nodiscard]] bool Multiply(const GemmOperand& a,
                              const GemmOperand& b,
                              const LibraryOptions& options,
                              void* out,
                              DeviceStream& stream);

  // Returns the algorithm that Multiply takes, in cuBLASLt's numbers: "algorithm 66 tile 36 ...
  // split 1 reduction 0", or "none" if there is none.
  std::string Describe(const GemmOperand& a,
                       const GemmOperand& b,
                       const LibraryOptions& options,
                       void* out);

 private:
  struct State;
  State& Ready();

  Place place_;
  std::unique_ptr<State> state_;
};

// Memory for the copies that an operand may need: a padded one and a transposed one.
struct OperandCopies {
  Buffer<uint8_t> padded, turned;
};

// Working memory of GEMMs: cuBLASLt's handle and workspace and the algorithms that it chose, sums
// before scaling, transposed or padded copies of operands. One for each DeviceContext.
struct GemmScratch {
  explicit GemmScratch(Place place) : library(place), sums(place) {}

  DeviceLibrary library;
  OperandCopies a, b;
  Buffer<uint8_t> sums;
};

}  // namespace numsim::cuda
