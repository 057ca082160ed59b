// One moment of one tensor as it is really stored: packed codes and scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/moments/dynamic_map.h"
#include "numsim/moments/moment_coat.h"
#include "numsim/moments/moment_format.h"
#include "numsim/quantize/scale.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// What storing made of the values, for telemetry. Shares are of the elements
// that were not zero.
struct MomentLoss {
  size_t nonzero = 0;    // finite elements that were not zero
  size_t flushed = 0;    // of those, stored as zero
  size_t saturated = 0;  // of those, beyond the largest value that can be stored
  double signal_square = 0, error_square = 0;  // over finite elements
};

class MomentStore {
 public:
  // n zeros. `is_signed`: false for second moments, whose values are >= 0
  // (kDynamic has a map of its own for them, where a negative value becomes 0;
  // the others keep the format's sign bit). Requires what ParseMomentFormat
  // accepts.
  MomentStore(const MomentFormat& format, size_t n, bool is_signed);

  const MomentFormat& format() const { return format_; }
  size_t size() const { return n_; }

  // The stored values. Requires values.size() == size(). Several threads may
  // load at a time.
  void Load(std::span<float> values) const;
  // Replaces what is stored. Element i draws the random bits of element i of
  // `random`. NaN and infinities: an element that is not finite is stored as
  // the format stores it (NaN where it has one, else 0; infinities saturate;
  // fp32 keeps both); it does not enter a scale. Returns what was lost where
  // `measure`, else zeros. Requires values.size() == size(). Bits and sums do
  // not depend on threads.
  MomentLoss Store(std::span<const float> values, RandomStream random, bool measure = false);

  // The stored float32 values themselves, to read and to write in place of Load and Store. Requires
  // format().IsExact(). (Asked for by optimizer_tensor.cc.)
  std::span<float> Values() {
    NUMSIM_CHECK(format_.IsExact(), "moments are not kept as float32");
    return values_;
  }

  // Bytes that are stored: codes of up to 4 bits two a byte, of up to 8 one, of
  // up to 16 two; a scale four, of COAT two numbers a block.
  size_t Bytes() const;

  // The state as bytes, for checkpoints: values or codes, then scales, in the
  // machine's byte order. Restore
  // throws Error for another length, or where the bytes cannot be those of such
  // a moment.
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
  float max_;                               // of the format
  const DynamicMap* map_ = nullptr;         // of kDynamic
  std::shared_ptr<const CoatFormat> coat_;  // of kCoat
  std::vector<float> values_;               // fp32
  std::vector<uint8_t> codes8_;             // packed
  std::vector<uint16_t> codes16_;
  std::vector<float> scales_;  // of the tensor or of blocks; COAT: a and k of each block
};

// Bytes that `format` takes for n elements, without storing them.
double MomentBytes(const MomentFormat& format, size_t n);

}  // namespace numsim
