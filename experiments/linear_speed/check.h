// What a device's results are compared with: single elements of a layer's products, computed on the
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

// A tensor of normal draws, rounded to bf16, of any size: one tile of them again and again, each
// time rotated further, so that a device gets it by copies of its own and the CPU knows each
// element.
class TiledNormals {
 public:
  static constexpr size_t kTileElements = size_t{1} << 22;

  // Requires elements and tile > 0.
  TiledNormals(RandomStream stream, MatrixShape shape, size_t tile = kTileElements);

  MatrixShape shape() const { return shape_; }
  float At(size_t row, size_t col) const;
  // The largest |x| of all.
  float Absmax() const;
  // bf16 codes of the first tile.
  const std::vector<uint16_t>& tile() const { return codes_; }
  // Calls copy(from, to, count) for pieces of the tile at `from` that make the tensor at `to`.
  void ForEachPiece(const std::function<void(size_t, size_t, size_t)>& copy) const;
  // All elements; for small tensors.
  std::vector<float> Values() const;

 private:
  size_t Offset(size_t tile_index) const;

  MatrixShape shape_;
  std::vector<uint16_t> codes_;
  std::vector<float> values_;
};

// X, W and G of a layer.
struct LayerTensors {
  TiledNormals x, w, g;

  LayerTensors(LinearShape shape, uint64_t seed, size_t tile = TiledNormals::kTileElements);
};

// Elements (rows[i], cols[j]) of a product's result, bf16.
struct SampledProduct {
  std::vector<size_t> rows, cols;
  std::vector<uint16_t> codes;  // rows.size() x cols.size()
  // How far a value may be from that of its code: 0 but under rule library.
  std::vector<float> tolerance;
};

// The shape of a product's result.
MatrixShape ResultShape(LinearShape shape, LinearGemm product);

// Requires a recipe of kTensor and kRow scales, nearest-even rounding and high precision bf16.
// nullopt where an element depends on whole tensors: the weight gradient from kept codes that have
// a scale for each row.
std::optional<SampledProduct> SampleOnCpu(const LinearRecipe& recipe,
                                          LinearGemm product,
                                          const LayerTensors& tensors);

// Throws Error "WHAT: element (r, c) of R x C is A on the device and B on the CPU" where the codes
// of the device, of the sample's elements in its order, differ by more than the tolerance. NaN
// equals NaN.
void CompareSample(const std::string& what,
                   MatrixShape shape,
                   const SampledProduct& sample,
                   std::span<const uint16_t> device);

// bf16 codes of values, nearest even.
std::vector<uint16_t> Bf16Codes(std::span<const float> values);

// While it lives the host's kernels do not use the device.
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
