// Reference values for results from a device: single elements of a layer's GEMMs, computed on the
// CPU from the rows and columns that they depend on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/linear/linear.h"
#include "numsim/quantize/quantize.h"

namespace numsim::experiments::linear_speed {

// A tensor of any size of normal random numbers, rounded to bf16. It repeats one tile of numbers,
// each time rotated further, so that the device can build the tensor by copying the tile and the
// CPU can compute any single element.
class TiledNormals {
 public:
  static constexpr size_t kTileElements = size_t{1} << 22;

  // Requires elements and tile > 0.
  TiledNormals(RandomStream stream, MatrixShape shape, size_t tile = kTileElements);

  MatrixShape shape() const { return shape_; }
  float At(size_t row, size_t col) const;
  // Returns the largest |x| of the tensor.
  float Absmax() const;
  // Returns the bf16 codes of the first tile.
  const std::vector<uint16_t>& tile() const { return codes_; }
  // Calls copy(from, to, count) for each piece of the tensor: `count` elements at index `to` of the
  // tensor equal those at index `from` of the tile.
  void ForEachPiece(const std::function<void(size_t, size_t, size_t)>& copy) const;
  // Returns all elements; meant for small tensors.
  std::vector<float> Values() const;

 private:
  size_t Offset(size_t tile_index) const;

  MatrixShape shape_;
  std::vector<uint16_t> codes_;
  std::vector<float> values_;
};

// The tensors X, W and G of a layer.
struct LayerTensors {
  TiledNormals x, w, g;

  LayerTensors(LinearShape shape, uint64_t seed, size_t tile = TiledNormals::kTileElements);
};

// The elements (rows[i], cols[j]) of a GEMM's result, in bf16.
struct SampledProduct {
  std::vector<size_t> rows, cols;
  std::vector<uint16_t> codes;  // rows.size() x cols.size()
  // Largest allowed difference of each element from the value of its code. 0 except under the
  // accumulation mode `library`.
  std::vector<float> tolerance;
};

// Returns the shape of a GEMM's result.
MatrixShape ResultShape(LinearShape shape, LinearGemm product);

// Computes some elements of the GEMM's result on the CPU. Returns nullopt if a single element
// depends on whole tensors: for the weight gradient from saved codes that have one scale per row.
// Requires a recipe with kTensor and kRow scales, nearest-even rounding and high precision bf16.
std::optional<SampledProduct> SampleOnCpu(const LinearRecipe& recipe,
                                          LinearGemm product,
                                          const LayerTensors& tensors);

// Throws Error "WHAT: element (r, c) of R x C is A on the device and B on the CPU" if an element
// differs by more than its tolerance. `device` holds the device's codes of the sampled elements, in
// the order of sample.codes. NaN equals NaN.
void CompareSample(const std::string& what,
                   MatrixShape shape,
                   const SampledProduct& sample,
                   std::span<const uint16_t> device);

// Returns the bf16 codes of the values, rounded to nearest even.
std::vector<uint16_t> Bf16Codes(std::span<const float> values);

// While an object of this class lives, numsim's kernels run on the CPU even under the backend cuda.
class WithoutDevice {
 public:
  WithoutDevice();
  ~WithoutDevice();
  WithoutDevice(const WithoutDevice&) = delete;
  WithoutDevice& operator=(const WithoutDevice&) = delete;

 private:
  std::string before_;
};

}  // namespace numsim::experiments::linear_speed
