// One moment of one tensor in its actual storage: packed codes and scales. Calls whose requirements
// are not met throw Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/moments/dynamic_map.h"
#include "numsim/moments/moment_coat.h"
#include "numsim/moments/moment_format.h"
#include "numsim/quantize/scale.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// Quantisation error statistics of one Store(), for telemetry.
struct MomentLoss {
  size_t nonzero = 0;    // number of finite nonzero elements
  size_t flushed = 0;    // number of them that were stored as zero
  size_t saturated = 0;  // number of them beyond the largest value that can be stored
  double signal_square = 0, error_square = 0;  // over finite elements
};

class MomentStore {
 public:
  // Holds n zeros. `is_signed` is false for second moments, whose values are >= 0: kDynamic then
  // uses its unsigned map, in which a negative value becomes 0; other scalings ignore it and keep
  // the format's sign bit. Requires a format that ParseMomentFormat accepts.
  MomentStore(const MomentFormat& format, size_t n, bool is_signed);

  const MomentFormat& format() const { return format_; }
  size_t size() const { return n_; }

  // Decodes the stored values into `values`. Requires values.size() == size(). Several threads may
  // load at the same time.
  void Load(std::span<float> values) const;
  // Replaces the stored values. Element i uses the random bits of element i of `random`. Returns
  // the error statistics if `measure` is true, else zeros. Requires values.size() == size().
  // Elements that are not finite do not affect scales: a NaN is stored as the format's NaN, or 0 if
  // it has none; infinities saturate; fp32 keeps both. Bits and sums do not depend on the number of
  // threads.
  MomentLoss Store(std::span<const float> values, RandomStream random, bool measure = false);

  // Returns the stored float32 values themselves, to be read and written directly instead of
  // through Load and Store. Requires format().IsExact().
  std::span<float> Values() {
    NUMSIM_REQUIRE(format_.IsExact(),
                   "MomentStore::Values: the moments are {}, expected fp32",
                   ToString(format_));
    return values_;
  }

  // Returns the number of bytes stored. A code of at most 4 bits takes half a byte (dynamic: one),
  // of at most 8 bits one, of at most 16 bits two; a scale takes four bytes; COAT stores two
  // numbers of four bytes per block.
  size_t Bytes() const;

  // Returns the state as bytes, for checkpoints: values or codes, then scales, in the machine's
  // byte order. Restore throws Error if the length differs or the scales are not valid for this
  // format.
  std::vector<std::byte> Save() const;
  void Restore(std::span<const std::byte> state);

 private:
  size_t BlockSize() const;
  void FindScales(std::span<const float> values);
  void ScaleRun(size_t block, const float* in, size_t n, float* out) const;
  void EncodePiece(size_t begin, std::span<const float> values, RandomStream stream);
  void DecodePiece(size_t begin, std::span<float> out) const;
  void DecodeCoat(size_t begin, const uint8_t* codes, std::span<float> out) const;
  MomentLoss Measure(std::span<const float> values) const;
  void MeasurePiece(size_t begin, std::span<const float> values, MomentLoss& loss) const;
  bool Saturates(float x, size_t index) const;

  MomentFormat format_;
  size_t n_;
  bool signed_;
  EncodePlan plan_;
  ScaleFactory scale_maker_;
  float max_;                               // largest finite value of the format
  const DynamicMap* map_ = nullptr;         // kDynamic only
  std::shared_ptr<const CoatFormat> coat_;  // kCoat only
  std::vector<float> values_;               // fp32 only
  std::vector<uint8_t> codes8_;             // packed
  std::vector<uint16_t> codes16_;
  std::vector<float> scales_;  // one per tensor or per block; COAT: a and k of each block
};

// Returns the number of bytes that n elements take in `format`.
double MomentBytes(const MomentFormat& format, size_t n);

}  // namespace numsim
